"""run, tasks and replay: with the built-in `quote` model and with a scripted Anthropic server. What the model gets, what the
person sees, how each kind of end is told, and what is kept."""

import ctypes
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from lib.deputy import (ERRORS, FINE, INTERRUPTED, REFUSED, USAGE, calls, main, result_text, results_of,  # noqa: E402
                        says, tool_names)

QUOTES = "tools: [read]\nknowledge: [{name: M, path: '*.md'}]\n"


def quoting(box):
    box.write("a.md", "# Kettle\nRinse the spout.\n")
    box.agent("one", QUOTES)


def test_quote_offline(box):
    quoting(box)
    answer = box.run("run", "one", "spout")
    box.exits("the report on standard output, all else on the other", answer, FINE, out="a.md:2: Rinse the spout.",
              err=["completed", "2 turns, 1 tool call", "deputy replay"])
    box.check("plain when piped", "turn 1" not in answer.err and "\x1b" not in answer.out + answer.err, answer)
    report = box.run("run", "one", "spout", "--json")
    r = report.json()
    box.check("--json: the report object alone", report.code == FINE and not report.err, report)
    box.check("its shape", {"id", "agent", "status", "end_reason", "report", "definition_hash", "model", "turns", "tool_calls",
              "usage", "cost", "memory_writes", "cards", "warnings"} <= set(r), r)
    box.equal("its values", (r["agent"], r["status"], r["turns"], r["tool_calls"], r["model"]["requested"]),
              ("one", "completed", 2, 1, "quote/passages"))
    required = json.loads(box.run("schema", "report").out)["required"]
    box.check("what the schema requires is there", set(required) <= set(r), required)
    events = box.run("run", "one", "spout", "--events")
    items = events.lines()
    box.equal("--events: items, the report last", [i.get("kind") for i in items],
              ["status", "turn", "text", "tool", "turn", "text", "status", None] if items[2]["kind"] == "text" else
              ["status", "turn", "tool", "turn", "text", "status", None])
    box.equal("the same report", items[-1]["report"], r["report"])
    box.exits("the task from standard input", box.run("run", "one", "-", stdin="spout\n"), FINE, out="a.md:2")
    shown = box.tty("run", "one", "spout")
    box.exits("live on a terminal", shown, FINE, out=["turn 1", "kb_search", "a.md:2", "completed"])
    box.equal("and the report once", shown.out.count("a.md:2: Rinse"), 1)
    half = box.tty("run", "one", "spout", out="pipe")
    box.check("piped, with progress on the terminal", "a.md:2" in half.out and "turn 1" in half.err and "turn" not in half.out, half)
    box.exits("a key that waits is hinted at", box.run("run", "one", "spout", env={"ANTHROPIC_API_KEY": "k"}), FINE,
              err="deputy models add anthropic")


def test_what_does_not_start(box):
    quoting(box)
    before = len(box.tree(box.top))
    for task in ("", "  ", "\n"):
        box.exits(f"the task {task!r}", box.run("run", "one", task), ERRORS, err="empty")
    box.exits("an empty standard input", box.run("run", "one", "-", stdin=""), ERRORS, err="empty")
    box.exits("no UTF-8", box.run("run", "one", "-", stdin=b"\xff\xfe"), ERRORS, err="UTF-8")
    box.exits("over the limit", box.run("run", "one", "-", stdin="x" * (256 * 1024 + 1)), ERRORS, err="262144")
    box.exits("a task in several words", box.run("run", "one", "two", "words"), USAGE, err="quote")
    box.exits("nobody", box.run("run", "nobody", "x"), ERRORS, err="no agent")
    box.exits("--level", box.run("run", "one", "x", "--level=full"), USAGE, err="not yet")
    box.exits("--events of one in the background", box.run("run", "one", "x", "--background", "--events"), USAGE, err="deputy tail")
    box.exits("--role", box.run("run", "one", "x", "--role", "boss"), USAGE, err="delegate or main")
    box.exits("--model without a provider", box.run("run", "one", "x", "--model", "m"), ERRORS, err="provider/model")
    box.exits("--model nobody has", box.run("run", "one", "x", "--model", "nobody/m"), ERRORS, err="deputy models add nobody")
    box.agent("cost", QUOTES + "model: lab/m\nlimits: {cost: 1}\n")
    box.exits("limits.cost without a price", box.run("run", "cost", "x"), REFUSED, err=["lab/m has no price", "config set"])
    box.agent("bad", "tools: [raed]\n")
    box.exits("errors", box.run("run", "bad", "x"), REFUSED, err="deputy check bad")
    box.agent("hands", "tools: [write]\n")
    box.exits("no tool that exists", box.run("run", "hands", "x"), ERRORS, err=["hands", "no tool"])
    box.agent("new", QUOTES, trusted=False)
    box.exits("not trusted", box.run("run", "new", "x"), REFUSED, err="deputy trust")
    box.equal("nothing was stored", box.run("tasks", "--json").json(), [])
    box.check("nor written beside the files of this test", len(box.tree(box.top)) <= before + 6)
    box.exits("at the limit it starts", box.run("run", "one", "-", stdin="spout " + "x" * (256 * 1024 - 6)), FINE)


def test_tasks_and_replay(box):
    box.exits("none yet", box.run("tasks"), FINE, out="nothing was delegated")
    box.exits("none yet", box.run("replay", "abcd"), ERRORS, err="nothing was delegated")
    box.check("looking makes no database", not (box.state / "deputy/deputy.db").exists())
    quoting(box)
    ids = [box.run("run", "one", f"spout {i}", "--json", "--description", f"D{i}").json()["id"] for i in range(3)]
    rows = box.run("tasks", "--json").json()
    box.equal("newest first", [r["id"] for r in rows], ids[::-1])
    box.check("shape", all({"id", "agent", "task", "model", "status", "started", "ended"} <= set(r) for r in rows), rows)
    box.equal("values", (rows[0]["agent"], rows[0]["task"], rows[0]["description"], rows[0]["status"]),
              ("one", "spout 2", "D2", "completed"))
    box.equal("--limit", [r["id"] for r in box.run("tasks", "--limit", "1", "--json").json()], ids[2:])
    box.exits("for people", box.run("tasks"), FINE, out=[ids[0][:8], "completed", "spout 0"])
    replay = box.run("replay", ids[1])
    box.exits("replay", replay, FINE, out=["spout 1", "\nturn 1\n→ kb_search", "a.md:2", "status: completed", "report:"])
    whole = box.run("replay", ids[1], "--json").json()
    box.check("as JSON", {"id", "task", "status", "definition", "grant", "report", "activity"} <= set(whole)
              and [i["kind"] for i in whole["activity"]][-1] == "status" and whole["report"]["id"] == ids[1], whole)
    box.check("the definition as it was", whole["definition"].startswith("name: one"), whole["definition"])
    box.exits("a beginning will do", box.run("replay", ids[1][:8]), FINE, out="spout 1")
    box.exits("three digits will not", box.run("replay", ids[1][:3]), ERRORS, err="first 4")
    box.exits("nobody's", box.run("replay", "0" * 32), ERRORS)
    for bad in ("xyz!", "%%%%", "", "' OR 1=1 --"):
        answer = box.run("replay", "--", bad)
        box.check(f"replay {bad!r}", answer.code == ERRORS and not answer.out, answer)
    elsewhere = box.run("-C", box.tmp, "replay", ids[1])
    box.exits("another workspace does not see it", elsewhere, ERRORS)


def test_ambiguous_beginning(box):
    quoting(box)
    box.run("run", "one", "spout")
    with sqlite3.connect(box.state / "deputy/deputy.db") as db:
        table = next(t for (t,) in db.execute("select name from sqlite_master where type='table' and name like 'delegation%'"))
        first = db.execute(f"select * from {table}").fetchone()
        names = [c[1] for c in db.execute(f"pragma table_info({table})")]
        twin = dict(zip(names, first))
        twin["ordinal"] += 1
        twin["id"] = twin["id"][:6] + ("0" if twin["id"][6] != "0" else "1") + twin["id"][7:]
        marks = ",".join("?" for _ in names)
        db.execute(f"insert into {table} ({','.join(names)}) values ({marks})", [twin[n] for n in names])
    answer = box.run("replay", twin["id"][:6])
    box.exits("two that begin so", answer, ERRORS, err="several delegations")
    box.exits("one digit more", box.run("replay", twin["id"][:7]), FINE)


def test_a_tool_call_in_pieces(box):
    box.write("a.md", "one\ntwo — zwei\n")
    box.agent("one", "tools: [read, glob]\n", prompt="BODY")
    replies = [{"blocks": [{"type": "thinking", "thinking": "I think", "signature": "SIG"},
                           {"type": "text", "text": "Looking."},
                           {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.md"}},
                           {"type": "tool_use", "id": "t2", "name": "glob", "input": {"pattern": "*.md"}}],
                "piece": 1, "ping": True, "write_bytes": 3, "line_end": "\r\n", "comments": True},
               says("The answer — fertig.", piece=2, write_bytes=1)]
    with box.server(replies) as server:
        run = box.run("run", "one", "what is in a.md?", "--json").json()
        first, second = server.bodies()
        headers = server.requests()[0]["headers"]
    box.equal("the report", (run["status"], run["report"], run["turns"], run["tool_calls"]),
              ("completed", "The answer — fertig.", 2, 2))
    box.equal("usage of both calls", (run["usage"]["input_tokens"], run["usage"]["output_tokens"]), (20, 40))
    box.check("the request", first["stream"] and first["model"] == "one" and "anthropic-version" in headers, first)
    box.check("the system text is the prompt", box.run("prompt", "one").out == "".join(p["text"] for p in first["system"]), first)
    box.equal("the tools are what `tools` prints", tool_names(first), [t["name"] for t in box.run("tools", "one").json()])
    task = json.dumps(first["messages"])
    box.check("the first message: the task, then the date", "what is in a.md?" in task and "Date: " in task, task)
    results = results_of(second)
    box.equal("both results come back in one message", [r["tool_use_id"] for r in results], ["t1", "t2"])
    box.check("with the text", "two — zwei" in result_text(results[0]) and "a.md" in result_text(results[1]), results)
    assistant = second["messages"][-2]["content"]
    box.equal("the model's own blocks go back, its signature too", [b["type"] for b in assistant],
              ["thinking", "text", "tool_use", "tool_use"])
    box.check("exactly", assistant[0]["signature"] == "SIG" and assistant[2]["input"] == {"path": "a.md"}, assistant)
    box.equal("what was sent stays as it was", second["messages"][0]["content"][0]["text"], first["messages"][0]["content"][0]["text"])
    kinds = [i["kind"] for i in box.run("replay", run["id"], "--json").json()["activity"]]
    box.check("thinking is kept apart from text", "thinking" in kinds and "text" in kinds, kinds)


def test_what_was_not_granted(box):
    box.write("a.md", "x\n")
    box.agent("one", "tools: [glob, bash]\n")
    asked = [calls("read", {"path": "a.md"}), calls("bash", {"command": "id"}), calls("no_such_tool", {}),
             calls("memory_read", {}), calls("glob", {"pattern": "*.md", "extra": 1}), calls("glob", {"patern": "*"}),
             {"blocks": [{"type": "tool_use", "id": "t", "name": "glob", "input_raw": "{\"pattern\": "}]}, says("done")]
    with box.server(asked) as server:
        run = box.run("run", "one", "x", "--json").json()
        answers = [results_of(b)[0] for b in server.bodies()[1:]]
    for i, name in enumerate(("read", "bash", "no_such_tool", "memory_read")):
        box.check(f"{name}: you do not have it", "ou do not have" in result_text(answers[i]) and "glob" in result_text(answers[i])
                  and answers[i]["is_error"], answers[i])
    box.check("a misspelt argument is an error", answers[5]["is_error"], answers[5])
    box.check("half arguments are no arguments", answers[6]["is_error"] and "JSON" in result_text(answers[6]), answers[6])
    box.equal("the loop goes on to the end", (run["status"], run["tool_calls"]), ("completed", 7))


def test_a_gated_call_is_denied(box):
    box.write("a.md", "x\n")
    box.agent("one", "tools: [read, grep]\napproval: {confirm: [read]}\n")
    with box.server([calls("read", {"path": "a.md"}), calls("grep", {"pattern": "x"}), says("Without reading.")]) as server:
        run = box.run("run", "one", "x", "--unattended", "--json").json()
        first, second, third = server.bodies()
    denied = results_of(second)[0]
    box.check("the model reads why", "Denied" in result_text(denied) and "unattended" in result_text(denied)
              and "approval.confirm" in result_text(denied) and denied["is_error"], denied)
    box.check("nothing of the file came", "x\n" not in result_text(denied))
    box.check("the next call runs", "a.md" in result_text(results_of(third)[0]), third["messages"][-1])
    box.equal("the loop goes on", (run["status"], run["report"]), ("completed", "Without reading."))
    box.check("the tool is in the request all the same", "read" in tool_names(first))


def test_deferred_tools(box):
    box.write("a.md", "x\n")
    box.agent("one", "tools: [read, glob, grep]\nresident: [glob]\n")
    with box.server([calls("read", {"path": "a.md"}), calls("available_tools", {}), calls("load_tools", {"name": "bash"}),
                     calls("load_tools", {"name": "read"}), calls("read", {"path": "a.md"}), says("done")]) as server:
        run = box.run("run", "one", "x", "--json").json()
        bodies = server.bodies()
    names = [tool_names(b) for b in bodies]
    box.equal("at first only the resident ones", names[0], ["glob", "available_tools", "load_tools"])
    answers = [result_text(results_of(b)[0]) for b in bodies[1:]]
    box.check("a deferred one is to be loaded first", "load_tools" in answers[0], answers[0])
    box.check("the list of states", "read [loadable]" in answers[1] and "glob [resident]" in answers[1], answers[1])
    box.check("no wider", "not yours" in answers[2] and names[3] == names[0], answers[2])
    box.equal("a loaded one comes last", names[4], [*names[0], "read"])
    box.check("and works", "x" in answers[4], answers[4])
    box.equal("the list only grew at its end", names[5][:3], names[0])
    box.equal("the prompt did not change", {json.dumps(b["system"]) for b in bodies}, {json.dumps(bodies[0]["system"])})
    box.equal("end", run["status"], "completed")


def test_budgets(box):
    box.write("a.md", "x\n")
    box.agent("turns", "tools: [glob]\nmaxTurns: 3\n")
    again = calls("glob", {"pattern": "*"}, text="Still looking.")
    with box.server([again], repeat=True) as server:
        run = box.run("run", "turns", "x")
        box.exits("maxTurns", run, ERRORS, out="Still looking.", err=["truncated", "max turns: 3"])
        box.equal("no call beyond it", len(server.requests()), 3)
    box.agent("tokens", "tools: [glob]\nlimits: {tokens: 50}\n")
    with box.server([again], repeat=True) as server:
        run = box.run("run", "tokens", "x", "--json").json()
        box.equal("limits.tokens", (run["status"], run["end_reason"].split(":")[0]), ("truncated", "tokens"))
        box.equal("checked before each call", len(server.requests()), 2)
    box.agent("cost", "tools: [glob]\nlimits: {cost: 0.000140}\n")
    for price, requests in (("{input: 1, output: 3}", 2), ("{input: 1, output: 2.9}", 3), ("{input: 0, output: 0}", 4)):
        with box.server([again, again, again, says("Done.")], repeat=True) as server:
            box.config.joinpath("deputy/config.yaml").open("a").write(f"prices: {{fake/*: {price}}}\n")
            run = box.run("run", "cost", "x", "--json").json()
            box.equal(f"limits.cost at {price}", len(server.requests()), requests)
            if requests < 4:
                box.equal("and why it ended", (run["status"], run["end_reason"].split(":")[0]), ("truncated", "cost"))
    with box.server([again], repeat=True) as server:
        refused = box.run("run", "cost", "x")
        box.exits("no price, no run", refused, REFUSED, err=["fake/one has no price", "deputy config set 'prices."])
        box.equal("nothing was asked", len(server.requests()), 0)
        box.exits("check says it", box.run("check", "cost"), FINE, out=['cost.yaml:', 'limits "cost" is refused', "fake/one has no price"])
        box.exits("show says it", box.run("show", "cost"), FINE, out=["does not start", "refused"])
        box.exits("explain says why", box.run("explain", "cost", "cost"), FINE, out=["limits.cost: 0.00014", "prices without fake/one"])
        box.config.joinpath("deputy/config.yaml").open("a").write("prices: {fake/two: {input: 1, output: 3}}\n")
        run = box.run("run", "cost", "x", "--model", "fake/two", "--json").json()
        box.equal("the model of this run is the one that is measured", (run["status"], len(server.requests())), ("truncated", 2))
    box.agent("params", "tools: [glob]\n")
    with box.server([says("Done.")]) as server:
        box.run("config", "set", "providers.fake.params", "{temperature: 0.2, top_k: 5, service_tier: auto}")
        box.run("run", "params", "x")
        body = server.bodies()[0]
        box.equal("parameters of the provider are sent", (body["temperature"], body["top_k"], body["service_tier"]), (0.2, 5, "auto"))
    box.agent("long", "tools: [glob]\n")
    with box.server([says(part, stop_reason="max_tokens") for part in ("Half ", "a ", "sent", "en")]) as server:
        cut = box.run("run", "long", "x")
        box.exits("the provider's length, after three continuations", cut, ERRORS, out="Half a senten",
                  err=["truncated", "max_tokens", "after 3 continuations"])
        box.equal("each part was sent back before it was asked to go on", [m["role"] for m in server.bodies()[3]["messages"]],
                  ["user", "assistant"] * 3 + ["user"])
    with box.server([says("Half a sent", stop_reason="max_tokens"), says("ence.")]):
        box.exits("an answer that was continued is whole", box.run("run", "long", "x"), FINE, out="Half a sentence.")
    with box.server([says("I cannot.", stop_reason="refusal")]):
        box.exits("a refusal", box.run("run", "long", "x"), ERRORS, out="I cannot.", err=["failed", "refusal"])
    box.run("config", "set", "limits.turns", "2")
    with box.server([again], repeat=True) as server:
        box.config.joinpath("deputy/config.yaml").open("a").write("limits: {turns: 2}\n")
        box.run("run", "long", "x")
        box.equal("the configured budget", len(server.requests()), 2)


def test_a_refusal_ends_the_run(box):
    box.agent("one", "tools: [glob]\n")
    with box.server([calls("glob", {"pattern": "*"}, text="No.", stop_reason="refusal"), says("never asked")]) as server:
        run = box.run("run", "one", "x", "--json")
        box.equal("a call beside a refusal is not run", len(server.requests()), 1)
    report = run.json()
    box.check("and the text is kept", (run.code, report["status"], report["report"], report["tool_calls"]) == (ERRORS, "failed", "No.", 0)
              and "refusal" in report["end_reason"], report)


def test_minutes(box):
    """A clock cannot be set from outside; a server that takes longer than the shortest budget would take a minute. So only
    what is promised: the budget stands in the grant and in `show`."""
    box.agent("one", "tools: [glob]\nlimits: {minutes: 1}\n")
    box.equal("limits.minutes", box.run("show", "one", "--json").json()["budgets"]["minutes"], 1)


def test_errors_of_the_provider(box):
    box.agent("one", "tools: [glob]\n")
    overloaded = {"type": "overloaded_error", "message": "Overloaded"}
    with box.server([{**says("The first half of the answer is here."), "error_after": 5, "error": overloaded}]):
        run = box.run("run", "one", "x")
        box.exits("an error inside a 200 stream keeps the text", run, ERRORS, out="The first half", err=["failed", "Overloaded"])
        box.check("replay has it", "The first half" in box.run("replay", run.err.split("deputy replay ")[1].split()[0]).out)
    with box.server([{"status": 429, "error": {"type": "rate_limit_error", "message": "slow down"},
                      "headers": {"retry-after": "0"}}, says("ok")]) as server:
        box.exits("429, then an answer", box.run("run", "one", "x"), FINE, out="ok")
        box.equal("asked twice", len(server.requests()), 2)
    with box.server([{"status": 401, "error": {"type": "authentication_error", "message": "invalid x-api-key"}}]):
        box.exits("401", box.run("run", "one", "x"), ERRORS, err=["failed", "invalid x-api-key"])
    with box.server([{"status": 400, "body": "<html>\x1b[2J</html>"}]):
        bad = box.run("run", "one", "x")
        box.check("an answer that is no API's", bad.code == ERRORS and "\x1b" not in bad.err and "failed" in bad.err, bad)
    with box.server([{**says("text before the break"), "cut_after": 6}]):
        box.exits("a broken connection keeps the text", box.run("run", "one", "x"), ERRORS, out="text", err="failed")
    with box.server([{**calls("glob", {"pattern": "*"}, text="Look."), "error_after": 8, "error": overloaded}]):
        run = box.run("run", "one", "x", "--json").json()
        box.equal("half a call is never made", (run["status"], run["tool_calls"], run["report"]), ("failed", 0, "Look."))
    gone = box.run("run", "one", "x")
    box.exits("nobody is there", gone, ERRORS, err=["failed", "127.0.0.1"])
    box.equal("each of them was stored with its status", {r["status"] for r in box.run("tasks", "--json").json()},
              {"failed", "completed"})


def test_ctrl_c(box):
    box.agent("one", "tools: [glob]\n")
    for name, reply, wanted in (("a silent server", {"hang": True}, None),
                                ("a stream that stopped", {**says("What I have so far."), "hang_after": 5}, "What I have")):
        with box.server([reply]) as server:
            process = box.start("run", "one", "x")
            deadline = time.monotonic() + 30
            while not server.requests() and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.2)  # let the stream arrive
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            out, err = (s.decode() for s in process.communicate(timeout=30))
            took = time.monotonic() - begin
        box.check(f"{name}: exit 130 at once", process.returncode == INTERRUPTED and took < 10, (process.returncode, took, out, err))
        box.check("it says where the rest is", "stopped" in err and "deputy replay" in err, err)
        id = err.split("deputy replay ")[1].split()[0]
        replay = box.run("replay", id)
        box.exits("replay finds it", replay, FINE, out="stopped")
        if wanted:
            box.check("with the text that had come", wanted in out and wanted in replay.out, (out, replay.out))
    rows = box.run("tasks", "--json").json()
    box.equal("the status", {r["status"] for r in rows}, {"stopped"})


def test_killed(box):
    box.agent("one", "tools: [glob]\n")
    with box.server([{**says("Some words."), "hang_after": 5}]) as server:
        process = box.start("run", "one", "x")
        deadline = time.monotonic() + 30
        while not server.requests() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
    row = box.run("tasks", "--json").json()[0]
    box.equal("a run whose process died is interrupted", row["status"], "interrupted")
    box.exits("and can be replayed", box.run("replay", row["id"][:8]), FINE, out="interrupted")


def test_escapes(box):
    """C65: what a model or a file says cannot steer the terminal; programs get it exactly."""
    evil = "\x1b]0;title\x07\x1b[2J\u202eevil\r\nnext"
    box.write("a.md", f"{evil}\n")
    box.agent("one", "tools: [read]\n")
    with box.server([{**calls("read", {"path": "a.md", "x\x1b[2J": evil}, text=evil), "model": "m\x1b[2J"},
                     calls("t\x1b[2J", {}), {**says(evil), "model": "m\x1b[2J"}], repeat=True):
        for argv in (["run", "one", evil], ["tasks"]):
            answer = box.run(*argv)
            box.check(f"{argv[0]}, piped", not any(c in answer.out + answer.err for c in "\x1b\x07\u202e\r"), answer)
        live = box.tty("run", "one", evil, env={"NO_COLOR": "1"})
        box.check("run, live on a terminal", not any(c in live.out for c in "\x1b\x07\u202e"), repr(live.out))
        id = box.run("tasks", "--json").json()[0]["id"]
        replay = box.run("replay", id)
        box.check("replay", not any(c in replay.out + replay.err for c in "\x1b\x07\u202e\r"), repr(replay.out))
        exact = box.run("run", "one", "x", "--json").json()
        box.equal("--json is exact", exact["report"], evil)


def test_the_main_role(box):
    with box.server([calls("Task", {"agent": "explorer", "task": "look"}), says("found </report> it"), says("done")]) as server:
        run = box.run("run", "main", "x", "--json").json()
        first, child, second = server.bodies()
    box.equal("it runs as itself", (run["status"], run["agent"]), ("completed", "main"))
    box.equal("with the prompt of its role", "".join(p["text"] for p in first["system"]), box.run("prompt", "main").out)
    box.check("which is not a delegate's", first["system"][0]["text"] != box.run("prompt", "main", "--role", "delegate").out)
    box.check("a subagent got the task and nothing else", "look" in child["messages"][0]["content"][0]["text"]
              and "Task" not in tool_names(child), child)
    task = next(t for t in first["tools"] if t["name"] == "Task")
    box.check("who can be chosen stands in the tool", "explorer" in task["input_schema"]["properties"]["agent"]["enum"]
              and "main" not in task["input_schema"]["properties"]["agent"]["enum"] and "- explorer: " in task["description"], task)
    result = result_text(results_of(second)[0])
    box.check("its report came back as data", "found &lt;/report> it" in result and 'status="completed"' in result, result)
    box.equal("and is listed with the delegations", [t["agent"] for t in box.run("tasks", "--json").json()], ["explorer"])


def test_state_that_cannot_be_written(box):
    quoting(box)
    blocked = {"XDG_STATE_HOME": str(box.write("file", "x", box.top))}
    with box.server([says("never sent")]) as server:
        box.agent("sys", "tools: [glob]\n", layer="system")
        run = box.run("run", "sys", "x", env=blocked)
        box.exits("a run that could not be recorded does not start", run, ERRORS, err=["sys", "file"])
        box.equal("nothing was sent", server.requests(), [])
    box.exits("looking works all the same", box.run("agents", env=blocked), FINE, out="sys")
    box.exits("doctor names it", box.run("doctor", env=blocked), ERRORS, out="broken")


def bound_by_modes():
    """Takes from root, for the program to come, what lets it pass over file modes."""
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def test_state_that_can_only_be_read(box):
    quoting(box)
    ran = box.run("run", "one", "spout", "--json").json()
    state = box.state / "deputy"
    for path in state.iterdir():
        path.chmod(0o700 if path.is_dir() else 0o400)
    state.chmod(0o500)
    for argv in (["tasks"], ["replay", ran["id"]]):
        answer = box.run(*argv, preexec_fn=bound_by_modes)
        box.exits(f"{argv[0]} says what is not seen", answer, FINE, out="spout", err="nothing that runs now is seen")
    box.exits("doctor too", box.run("doctor", preexec_fn=bound_by_modes), FINE, out="nothing that runs now is seen")
    with box.server([says("never sent")], repeat=True) as server:
        for argv in (["run", "one", "x"], ["run", "main", "x"], ["run", "one", "x", "--background"]):
            run = box.run(*argv, preexec_fn=bound_by_modes)
            box.check(f"{argv[1:]} is refused", run.code not in (FINE, None) and run.code > 0 and not run.out, run)
        box.equal("before the model is asked", server.requests(), [])


def test_closed_pipe_and_full_disk(box):
    quoting(box)
    with open("/dev/full", "wb") as full:
        end = subprocess.run([box.deputy, "run", "one", "spout"], cwd=box.ws, env=box.env, stdout=full, stderr=subprocess.PIPE)
    box.check("output that is lost is said", end.returncode == ERRORS and b"standard output" in end.stderr, end)
    box.equal("the report is stored all the same", box.run("tasks", "--json").json()[0]["status"], "completed")


if __name__ == "__main__":
    main(globals())
