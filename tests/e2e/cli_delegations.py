"""Delegations in the background and of other processes: run --background, --resume, wait, stop, tail, replay, tasks. Each verb
looks from a process of its own at delegations that others run; a scripted server keeps them running as long as a test needs."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from cli_run import bound_by_modes  # noqa: E402
from lib.deputy import (ERRORS, FINE, INTERRUPTED, REFUSED, USAGE, calls, main, says, stripped,  # noqa: E402
                        tool_names)

PATIENCE = 30
GLOB = "tools: [glob]\n"


def until(what, condition):
    """The first true value; the condition is asked until then."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.03)
    raise AssertionError(f"in vain: {what}")


def slow(text, seconds=0, **more):
    """An answer whose text comes at once and which ends later; 0: never."""
    if not seconds:
        return {**says(text, piece=1000), "hang_after": 3, **more}
    # One write for each event, the last ones late.
    return {**says(text, piece=max(1, len(text) // 20)), "write_bytes": 120, "delay_ms": int(seconds * 1000 / 20), **more}


def behind(box, *argv, **more):
    """Starts one in the background; its id."""
    answer = box.run("run", *argv, "--background", **more)
    box.exits(f"in the background: {argv}", answer, FINE)
    return answer.out.strip()


def row_of(box, id, *more):
    return next((r for r in box.run("tasks", "--json", "--all", *more).json() if r["id"] == id), None)


def has_text(box, id, text):
    return text in json.dumps(box.run("replay", id, "--json").json()["activity"], ensure_ascii=False)


def process_of(box, id):
    """The process that runs it: the one whose lock is on the file of its run."""
    run = row_of(box, id)["process"]
    inode = (box.state / "deputy/run" / run).stat().st_ino
    for line in open("/proc/locks", encoding="ascii"):
        words = line.split()
        if "->" not in words and words[5].endswith(f":{inode}"):
            return int(words[4])
    return None


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


def stop_all(box):
    box.run("stop", "--all")


def test_background(box):
    box.agent("one", GLOB)
    with box.server([says("first"), slow("second, so far"), says("third")]) as server:
        answer = box.run("run", "one", "x", "--background", "--description", "D")
        box.exits("the id alone on standard output", answer, FINE, err=["deputy tail", "deputy wait"])
        id = answer.out.strip()
        box.check("32 digits", len(id) == 32 and answer.out == id + "\n", answer)
        until("its end", lambda: row_of(box, id)["status"] == "completed")
        row = row_of(box, id)
        box.equal("its row", (row["agent"], row["task"], row["description"], row["background"]), ("one", "x", "D", True))
        second = box.run("run", "one", "-", "--background", "--json", stdin="from a pipe").json()
        box.equal("--json", list(second), ["id"])
        until("its text", lambda: has_text(box, second["id"], "second, so far"))
        box.equal("it runs when the command has long ended", row_of(box, second["id"])["status"], "running")
        process = process_of(box, second["id"])
        box.check("in a session of its own", process and os.getsid(process) == process, process)
        fds = {os.readlink(f"/proc/{process}/fd/{n}") for n in (0, 1, 2)}
        box.equal("without a terminal", fds, {"/dev/null"})
        box.exits("stop ends it", box.run("stop", second["id"]), FINE, out="stopped")
        until("the process ends too", lambda: not os.path.exists(f"/proc/{process}"))
        box.equal("and nothing is left of it", [p.name for p in (box.state / "deputy/run").iterdir()], [])
        box.equal("the task from standard input", row_of(box, second["id"])["task"], "from a pipe")
        third = behind(box, "one", "x", "--model", "fake/two")
        box.run("wait", third)
        box.equal("--model", server.bodies()[-1]["model"], "two")


def test_background_is_refused_as_a_run(box):
    box.agent("one", GLOB)
    box.agent("new", GLOB, trusted=False)
    with box.server([]) as server:
        box.exits("not trusted", box.run("run", "new", "x", "--background"), REFUSED, err="deputy trust")
        box.exits("nobody", box.run("run", "nobody", "x", "--background"), ERRORS, err="no agent")
        box.exits("an empty task", box.run("run", "one", "", "--background"), ERRORS, err="empty")
        box.exits("no such model", box.run("run", "one", "x", "--background", "--model", "none/x"), ERRORS, err="models add")
        box.equal("nothing was sent", server.requests(), [])
    box.equal("nothing was stored", box.run("tasks", "--json").json(), [])
    box.exits("inside a delegation", box.run("run", "one", "x", "--background", env={"DEPUTY_DELEGATION": "1"}), REFUSED,
              err="inside a delegation")
    for verb in ("wait", "stop", "tail", "replay", "tasks", "_work"):
        box.exits(f"{verb} too", box.run(verb, env={"DEPUTY_DELEGATION": "1"}), REFUSED, err="inside a delegation")
    box.check("the verb of the worker is in no list", "_work" not in box.run("help").out)
    box.exits("nor guessed from its beginning", box.run("_w", "x"), USAGE, err="no verb")


def test_a_worker_that_cannot_begin(box):
    box.agent("one", GLOB)
    with box.server([says("done")]) as server:
        # A row as `run --background` leaves it, whose definition was changed before its process came to it.
        queued = "0" * 31 + "1"
        id = behind(box, "one", "x")
        box.run("wait", id)
        with sqlite3.connect(box.state / "deputy/deputy.db") as db:
            db.row_factory = sqlite3.Row
            row = dict(db.execute("select * from delegations where id = ?", (id,)).fetchone())
            row |= {"id": queued, "ordinal": row["ordinal"] + 1, "status": "queued", "ended_ms": 0, "started_ms": 0,
                    "report": "", "run_id": "", "end_reason": "", "definition_hash": "0" * 64, "delivered_ms": 0,
                    "created_ms": int(time.time() * 1000)}
            marks = ",".join("?" for _ in row)
            db.execute(f"insert into delegations ({','.join(row)}) values ({marks})", list(row.values()))
        before = len(server.requests())
        box.exits("a definition that was changed meanwhile", box.run("_work", queued), REFUSED, err="changed")
        box.equal("its row says so", (row_of(box, queued)["status"], "changed" in row_of(box, queued)["end_reason"]),
                  ("failed", True))
        box.exits("what has ended does not begin again", box.run("_work", queued), ERRORS, err="failed")
        box.equal("nothing was sent", len(server.requests()), before)


def test_wait(box):
    box.agent("one", GLOB)
    box.exits("nothing runs", box.run("wait"), FINE, err="no delegation is running")
    box.equal("--json", box.run("wait", "--json").json(), [])
    box.exits("nobody's", box.run("wait", "abcd"), ERRORS, err="no delegation")
    box.exits("--timeout", box.run("wait", "--timeout", "soon"), USAGE, err="whole number")
    with box.server([says("done"), slow("half"), slow("half")]):
        done = behind(box, "one", "quick")
        answer = box.run("wait", done)
        box.exits("the report", answer, FINE, out="done", err=["completed", f"deputy replay {done[:8]}"])
        box.equal("is delivered", row_of(box, done)["delivered"] != "", True)
        slow1 = behind(box, "one", "slow")
        until("it runs", lambda: row_of(box, slow1)["status"] == "running")
        late = box.run("wait", "--timeout", "1")
        box.exits("the time is over", late, ERRORS, err=["still running after 1 s", slow1[:8], "one"])
        box.check("without a report", late.out == "", late)
        box.exits("0 looks once", box.run("wait", slow1, "--timeout", "0"), ERRORS, err="still running")
        both = box.run("wait", done[:6], slow1, "--any", "--json")
        box.equal("--any: one is enough, prefixes will do", (both.code, [r["id"] for r in both.json()]), (FINE, [done]))
        waiting = box.start("wait", done, slow1, "--json")
        time.sleep(0.3)
        box.check("it waits", waiting.poll() is None)
        box.exits("stop", box.run("stop", slow1), FINE)
        code, out, err = finish(waiting)
        box.equal("both in the order they were named; not all completed",
                  (code, [(r["id"], r["status"]) for r in json.loads(out)]), (ERRORS, [(done, "completed"), (slow1, "stopped")]))
        slow2 = behind(box, "one", "slow")
        waiting = box.start("wait")
        time.sleep(0.5)
        waiting.send_signal(signal.SIGINT)
        code, out, err = finish(waiting)
        box.check("Ctrl-C ends the wait alone", code == INTERRUPTED and "go on" in err and slow2[:8] in err, (code, out, err))
        box.equal("the delegation goes on", row_of(box, slow2)["status"], "running")
        several = box.run("stop", slow2) and box.run("wait", done, slow2)
        box.check("several reports have headings", done[:8] in several.out and slow2[:8] in several.out, several)


def test_a_worker_that_is_killed(box):
    box.agent("one", GLOB)
    with box.server([slow("What there was.")]):
        id = behind(box, "one", "x")
        until("its text", lambda: has_text(box, id, "What there was."))
        process = process_of(box, id)
        waiting = box.start("wait", id)
        tailing = box.start("tail", id)
        time.sleep(0.3)
        os.kill(process, signal.SIGKILL)
        code, out, err = finish(waiting)
    box.check("a wait does not hang", code == ERRORS and "interrupted: process died" in err, (code, out, err))
    box.check("the text is kept", "What there was." in out, (out, err))
    code, out, err = finish(tailing)
    box.check("nor does a tail", code == FINE and "What there was." in out and "interrupted" in out, (code, out, err))
    box.equal("its row", (row_of(box, id)["status"], row_of(box, id)["end_reason"]), ("interrupted", "process died"))
    box.exits("replay", box.run("replay", id), FINE, out=["What there was.", "interrupted"])
    box.exits("stop says that it had ended", box.run("stop", id), FINE, out="had ended already: interrupted")


def test_stop(box):
    box.agent("one", GLOB)
    box.exits("nothing named", box.run("stop"), USAGE, err="--all")
    box.exits("both", box.run("stop", "abcd", "--all"), USAGE, err="not both")
    box.exits("nobody's", box.run("stop", "abcd"), ERRORS, err="no delegation")
    box.exits("nothing runs", box.run("stop", "--all"), FINE, err="no delegation is running")
    with box.server([slow("a"), slow("b"), slow("c")], repeat=True):
        ids = [behind(box, "one", f"task {i}") for i in range(2)]
        here = box.start("run", "one", "in front")
        until("three run", lambda: [r["status"] for r in box.run("tasks", "--json").json()] == ["running"] * 3)
        one = box.run("stop", ids[0][:8], "--json")
        box.equal("one", (one.code, [(r["id"], r["status"], r["end_reason"], r["ended"], r["ended_before"]) for r in one.json()]),
                  (FINE, [(ids[0], "stopped", "stopped by a person", True, False)]))
        rest = box.run("stop", "--all")
        box.exits("all", rest, FINE, out=[ids[1][:8], "stopped"])
        box.check("but not what had ended", ids[0][:8] not in rest.out, rest)
        code, out, err = finish(here)
        box.check("also one in front, of another process", code == ERRORS and "stopped by a person" in err, (code, out, err))
    box.equal("all are stopped", {r["status"] for r in box.run("tasks", "--json").json()}, {"stopped"})


def test_tail(box):
    box.write("a.md", "x\n")
    box.agent("one", GLOB)
    box.exits("nothing runs", box.run("tail"), ERRORS, err="deputy replay")
    with box.server([calls("glob", {"pattern": "*.md"}, text="Looking."), slow("So far.")]) as server:
        id = behind(box, "one", "x")
        tail = box.start("tail")
        other = box.start("tail", id[:8], "--json")
        until("the second call", lambda: len(server.requests()) == 2)
        until("its text", lambda: has_text(box, id, "So far."))
        time.sleep(0.4)
        gone = box.start("tail", id)
        time.sleep(0.4)
        gone.send_signal(signal.SIGINT)
        box.equal("Ctrl-C ends the tail", finish(gone)[0], INTERRUPTED)
        box.equal("and not the delegation", row_of(box, id)["status"], "running")
        box.run("stop", id)
        code, out, err = finish(tail)
        box.check("from the beginning to the end", code == FINE and out.index("turn 1") < out.index("Looking.")
                  < out.index('→ glob {"pattern": "*.md"}') < out.index("turn 2") < out.index("So far.") < out.index("stopped"),
                  (code, out, err))
        code, out, err = finish(other)
        items = [json.loads(line) for line in out.splitlines()]
        box.check("--json: items, each with its delegation", code == FINE and {i["delegation"] for i in items} == {id}, (code, out, err))
        box.equal("the same as replay's", [{k: v for k, v in i.items() if k != "delegation"} for i in items],
                  box.run("replay", id, "--json").json()["activity"])
    after = box.run("tail", id)
    box.exits("one that has ended", after, FINE, out=["turn 1", "Looking.", "stopped by a person"])


def test_tail_of_several(box):
    box.agent("one", GLOB)
    with box.server([slow("Some words.")], repeat=True):
        ids = [behind(box, "one", f"task {i}") for i in range(2)]
        tail = box.start("tail")
        for id in ids:
            until("its text", lambda i=id: has_text(box, i, "Some words."))
        time.sleep(0.4)
        stop_all(box)
        code, out, err = finish(tail)
    box.check("each line with the first digits of its id", code == FINE and all(
        any(line.startswith(i[:8] + " ") and words in line for line in out.splitlines())
        for i in ids for words in ("turn 1", "Some words.", "stopped")), (code, out, err))


def test_two_processes_at_once(box):
    """The same questions from two processes while a third one works."""
    box.agent("one", GLOB)
    with box.server([slow("w " * 40, seconds=2)], repeat=True):
        ids = [behind(box, "one", f"task {i}") for i in range(3)]
        waits = [box.start("wait", *ids, "--json") for _ in range(2)]
        tails = [box.start("tail", ids[0]) for _ in range(2)]
        for i, wait in enumerate(waits):
            code, out, err = finish(wait)
            box.check(f"wait {i}", code == FINE and [r["id"] for r in json.loads(out)] == ids, (code, out, err))
        outs = [finish(t) for t in tails]
        box.check("both tails saw it whole", all(o[0] == FINE and o[1].count("w ") == 40 and "completed" in o[1] for o in outs), outs)
    box.equal("all are completed", {r["status"] for r in box.run("tasks", "--json").json()}, {"completed"})
    with box.server([slow("half")], repeat=True):
        id = behind(box, "one", "x")
        until("it runs", lambda: has_text(box, id, "half"))
        stops = [box.start("stop", id, "--json") for _ in range(2)]
        ends = [finish(s) for s in stops]
        box.check("two stops", all(e[0] == FINE and json.loads(e[1])[0]["status"] == "stopped" for e in ends), ends)


def test_tasks(box):
    box.write("a.md", "x\n")
    box.agent("one", GLOB)
    with box.server([says("done"), calls("glob", {"pattern": "*.md"}), slow("half")], repeat=False):
        done = box.run("run", "one", "in front", "--json").json()["id"]
        box.check("its report has reached who asked", row_of(box, done)["delivered"] != "", row_of(box, done))
        id = behind(box, "one", "behind", "--description", "A label")
        until("its text", lambda: has_text(box, id, "half"))
        row = row_of(box, id)
        box.equal("live facts", (row["status"], row["turns"], row["doing"], row["background"], len(row["process"])),
                  ("running", 2, "waits for the model", True, 32))
        shown = box.run("tasks")
        box.exits("for people", shown, FINE, out=["running", "A label: behind", "turn 2, waits for the model", "runs for",
                                                  "in the background", f"process {row['process'][:8]}"])
        box.exits("rm of what runs", box.run("tasks", "rm", id, done, "--yes"), ERRORS, err=["has not ended", "nothing was removed"])
        box.equal("both are there", len(box.run("tasks", "--json").json()), 2)
        stop_all(box)
    box.exits("rm asks", box.run("tasks", "rm", done), REFUSED, err="--yes")
    asked = box.tty("tasks", "rm", done, id, answers=[("[y/N]", "n\n")])
    box.check("no is no", asked.code == REFUSED and done[:8] in asked.out and len(box.run("tasks", "--json").json()) == 2, asked)
    box.exits("yes", box.tty("tasks", "rm", done, answers=[("[y/N]", "y\n")]), FINE, out=f"removed {done[:8]}")
    box.exits("nothing is left of it", box.run("replay", done), ERRORS, err="no delegation")
    box.exits("--yes", box.run("tasks", "rm", id, "--yes"), FINE, err="removed")
    box.equal("none is left", box.run("tasks", "--json").json(), [])
    box.exits("rm of nothing", box.run("tasks", "rm"), USAGE)
    box.exits("no such word", box.run("tasks", "remove"), USAGE, err="rm or prune")
    box.exits("--limit", box.run("tasks", "--limit", "0"), USAGE)


def age(box, id, days):
    with sqlite3.connect(box.state / "deputy/deputy.db") as db:
        db.execute("update delegations set created_ms = created_ms - ?1, started_ms = started_ms - ?1, ended_ms = ended_ms - ?1, "
                   "delivered_ms = 1 where id = ?2", (days * 86400000, id))


def forget_the_day(box):
    with sqlite3.connect(box.state / "deputy/deputy.db") as db:
        db.execute("delete from settings where key = 'retention:day'")


def test_retention(box):
    box.agent("one", GLOB)
    with box.server([says("done")], repeat=True):
        config = box.read("deputy/config.yaml", box.config)
        ids = [box.run("run", "one", f"{i}", "--json").json()["id"] for i in range(4)]
        for id, days in zip(ids, (400, 11, 9, 0)):
            age(box, id, days)
        listed = lambda: {r["id"] for r in box.run("tasks", "--json").json()}  # noqa: E731
        box.equal("at most once a day", listed(), set(ids))
        forget_the_day(box)
        box.equal("`tasks` applies it", listed(), set(ids[1:]))
        box.write("deputy/config.yaml", config + "retention: {days: 10}\n", box.config)
        box.equal("not again on the same day", listed(), set(ids[1:]))
        box.exits("prune applies it now", box.run("tasks", "prune"), FINE, out=["removed 1 delegation;", "last 10 days"])
        box.equal("what is older than it says is gone", listed(), set(ids[2:]))
        box.write("deputy/config.yaml", config + "retention: {days: 0, count: 1}\n", box.config)
        box.equal("--json", box.run("tasks", "prune", "--json").json(), {"removed": 1})
        box.equal("so many stay", listed(), {ids[3]})
        age(box, ids[3], 400)
        box.write("deputy/config.yaml", config + "retention: {days: many}\n", box.config)
        forget_the_day(box)
        box.equal("a config with errors removes nothing", listed(), {ids[3]})
        box.exits("nor when asked to", box.run("tasks", "prune"), REFUSED, err="config has errors")
        box.write("deputy/config.yaml", config, box.config)
        new = box.run("run", "one", "x", "--json").json()["id"]
        box.equal("a run applies it too", listed(), {new})


def test_replay_is_whole(box):
    box.write("big.md", "".join(f"line {i} of the file\n" for i in range(4000)))
    box.agent("one", "tools: [read, glob]\n")
    think = {"blocks": [{"type": "thinking", "thinking": "First I think.\nThen I act.", "signature": "S"},
                        {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "big.md"}}]}
    with box.server([think, says("Half a", stop_reason="max_tokens"), says(" sentence.")]) as server:
        box.config.joinpath("deputy/config.yaml").open("a").write("limits: {toolKiB: 8}\n")
        id = box.run("run", "one", "x", "--json").json()["id"]
        box.check("a result that was cut can be paged", "read_result" in tool_names(server.bodies()[-1]), server.bodies()[-1]["tools"])
    text = box.run("replay", id)
    box.exits("for people", text, FINE, out=["  ~ First I think.\n  ~ Then I act.\n", '→ read {"path": "big.md"}', "  │ ",
                                             "· continue: ", "Half a", "status: completed", f"result:{id[:8]}-1, ", "ended: "])
    box.check("the whole result", "line 1999 of the file" in text.out, text.out[-500:])
    whole = box.run("replay", id, "--json").json()
    box.equal("results, as JSON", [r["id"] for r in whole["results"]], [f"result:{id[:8]}-1"])
    box.check("with their text", "line 1999 of the file" in whole["results"][0]["text"])
    box.check("context items", "continue" in [i.get("event") for i in whole["activity"]], whole["activity"])


def test_a_long_replay(box):
    """Much activity is shown in pages: the memory does not grow with it."""
    box.agent("one", GLOB)
    with box.server([says("done")]):
        id = box.run("run", "one", "x", "--json").json()["id"]
    peaks = []
    # What a sanitizer keeps back of freed memory would be counted too.
    env = box.env | {"ASAN_OPTIONS": box.env.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}
    for count in (100, 3000):
        with sqlite3.connect(box.state / "deputy/deputy.db") as db:
            workspace, last = db.execute("select workspace_id, max(seq) from activity where delegation_id = ?", (id,)).fetchone()
            data = json.dumps({"kind": "text", "text": "x" * 10000 + "\n"})
            db.executemany("insert into activity (workspace_id, delegation_id, seq, at_ms, kind, data) values (?, ?, ?, 1, 'text', ?)",
                           [(workspace, id, last + 1 + i, data) for i in range(count)])
        for argv in (["replay", id], ["replay", id, "--json"]):
            pid = os.fork()
            if pid == 0:
                os.chdir(box.ws)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.execve(box.deputy, [box.deputy, *argv], env)
            peaks.append(os.wait4(pid, 0)[2].ru_maxrss)
    box.check("30 times as much takes no more memory", max(peaks[2:]) < max(peaks[:2]) + 8192, peaks)
    box.equal("and it is all there", len(box.run("replay", id, "--json").json()["activity"]) > 3100, True)


def test_resume(box):
    box.agent("one", GLOB)
    box.agent("two", GLOB)
    with box.server([says("The first answer."), says("The second answer."), says("The third answer."), slow("x")]) as server:
        first = box.run("run", "one", "the first task", "--json").json()
        second = box.run("run", "one", "and now?", "--resume", first["id"][:8], "--json").json()
        box.equal("it says what it continues", (second["status"], second["resumes"]), ("completed", first["id"]))
        said = json.dumps(server.bodies()[1]["messages"])
        box.check("the model has all that was said", said.index("the first task") < said.index("The first answer.")
                  < said.index("and now?"), said)
        third = behind(box, "one", "and then?", "--resume", second["id"])
        box.exits("in the background", box.run("wait", third), FINE, out="The third answer.")
        replay = box.run("replay", third)
        box.exits("the chain", replay, FINE, out=f"continues: {second['id'][:8]}, {first['id'][:8]}")
        box.equal("as JSON", box.run("replay", third, "--json").json()["continues"], [second["id"], first["id"]])
        before = len(server.requests())
        box.exits("another agent", box.run("run", "two", "x", "--resume", first["id"]), ERRORS, err="not to \"two\"")
        box.exits("nobody's", box.run("run", "one", "x", "--resume", "abcd"), ERRORS, err="no delegation")
        box.exits("no id", box.run("run", "one", "x", "--resume", "zzz", "--background"), ERRORS)
        box.equal("nothing was sent", len(server.requests()), before)
        running = behind(box, "one", "x")
        box.exits("one that runs", box.run("run", "one", "x", "--resume", running), ERRORS, err="has not ended")
        stop_all(box)


def of_main_and_helper(helping):
    """A main agent that starts a helper in the background and ends its turn; each reply finds whom it is for."""
    start = calls("Task", {"agent": "helper", "task": "help", "background": True, "description": "d"})
    return [start, {**says("The turn is over."), "when": "tool_result"}, {**helping, "when_system": "HELPER"}]


def test_main_waits_for_its_own(box):
    """What a main agent started in the background is waited for after its report."""
    box.agent("helper", GLOB, prompt="HELPER")
    with box.server(of_main_and_helper(slow("Helping all the time.", seconds=2))):
        code, out, err = finish(box.start("run", "main", "x"))
    box.check("it says so; the exit code is the run's", code == FINE and "The turn is over." in out
              and "1 delegation in the background still runs" in err, (code, out, err))
    rows = box.run("tasks", "--json", "--all").json()
    box.equal("both have ended", sorted((r["agent"], r["main"], r["status"]) for r in rows),
              [("helper", False, "completed"), ("main", True, "completed")])
    box.equal("--thread", sorted(r["agent"] for r in box.run("tasks", "--json", "--thread", rows[0]["thread"][:8]).json()),
              ["helper", "main"])
    box.equal("without --all the turns are left out", [r["agent"] for r in box.run("tasks", "--json").json()], ["helper"])
    box.exits("no such conversation", box.run("tasks", "--thread", "abcdef"), ERRORS, err="no conversation")
    helper = next(r for r in rows if r["agent"] == "helper")
    box.exits("a person reads its report", box.run("wait", helper["id"]), FINE, out="Helping all the time.")
    box.equal("which does not take it from the main agent", row_of(box, helper["id"])["delivered"], "")


def test_ctrl_c_while_main_waits(box):
    box.agent("helper", GLOB, prompt="HELPER")
    with box.server(of_main_and_helper(slow("Helping."))):
        process = box.start("run", "main", "x")
        until("the helper runs alone", lambda: {r["agent"]: r["status"] for r in box.run("tasks", "--json", "--all").json()}
              == {"main": "completed", "helper": "running"})
        helper = box.run("tasks", "--json").json()[0]["id"]
        until("its text", lambda: has_text(box, helper, "Helping."))
        process.send_signal(signal.SIGINT)
        code, out, err = finish(process)
    box.check("the exit code stays the run's", code == FINE and "The turn is over." in out, (code, out, err))
    box.equal("the helper is stopped", (row_of(box, helper)["status"], row_of(box, helper)["end_reason"]),
              ("stopped", "stopped by a person"))
    box.exits("and keeps what it had", box.run("replay", helper), FINE, out="Helping.")


def test_main_in_the_background(box):
    box.agent("helper", GLOB, prompt="HELPER")
    with box.server([*of_main_and_helper(slow("Helping all the time.", seconds=2)), says("The second turn.")]) as server:
        id = behind(box, "main", "x")
        box.exits("its report", box.run("wait", id), FINE, out="The turn is over.")
        until("its helper ends too", lambda: {r["status"] for r in box.run("tasks", "--json", "--all").json()} == {"completed"})
        second = box.run("run", "main", "and now?", "--resume", id, "--json").json()
        box.equal("a turn that continues it", (second["status"], second["report"]), ("completed", "The second turn."))
        box.check("with all that was said", "The turn is over." in json.dumps(server.bodies()[-1]["messages"]))
    box.equal("stays in its conversation", row_of(box, second["id"])["thread"], row_of(box, id)["thread"])
    with box.server([slow("half")]):
        third = behind(box, "main", "x")
        box.exits("wait without an id waits for it too", box.run("wait", "--timeout", "0"), ERRORS, err=[third[:8], "main"])
        stop_all(box)


def test_two_ctrl_c(box):
    box.agent("one", GLOB)
    with box.server([{**slow("Half."), "hang_after": 3}]):
        process = box.start("run", "one", "x")
        until("it runs", lambda: any(has_text(box, r["id"], "Half.") for r in box.run("tasks", "--json").json()))
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        code, out, err = finish(process)
    box.equal("exit 130", code, INTERRUPTED)
    row = box.run("tasks", "--json").json()[0]
    box.check("it has ended either way, with its text", row["status"] in ("stopped", "interrupted")
              and "Half." in box.run("replay", row["id"]).out, row)


def test_ambiguous_beginnings(box):
    box.agent("one", GLOB)
    with box.server([says("done")], repeat=True):
        id = box.run("run", "one", "x", "--json").json()["id"]
    with sqlite3.connect(box.state / "deputy/deputy.db") as db:
        db.row_factory = sqlite3.Row
        row = dict(db.execute("select * from delegations where id = ?", (id,)).fetchone())
        twin = row["id"][:8] + ("0" if row["id"][8] != "0" else "1") + row["id"][9:]
        row |= {"id": twin, "ordinal": row["ordinal"] + 1}
        db.execute(f"insert into delegations ({','.join(row)}) values ({','.join('?' for _ in row)})", list(row.values()))
    for argv in (["wait"], ["stop"], ["tail"], ["replay"], ["tasks", "rm", "--yes"], ["run", "one", "x", "--resume"]):
        box.exits(f"{argv[0]} names the candidates", box.run(*argv, id[:8]), ERRORS, err=[id, twin])
    for argv in (["wait"], ["stop"], ["tail"], ["replay"]):
        for bad in ("xyz", "abc", "' OR 1=1 --"):
            answer = box.run(*argv, "--", bad)
            box.check(f"{argv[0]} {bad!r}", answer.code == ERRORS and not answer.out, answer)


def test_state_that_can_only_be_read(box):
    box.write("a.md", "# Spout\nspout\n")
    box.agent("one", GLOB + "knowledge: [{name: M, path: '*.md'}]\n")
    with box.server([says("The answer.")]) as server:
        id = box.run("run", "one", "x", "--json").json()["id"]
        state = box.state / "deputy"
        for path in [*state.rglob("*")]:
            path.chmod(0o500 if path.is_dir() else 0o400)
        state.chmod(0o500)
        sent = len(server.requests())
        for argv in (["run", "one", "x"], ["run", "one", "x", "--background"], ["run", "one", "x", "--resume", id]):
            answer = box.run(*argv, preexec_fn=bound_by_modes)
            box.check(f"{argv[2:]}: refused before the first call", answer.code not in (FINE, USAGE) and "was not run" in answer.err
                      and not answer.out, answer)
        box.equal("the server saw nothing", len(server.requests()), sent)
        for argv, out in ((["tasks"], "completed"), (["replay", id], "The answer."), (["wait", id], "The answer."),
                          (["tail", id], "The answer.")):
            box.exits(f"{argv[0]} works and says so", box.run(*argv, preexec_fn=bound_by_modes), FINE, out=out, err="read only")
        for argv, out in ((["show", "one"], "one"), (["search", "spout"], "a.md")):
            box.exits(f"{argv[0]} works", box.run(*argv, preexec_fn=bound_by_modes), FINE, out=out)
        box.exits("stop of what has ended", box.run("stop", id, preexec_fn=bound_by_modes), FINE, out="had ended")
        for argv in (["tasks", "rm", id, "--yes"], ["tasks", "prune"]):
            answer = box.run(*argv, preexec_fn=bound_by_modes)
            box.check(f"{' '.join(argv[:2])} is refused", answer.code in (ERRORS, REFUSED) and answer.err, answer)


def test_escapes(box):
    evil = "\x1b]0;title\x07\x1b[2J\u202eevil\r\nnext"
    box.agent("one", GLOB)
    with box.server([calls("g\x1b[2J", {"x\x1b[2J": evil}, text=evil), slow(evil)]):
        id = behind(box, "one", evil, "--description", evil)
        until("its text", lambda: len(box.run("replay", id, "--json").json()["activity"]) > 5)
        answers = [box.run("tasks"), box.run("wait", id, "--timeout", "0"), box.run("stop", id), box.run("wait", id),
                   box.run("tail", id), box.run("replay", id)]
        for answer in answers:
            box.check(f"{answer.argv[0]}: nothing steers the terminal", not any(c in answer.out + answer.err for c in "\x1b\x07\u202e\r"),
                      repr(answer.out + answer.err))
    box.equal("--json is exact", box.run("wait", id, "--json").json()[0]["report"], evil)


def test_closed_pipe(box):
    box.agent("one", GLOB)
    with box.server([slow("x")]):
        id = behind(box, "one", "x")
        until("it runs", lambda: has_text(box, id, "x"))
        read_end, write_end = os.pipe()
        os.close(read_end)
        tail = subprocess.Popen([box.deputy, "tail", id], cwd=box.ws, env=box.env, stdout=write_end, stderr=subprocess.PIPE)
        os.close(write_end)
        err = tail.communicate(timeout=PATIENCE)[1].decode()
        box.check("a tail whose reader has gone ends", tail.returncode == ERRORS and "standard output" in err, (tail.returncode, err))
        stop_all(box)
    with open("/dev/full", "wb") as full:
        end = subprocess.run([box.deputy, "wait", id], cwd=box.ws, env=box.env, stdout=full, stderr=subprocess.PIPE)
    box.check("a report that could not be printed", end.returncode == ERRORS and b"standard output" in end.stderr, end)
    box.equal("is not delivered", row_of(box, id)["delivered"], "")
    box.run("wait", id)
    box.check("until it is printed", row_of(box, id)["delivered"] != "")


def test_on_a_terminal(box):
    box.write("a.md", "x\n")
    box.agent("one", GLOB)
    with box.server([calls("glob", {"pattern": "*.md"}, text="Looking."), says("Done.")]):
        shown = box.tty("run", "one", "x", "--background", out="pipe")
        id = shown.out.strip()
        box.check("the id goes down the pipe alone", len(id) == 32 and "deputy tail" in shown.err, shown)
        box.run("wait", id)
    tail = box.tty("tail", id)
    box.exits("in colours", tail, FINE, out=["\x1b[2m· turn 1", "Looking.", "glob"])
    replay = box.tty("replay", id)
    box.exits("replay too", replay, FINE, out=["\x1b[1mturn 1", "status: completed"])
    box.check("nothing else", "→ glob" in stripped(replay.out), replay)


if __name__ == "__main__":
    main(globals())
