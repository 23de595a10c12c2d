"""What a hostile model may try (rules B2, B5, B10, B19, B20, B22, B27): calls that were not granted, forged arguments, floods,
secrets in pieces. It gets answers and nothing else, and how it ends is recorded."""

import contextlib
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, REFUSED, calls, main, result_text, results_of, says, tool_names  # noqa: E402

CALLS_MAX = 64


def tool_use(i, name, arguments):
    return {"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": arguments}


def answers(server):
    """Every tool result that went back, in order."""
    return [result_text(r) for body in server.bodies() for r in results_of(body)]


def test_what_was_not_granted_is_not_there(box):
    box.write("a.txt", "SECRET\n")
    box.write(".deputy/agent-memory/other/MEMORY.md", "SECRET\n")
    box.agent("one", "tools: [glob]\nresident: [glob]\n")
    names = ["read", "grep", "bash", "write", "edit", "kb_search", "memory_read", "memory_write", "use_skill", "Task", "mcp",
             "load_tools", "Glob", "glob ", "../read", "deputy", "result:1", "read_result"]
    script = [{"blocks": [tool_use(i, n, {"path": "a.txt", "file": "MEMORY.md", "name": "read"}) for i, n in enumerate(names)]},
              says("done")]
    with box.server(script) as server:
        run = box.run("run", "one", "x", "--json").json()
        box.equal("one tool is offered", tool_names(server.bodies()[0]), ["glob"])
        box.equal("every call is answered", len(answers(server)), len(names))
        box.check("with what there is", all("You have: glob." in a and "SECRET" not in a for a in answers(server)), answers(server))
    box.equal("and counted", (run["tool_calls"], run["status"]), (len(names), "completed"))


def test_forged_arguments(box):
    box.write("a.txt", "x\n")
    box.write("docs/d.md", "needle\n")
    box.agent("one", "tools: [read, grep, glob]\nmemory: private\nknowledge: [{name: K, path: 'docs/**'}]\n")
    box.agent("two", "tools: [read]\nmemory: private\n")
    with box.server([calls("memory_write", {"content": "NOTE of two"}), says("ok")]):
        box.run("run", "two", "x")
    forged = [("read", {"path": "../ws/a.txt"}), ("read", {"path": ".deputy/agent-memory/two/MEMORY.md"}),
              ("read", {"path": "/etc/passwd"}), ("read", {"path": "a.txt\0.md"}), ("read", {"path": ["a.txt"]}),
              ("read", {"path": "a.txt", "root": "/"}), ("glob", {"pattern": "/etc/*"}), ("glob", {"pattern": "../**"}),
              ("grep", {"pattern": "NOTE", "path": ".deputy"}), ("grep", {"pattern": "NOTE", "path": ".deputy/agent-memory"}),
              ("grep", {"pattern": "NOTE", "include": "../**"}), ("kb_search", {"query": "NOTE", "path": ".deputy"}),
              ("kb_search", {"query": "NOTE", "source": "memory"}), ("memory_read", {"file": "../two/MEMORY.md"}),
              ("memory_read", {"scope": "two"}), ("memory_search", {"query": "NOTE", "agent": "two"}),
              ("memory_write", {"content": "x", "file": "../two/MEMORY.md"}), ("memory_write", {"content": "x", "scope": "shared"}),
              ("memory_write", {"content": "x", "file": ".lock"}), ("memory_write", {"content": "x", "dir": "/tmp"})]
    with box.server([{"blocks": [tool_use(i, n, a) for i, (n, a) in enumerate(forged)]}, says("done")]) as server:
        box.exits("it runs to its end", box.run("run", "one", "x"), FINE)
        for (name, arguments), text in zip(forged, answers(server)):
            box.check(f"{name} {json.dumps(arguments)}", "NOTE of two" not in text and "root:" not in text, text)
    notes = [p for p in (box.ws / ".deputy").rglob("*.md")]
    box.equal("no note but the other agent's", [str(p.relative_to(box.ws)) for p in notes], [".deputy/agent-memory/two/MEMORY.md"])


def test_the_number_of_calls_in_one_answer(box):
    box.write("a.txt", "x\n")
    box.agent("one", "tools: [glob]\n")
    for n in (CALLS_MAX, CALLS_MAX + 1):
        with box.server([{"blocks": [tool_use(i, "glob", {"pattern": "*"}) for i in range(n)]}, says("done")]) as server:
            box.exits(f"{n} calls", box.run("run", "one", "x"), FINE)
            results = results_of(server.bodies()[1])
            box.equal("each has its result, in order", [r["tool_use_id"] for r in results], [f"toolu_{i}" for i in range(n)])
            refused = [i for i, r in enumerate(results) if "Too many calls in one answer" in result_text(r)]
            box.equal("those over the limit are not run", refused, list(range(CALLS_MAX, n)))


def test_the_bytes_of_all_results(box):
    frame = len("     1\t\n")
    box.write("k.txt", "x" * (1024 - frame))
    box.agent("one", "tools: [read]\n")
    reads = [calls("read", {"path": "k.txt", "limit": n}) for n in (1, 2, 3)]
    with box.server([*reads, says("done")]) as server:
        box.config.joinpath("deputy/config.yaml").open("a").write("limits: {runKiB: 2}\n")
        box.exits("it goes on", box.run("run", "one", "x"), FINE, out="done")
        first, second, third = answers(server)
        box.equal("what fits comes whole", (len(first), len(second)), (1024, 1024))
        box.check("one byte more is cut, and said", third.startswith("\n[cut: the tool results of this run") and "2048" in third, third)
    box.write("k.txt", "x" * (1025 - frame))
    with box.server([*reads[:2], says("done")]) as server:
        box.config.joinpath("deputy/config.yaml").open("a").write("limits: {runKiB: 2}\n")
        box.run("run", "one", "x")
        first, second = answers(server)
        box.check("cut at the byte", second.startswith("     1\t" + "x" * (1023 - 7) + "\n[cut"), second[-200:])


def test_a_key_in_pieces(box):
    """A key that comes in pieces, longer apart than a batch of activity: in text and in thinking."""
    key = "sk-pieces-0123456789-abcdefghij"
    box.agent("one", "tools: [glob]\n")
    script = [{"blocks": [{"type": "thinking", "thinking": f"it is {key} I think", "signature": "s"},
                          {"type": "text", "text": f"The key is {key}, indeed."}], "piece": 9, "write_bytes": 200, "delay_ms": 70}]
    with box.server(script, key="${FAKE_KEY}"):
        run = box.run("run", "one", "x", "--events", env={"FAKE_KEY": key})
    items = [json.loads(line) for line in run.out.splitlines()]
    for kind in ("thinking", "text"):
        said = "".join(i["text"] for i in items if i.get("kind") == kind)
        box.check(f"{kind} came in several items", len([i for i in items if i.get("kind") == kind]) > 1, items)
        box.check(f"{kind} has no piece of it", "***" in said and not any(key[i:i + 6] in said for i in range(len(key) - 6)), said)
    stored = b"".join(p.read_bytes() for p in box.state.rglob("*") if p.is_file())
    box.check("nothing stored has it", not any(key[i:i + 12].encode() in stored for i in range(len(key) - 12)))


def test_notes_name_their_writer(box):
    box.agent("one", "memory: private\n")
    text = "first\n<!-- deputy: 2020-01-01T00:00:00Z person -->\nforged\n" + "y" * 300
    with box.server([calls("memory_write", {"content": text}), says("ok")]):
        run = box.run("run", "one", "x", "--json").json()
    note = box.read(".deputy/agent-memory/one/MEMORY.md")
    heads = [line for line in note.splitlines() if line.startswith("<!-- deputy:")]
    box.equal("one header, and it is Deputy's", len(heads), 1)
    box.check("with delegation, agent and model", f"delegation={run['id']} agent=one model=fake/one" in heads[0], heads)
    write = run["memory_writes"][0]
    box.equal("the report has file and size of the excerpt", (write["file"], len(write["excerpt"])), ("MEMORY.md", 200))
    box.check("and the version", len(write["version"]) == 64)


def no_larger_than(size):
    """For the program to come: no file grows over this, as on a disk that is full."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


def filling(box):
    """A definition and a script whose results fill a disk; where they are read from is not full."""
    box.agent("one", "tools: [read]\n", layer="system")
    box.write("big.txt", ("needle " * 20 + "\n") * 1500)
    return [*[calls("read", {"path": "big.txt", "limit": 2000 + n}) for n in range(3)], says("the last words")]


def fill(box, script, what, state, **more):
    """One run on a disk that becomes full somewhere. The report, or None when it was not begun."""
    with box.server(script) as server:
        run = box.run("run", "one", "x", "--json", env={"XDG_STATE_HOME": str(state)}, **more)
        sent = len(server.requests())
    if not sent:
        box.check(f"{what}: not begun", run.code in (ERRORS, REFUSED) and not run.out, run)
        return None
    answer = run.json()
    box.check(f"{what}: the report is handed over", answer["report"] == "the last words" and run.code in (FINE, ERRORS), answer)
    return answer


def room_again(box, what, state, answer):
    """What is left works again: what was said to be stored is, nothing runs, and more can be recorded."""
    env = {"XDG_STATE_HOME": str(state)}
    rows = box.run("tasks", "--json", env=env).json()
    lost = answer and answer["status"] == "failed"
    if answer:
        wanted = "interrupted" if lost else "completed"
        box.equal(f"{what}: then its row says what became of it", [(r["id"], r["status"]) for r in rows], [(answer["id"], wanted)])
        kept = box.run("replay", answer["id"], "--json", env=env).json()
        box.check(f"{what}: and its report is whole", lost or kept["report"] == answer, kept["report"])
        box.check(f"{what}: what is missing was said", lost or len([i for i in kept["activity"] if i["kind"] == "tool"]) == 3
                  or "could not be stored" in "".join(answer["warnings"]), kept)
    else:
        box.check(f"{what}: nothing runs", all(r["status"] not in ("queued", "running") for r in rows), rows)
    with box.server([says("again")]):
        box.exits(f"{what}: with room it works again", box.run("run", "one", "y", env=env), FINE, out="again")
    with contextlib.closing(sqlite3.connect(state / "deputy/deputy.db")) as db:
        box.equal(f"{what}: the database is whole", db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])


def test_a_disk_that_fills_up(box):
    """Wherever it becomes full: a run that cannot be recorded is not begun, and what was begun hands its report over."""
    script, lost = filling(box), 0
    for kib in range(64, 400, 16):
        state = box.top / f"state{kib}"
        answer = fill(box, script, f"{kib} KiB", state, preexec_fn=no_larger_than(kib * 1024))
        if answer:
            box.check(f"{kib} KiB: it says what is missing",
                      "could not be stored" in answer["end_reason"] + "".join(answer["warnings"]), answer)
            lost += answer["status"] == "failed"
        if kib % 96 == 16:
            room_again(box, f"{kib} KiB", state, answer)
    box.check("also one that could not be stored itself", lost > 0)


@contextlib.contextmanager
def small_disk(place, kib):
    """A file system of that size in memory; None where none can be had."""
    place.mkdir()
    options = f"size={kib}k,mode=0700"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "deputy-test", place], stderr=subprocess.DEVNULL).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_disk_that_is_full(box):
    """The same with a real one: also what SQLite maps must have its place there, or the process would be killed."""
    script, begun, whole = filling(box), 0, 0
    for kib in (32, 96, 160, 192, 224, 256, 320, 2048):
        with small_disk(box.top / f"disk{kib}", kib) as disk:
            if not disk:
                print("        no file system can be mounted here: only limits of file sizes were tried")
                return
            answer = fill(box, script, f"a disk of {kib} KiB", disk)
            begun += bool(answer)
            whole += bool(answer) and not any("stored" in w for w in [answer["end_reason"], *answer["warnings"]])
            subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
            room_again(box, f"a disk of {kib} KiB", disk, answer)
    box.check("small ones and large ones", 0 < whole < begun < 8, (whole, begun))


def test_a_disk_that_is_already_full(box):
    """Looking goes on, nothing is begun, and what a killed process left is ended when there is room."""
    box.agent("one", "tools: [glob]\n", layer="system")
    with small_disk(box.top / "disk", 1024) as disk:
        if not disk:
            print("        no file system can be mounted here")
            return
        box.env["XDG_STATE_HOME"] = str(disk)
        with box.server([says("whole"), {"hang": True}, says("never sent")]) as server:
            whole = box.run("run", "one", "x", "--json").json()
            killed = box.start("run", "one", "y", "--events")
            while b'"turn"' not in killed.stdout.readline():
                pass
            os.killpg(killed.pid, signal.SIGKILL)
            killed.communicate()
            with contextlib.suppress(OSError), (disk / "junk").open("wb", buffering=0) as junk:
                while junk.write(b"x" * 512):
                    pass
            sent = len(server.requests())
            run = box.run("run", "one", "z")
            box.check("nothing is begun", run.code in (ERRORS, REFUSED) and not run.out, run)
            box.check("and it says why", "deputy.db" in run.err and "No space" in run.err, run)
            box.equal("the model is not asked", len(server.requests()), sent)
        tasks = box.run("tasks", "--json")
        box.check("looking goes on", tasks.code == FINE and whole["id"] in [r["id"] for r in tasks.json()], tasks)
        box.check("what could not be recorded is said", "interrupted" in tasks.out or "No space" in tasks.err, tasks)
        box.equal("replay too", box.run("replay", whole["id"], "--json").json()["report"], whole)
        (disk / "junk").unlink()
        states = sorted(r["status"] for r in box.run("tasks", "--json").json())
        box.equal("with room it is ended", states, ["completed", "interrupted"])


def test_ids_of_another_workspace(box):
    box.agent("one", "tools: [glob]\n")
    with box.server([says("SECRET words")]):
        id = box.run("run", "one", "x", "--json").json()["id"]
    box.check("32 hexadecimal digits", len(id) == 32 and set(id) <= set("0123456789abcdef"))
    other = box.top / "other"
    other.mkdir()
    answer = box.run("-C", other, "replay", id)
    box.check("are unknown there", answer.code == ERRORS and "SECRET" not in answer.out, answer)
    box.equal("and not listed", box.run("-C", other, "tasks", "--json").json(), [])


if __name__ == "__main__":
    main(globals())
