"""The run loop against a scripted Anthropic server: the last turn, repeated calls, results that are cut and paged, a conversation
that outgrows its window, what the provider's cache rests on, and stops that reach whatever runs."""

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from lib.deputy import (ERRORS, FINE, INTERRUPTED, calls, main, result_text, results_of, says, tool_names)  # noqa: E402


def configure(box, text):
    box.config.joinpath("deputy/config.yaml").open("a").write(text)


def run(box, *more):
    return box.run("run", "one", "x", "--json", *more).json()


def texts(message):
    return [b["text"] for b in message["content"] if b["type"] == "text"]


# --- Ends

def test_the_last_turn(box):
    box.write("a.txt", "x\n")
    box.agent("one", "tools: [read]\nmaxTurns: 3\n")
    reads = [calls("read", {"path": "a.txt", "limit": n}) for n in (1, 2, 3)]
    with box.server([*reads[:2], says("what I have")]) as server:
        report = run(box)
        first, second, last = server.bodies()
    box.equal("it ends with what it has", (report["status"], report["report"], report["turns"]), ("completed", "what I have", 3))
    box.check("and says that it was asked to", any("wrap up" in w for w in report["warnings"]), report["warnings"])
    box.check("the tools stay, so that the cache holds", last["tools"] == first["tools"] and "tool_choice" not in last)
    box.check("the model is told, behind its results", "last step" in texts(last["messages"][-1])[0]
              and last["messages"][-1]["content"][0]["type"] == "tool_result", last["messages"][-1])
    box.check("and was not told before", not any("last step" in t for m in second["messages"] for t in texts(m)))
    with box.server(reads) as server:
        report = run(box)
        box.equal("a call that comes anyway is not run",
                  (report["status"], report["end_reason"], report["tool_calls"], len(server.requests())),
                  ("truncated", "max turns: 3", 2, 3))


def test_the_same_call(box):
    box.write("a.txt", "x\n")
    box.agent("one", "tools: [read]\n")
    with box.server([calls("read", {"path": "a.txt"}, text="again")], repeat=True) as server:
        report = run(box)
        bodies = server.bodies()
    results = [result_text(results_of(b)[0]) for b in bodies[1:]]
    box.check("twice it is run", all("x" in r for r in results[:2]), results)
    box.check("then the model is told", all(r.startswith("Not run: you have made this same call in") for r in results[2:]), results)
    box.equal("then it ends", (report["status"], report["end_reason"], len(bodies)),
              ("truncated", "identical calls: the same call was made in 6 answers in a row", 6))
    box.equal("with the text it had", report["report"], "again")
    with box.server([*[calls("read", {"path": "a.txt"})] * 2, calls("read", {"path": "a.txt", "limit": 1}),
                     *[calls("read", {"path": "a.txt"})] * 2, says("done")]):
        box.equal("another call in between begins anew", run(box)["status"], "completed")


def test_what_is_odd_is_told(box):
    box.agent("one", "tools: [read]\n")
    with box.server([{"blocks": [], "stop_reason": "end_turn", "usage": None, "model": "other"}]):
        warnings = run(box)["warnings"]
    for words in ("no tool was called", "the report is empty", "it is estimated", "answered with the model \"other\""):
        box.check(words, any(words in w for w in warnings), warnings)


# --- Loads

def test_loads_come_back(box):
    box.write("a.txt", "needle\n")
    box.agent("one", "tools: [read, glob, grep, todo]\nresident: [read]\n")
    with box.server([calls("load_tools", {"name": "nothing"}), calls("load_tools", {"name": "todo"}, id="l1"),
                     calls("load_tools", {"name": "grep"}, id="l2"), says("ready")]) as server:
        first = run(box)
        last = server.bodies()[-1]
    box.equal("in the order of loading", tool_names(last)[-2:], ["todo", "grep"])
    with box.server([calls("grep", {"pattern": "needle"}, id="g1"), says("found")]) as server:
        again = run(box, "--resume", first["id"])
        one, two = server.bodies()
    box.equal("a continued one begins with them", (again["status"], one["tools"]), ("completed", last["tools"]))
    box.check("and they can be called at once", "a.txt:1" in result_text(results_of(two)[0]), two["messages"][-1])
    box.agent("one", "tools: [read, glob, todo]\nresident: [read]\n")
    with box.server([calls("grep", {"pattern": "needle"}, id="g1"), says("no")]) as server:
        less = run(box, "--resume", first["id"])
        denied = result_text(results_of(server.bodies()[1])[0])
    box.check("what is not granted any more does not", "needle" not in denied and less["status"] == "completed", denied)
    box.check("and that is a warning", any("grep" in w for w in less["warnings"]), less["warnings"])


# --- Results that are cut

def test_a_cut_result_is_kept_and_paged(box):
    box.write("big.txt", "".join(f"line {n} ä\n" for n in range(400)))
    box.agent("one", "tools: [read, grep]\n")
    with box.server([calls("read", {"path": "big.txt"}), says("enough")]) as server:
        configure(box, "limits: {toolKiB: 1}\n")
        first = run(box)
        cut = result_text(results_of(server.bodies()[1])[0])
        tools = [tool_names(b) for b in server.bodies()]
    box.check("the model is told how to go on", "read_result with id result:" in cut.rsplit("\n", 1)[1], cut[-200:])
    box.equal("the tool for it comes only then, at the end", tools, [["read", "grep"], ["read", "grep", "read_result"]])
    box.check("that costs the cache once", first["cache_breaks"] == 1, first)
    ident = cut.split("with id ", 1)[1].split(" ", 1)[0]
    head, offset = cut.rsplit("\n[cut", 1)[0], int(cut.rsplit("offset ", 1)[1].rstrip("]"))
    box.equal("cut at a character", (len(head.encode()), head.encode().decode()), (offset, head))

    # Ids are each delegation's own, so the pages are asked for when the first id is known: by continuing it.
    pages = [{"blocks": [{"type": "tool_use", "id": f"p{n}", "name": "read_result",
                          "input": {"id": ident, "offset": n, "limit": 900}}]} for n in range(offset, 8000, 850)]
    with box.server([*pages, says("all of it")]) as server:
        configure(box, "limits: {toolKiB: 1}\n")
        again = run(box, "--resume", first["id"])
        got = [result_text(results_of(b)[0]) for b in server.bodies()[1:]]
    box.equal("a resumed one may page it too", again["status"], "completed")
    whole = head.encode()
    for n, text in zip(range(offset, 8000, 850), got):
        if "behind its end" in text:
            continue
        while len(whole[:n].decode("utf-8", "ignore").encode()) < n:
            n -= 1  # a page begins at a character
        whole = whole[:n] + text.rsplit("\n[bytes", 1)[0].encode()
    lines = whole.decode().splitlines()
    box.equal("every line is there, in order", [l.split("\t")[1] for l in lines if "\t" in l][:400],
              [f"line {n} ä" for n in range(400)])
    with box.server([calls("read_result", {"id": ident}), says("no")]) as server:
        configure(box, "limits: {toolKiB: 1}\n")
        run(box)
        denied = result_text(results_of(server.bodies()[1])[0])
    box.check("another delegation has no such result", "line" not in denied, denied)


# --- The window

BIG = "".join(f"needle {n} in a haystack\n" for n in range(120))


def usage(tokens):
    return {"usage": {"input_tokens": tokens, "output_tokens": 10}}


def test_a_conversation_that_nears_its_window(box):
    for n in (1, 2, 3):
        box.write(f"{n}.txt", BIG)
    box.agent("one", "tools: [read]\n")
    script = [calls("read", {"path": "1.txt"}, text="I look.", **usage(1000)), calls("read", {"path": "2.txt"}, **usage(3000)),
              calls("read", {"path": "3.txt"}, **usage(7600)), says("done", **usage(9000))]
    with box.server(script) as server:
        configure(box, "    window: 10000\n")
        report = run(box)
        one, two, three, four = server.bodies()
    results = [[result_text(r) for m in b["messages"] for r in m["content"] if r["type"] == "tool_result"] for b in (two, three, four)]
    box.check("below 80 % nothing is touched", all("needle 119" in r for r in results[0] + results[1]))
    box.check("above, older results are folded", all(r.startswith("[folded: the ") and "of read" in r for r in results[2][:2]), results[2][0][:200])
    box.check("the newest stays", "needle 119" in results[2][2])
    box.check("task, prompt and the model's words stay", four["system"] == one["system"]
              and four["messages"][0]["content"][0]["text"] == one["messages"][0]["content"][0]["text"]
              and "I look." in texts(four["messages"][1]), four["messages"][:2])
    box.equal("it is one break of the cache", report["cache_breaks"], 1)
    box.check("and said", any("2 older tool results" in w for w in report["warnings"]), report["warnings"])
    replay = box.run("replay", report["id"], "--json").json()
    events = [i for i in replay["activity"] if i.get("kind") == "context"]
    box.check("the replay has it", any(e.get("event") == "fold" for e in events), events)


TOO_LONG = {"status": 400, "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}


def test_a_provider_that_finds_it_too_long(box):
    for n in (1, 2):
        box.write(f"{n}.txt", BIG)
    box.agent("one", "tools: [read]\n")
    reads = [calls("read", {"path": "1.txt"}, text="so far"), calls("read", {"path": "2.txt"})]
    with box.server([*reads, TOO_LONG, says("done")]) as server:
        report = run(box)
        sizes = [len(json.dumps(b)) for b in server.bodies()]
    box.equal("it is folded and sent once more", (report["status"], len(sizes), sizes[3] < sizes[2]), ("completed", 4, True))
    with box.server([*reads, TOO_LONG, TOO_LONG, says("never")]) as server:
        report = run(box)
        box.equal("once, then it ends with its text", (report["status"], report["report"], len(server.requests())), ("failed", "so far", 4))
    with box.server([{**TOO_LONG}]) as server:
        report = run(box)
        box.equal("nothing to fold: no second try", (report["status"], len(server.requests())), ("failed", 1))


# --- What the provider's cache rests on

def unmarked(value):
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(v) for v in value] if isinstance(value, list) else value


def dumped(values):
    return [json.dumps(v, ensure_ascii=False) for v in unmarked(values)]


def marks(value):
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(marks(v) for v in value.values())
    return sum(marks(v) for v in value) if isinstance(value, list) else 0


def test_each_request_begins_with_the_one_before(box):
    box.write("a.md", "# Kettle\nRinse the spout.\n")
    box.agent("one", "tools: [read, glob, grep, todo]\nresident: [read, kb_search, memory]\nmemory: private\n"
              "knowledge: [{name: M, path: '*.md'}]\n")
    script = [{"blocks": [{"type": "thinking", "thinking": "hm", "signature": "SIG=="}, {"type": "text", "text": "I search."},
                          {"type": "tool_use", "id": "t1", "name": "kb_search", "input": {"query": "spout"}},
                          {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "a.md"}}]},
              calls("load_tools", {"name": "grep"}, id="t3"), calls("grep", {"pattern": "spout"}, id="t4"),
              {"blocks": [{"type": "tool_use", "id": "t5", "name": "todo", "input_raw": '{"items": ['}]},
              calls("memory_write", {"content": "a fact"}, id="t6"), says("done")]
    with box.server(script) as server:
        report = run(box)
        bodies = server.bodies()
    box.equal("it went through", (report["status"], len(bodies)), ("completed", 6))
    for before, after in zip(bodies, bodies[1:]):
        for part in ("tools", "system", "messages"):
            x, y = dumped(before[part]), dumped(after[part])
            box.check(f"{part} of request {bodies.index(after) + 1} begin with those of the one before", y[:len(x)] == x,
                      f"{x}\n{y}")
    box.check("at most four marks", all(1 <= marks(b) <= 4 for b in bodies), [marks(b) for b in bodies])
    box.equal("the load is at the end and rewrites the cache once",
              (tool_names(bodies[2])[-1], tool_names(bodies[2])[:-1] == tool_names(bodies[0]), report["cache_breaks"]), ("grep", True, 1))
    echoed = bodies[1]["messages"][1]["content"]
    box.equal("thinking is echoed with its signature", echoed[0], {"type": "thinking", "thinking": "hm", "signature": "SIG=="})


def test_equal_runs_send_equal_first_requests(box):
    box.agent("one", "tools: [read, glob]\nmemory: private\n")
    for _ in range(3):  # the date has minutes: a run at the turn of one is tried again
        sent = []
        for _ in range(2):
            with box.server([says("done")]) as server:
                run(box)
                sent.append(json.dumps(server.bodies()[0]))
        if sent[0] == sent[1]:
            break
    box.equal("byte for byte", sent[0], sent[1])


def test_the_same_tasks_start_nothing(box):
    box.agent("one", "tools: [glob]\n")
    two = {"blocks": [{"type": "tool_use", "id": f"toolu_{n}", "name": "Task",
                       "input": {"agent": "one", "task": f"look {n}", "description": "d"}} for n in (1, 2)]}
    looks = [{"newest": f"look {n}", **says("seen")} for n in (1, 2) for _ in range(9)]
    with box.server([*looks, *[two] * 3, says("I give up.")]) as server:
        report = box.run("run", "main", "x", "--json").json()
        asked = [b for b in server.bodies() if "Task" not in tool_names(b)]
        results = [result_text(r) for r in results_of(server.bodies()[-1])]
    box.equal("it ends", (report["status"], report["report"]), ("completed", "I give up."))
    box.check("the third time the model is told", all(r.startswith("Not run: ") for r in results[-2:]), results)
    box.equal("and no subagent began", len(asked), 4)


def test_ids_of_tasks(box):
    box.agent("one", "tools: [glob]\n")
    task = {"agent": "one", "task": "look", "description": "d"}
    waits = [calls("TaskWait", {"ids": ["12"]}), calls("TaskStop", {"ids": ["abcdef"]}),
             calls("TaskWait", {"ids": ["0123"] * 1000}), calls("TaskWait", {"ids": ["0123"] * 1001})]
    with box.server([{"newest": "look", **says("seen")}, calls("Task", task), *waits, says("done")]) as server:
        report = box.run("run", "main", "x", "--json").json()
        results = [result_text(r) for r in (results_of(b)[0] for b in server.bodies()[3:])]
    box.equal("it ends", (report["status"], report["report"]), ("completed", "done"))
    for text, says_so in zip(results, ["too short for an id", 'no delegation "abcdef" in this conversation',
                                       'no delegation "0123"', "1001 ids are too many; at most 1000"]):
        box.check(f"the model is told: {says_so}", says_so in text, results)


def test_a_paused_turn_before_the_last(box):
    box.agent("one", "tools: [glob]\nmaxTurns: 2\n")
    with box.server([says("half", stop_reason="pause_turn"), says("whole")]) as server:
        report = run(box)
        last = server.bodies()[-1]["messages"][-1]
    box.equal("it ends with its answer", (report["status"], report["report"]), ("completed", "whole"))
    box.equal("what paused is sent as it came", (last["role"], texts(last)), ("assistant", ["half"]))


# --- Stops

def stopped(box, *more, when, env=None):
    """Starts a run, sends SIGINT when `when()` says so, and gives the report and how long the end took."""
    process = subprocess.Popen([box.deputy, "run", "one", "x", "--json", *more], cwd=box.ws, env=box.environment(env),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    for _ in range(600):
        if when() or process.poll() is not None:
            break
        time.sleep(0.05)
    time.sleep(0.2)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    return process.returncode, json.loads(out), time.monotonic() - begun


def test_a_stop_while_notes_are_locked(box):
    box.agent("one", "memory: private\n")
    with box.server([calls("memory_write", {"content": "first"}), says("ok")]):
        run(box)
    lock = os.open(box.ws / ".deputy/agent-memory/one/.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with box.server([calls("memory_write", {"content": "second"}, text="I note it."), says("never")]) as server:
        code, report, took = stopped(box, when=lambda: len(server.requests()) == 1)
    os.close(lock)
    box.equal("it ends as stopped, with its text", (code, report["status"], report["report"]), (INTERRUPTED, "stopped", "I note it."))
    box.check("long before the lock would be given up", took < 5, took)
    box.check("nothing was written", "second" not in box.read(".deputy/agent-memory/one/MEMORY.md"))


def test_a_stop_while_a_pattern_runs_away(box):
    box.write("a.txt", "a" * 400_000 + "!\n")
    box.agent("one", "tools: [grep]\n")
    with box.server([calls("grep", {"pattern": "(a|aa|a?a)+$"}, text="I look."), says("never")], repeat=True) as server:
        code, report, took = stopped(box, when=lambda: len(server.requests()) == 1)
    box.check("it ends as stopped, or had ended by its own bound", report["status"] in ("stopped", "truncated", "completed"), report)
    box.check("at once", took < 5, took)


def test_a_stop_while_the_server_is_silent(box):
    box.agent("one", "tools: [glob]\n")
    for reply in ({"hang": True}, {**says("half of it"), "hang_after": 3}):
        with box.server([reply]) as server:
            code, report, took = stopped(box, when=lambda: len(server.requests()) == 1)
        box.equal("it ends as stopped", (code, report["status"], report["end_reason"]), (INTERRUPTED, "stopped", "stopped by a person"))
        box.check("at once", took < 5, took)


def connections(port):
    """How many connections to a local port are open, seen from the client."""
    rows = open("/proc/net/tcp").read().splitlines()[1:]
    return sum(row.split()[2].endswith(f":{port:04X}") and row.split()[3] == "01" for row in rows)


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_a_stop_while_the_store_is_locked(box):
    box.agent("one", "tools: [glob]\n")
    with box.server([says("word " * 2000, piece=5, write_bytes=100, delay_ms=20)]) as server:
        process = box.start("run", "one", "x", "--json")
        box.check("it streams", until(lambda: connections(server.port) == 1, 30))
        store = sqlite3.connect(box.state / "deputy/deputy.db", isolation_level=None)
        store.execute("BEGIN IMMEDIATE")
        time.sleep(1)  # some batches cannot be written
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        box.check("the stream ends although nothing can be stored", until(lambda: connections(server.port) == 0, 8))
        took = time.monotonic() - begun
        box.check("within moments", took < 3, took)
        store.execute("ROLLBACK")
        store.close()
        out, _ = process.communicate(timeout=30)
    report = json.loads(out)
    box.equal("it ends as stopped", (process.returncode, report["status"]), (INTERRUPTED, "stopped"))
    box.check("with its text", report["report"].startswith("word word"), report)
    box.check("and nothing was lost meanwhile", not any("could not be stored" in w for w in report["warnings"]), report["warnings"])
    items = box.run("replay", report["id"], "--json").json()["activity"]
    text = "".join(i["text"] for i in items if i["kind"] == "text")
    box.equal("the activity is whole", text, report["report"])


if __name__ == "__main__":
    main(globals())
