"""The OpenAI Responses API with a scripted server: what a delegation sends, turn by turn, and what becomes of full, short,
interleaved, broken and refused streams. Reasoning goes back encrypted, calls are echoed as they came."""

import contextlib
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, ROOT, Server, main  # noqa: E402

KEY = "sk-proj-0123456789abcdef"


@contextlib.contextmanager
def server(box, replies, **script):
    """tests/support/fake_responses.py with these replies, configured as the default model fake/one."""
    path, record = box.tmp / "script.json", box.tmp / "record.jsonl"
    path.write_text(json.dumps({"replies": replies, **script}))
    record.unlink(missing_ok=True)
    program = ROOT / "tests" / "support" / "fake_responses.py"
    process = subprocess.Popen([sys.executable, str(program), str(path), "--record", str(record)], stdout=subprocess.PIPE,
                               text=True, start_new_session=True)
    try:
        port = int(process.stdout.readline().split()[1])
        box.write("deputy/config.yaml", "model: fake/one\nproviders:\n  fake:\n    api: openai-responses\n"
                  f"    url: http://127.0.0.1:{port}/v1\n    key: ${{FAKE_KEY:-none}}\n", box.config)
        yield Server(record, port)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def says(text, **more):
    return {"items": [{"type": "message", "text": text}], **more}


def call(name, arguments, call_id="call_1"):
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def thought(text, secret="gAAAAB=="):
    return {"type": "reasoning", "summary": text, "encrypted_content": secret}


def librarian(box):
    box.write("a.md", "# Kettle\nRinse the spout 日本.\n")
    box.agent("one", "tools: [read]\nknowledge: [{name: M, path: '*.md'}]\n")


def outputs(body):
    return {i["call_id"]: i["output"] for i in body["input"] if i["type"] == "function_call_output"}


def test_a_whole_delegation(box):
    librarian(box)
    replies = [{"items": [thought("I look."), call("kb_search", {"query": "spout"})]},
               {"items": [{"type": "message", "text": "One more."}, call("read", {"path": "a.md"}, "call_2"),
                          call("kb_search", {"query": "kettle"}, "call_3")]},
               says("Rinse the spout 日本.")]
    with server(box, replies) as fake:
        run = box.run("run", "one", "how?", "--json", env={"FAKE_KEY": KEY})
        r = run.json()
        box.equal("it completes", (r["status"], r["report"], r["turns"], r["tool_calls"]),
                  ("completed", "Rinse the spout 日本.", 3, 3))
        box.equal("usage of three calls", {k: v for k, v in r["usage"].items() if v},
                  {"input_tokens": 18, "output_tokens": 60, "cache_read_tokens": 12})
        bodies, heads = fake.bodies(), fake.requests()
        box.equal("where and with which key", {(h["path"], h["headers"]["authorization"]) for h in heads},
                  {("/v1/responses", f"Bearer {KEY}")})
        box.check("one connection for all", len({h["connection"] for h in heads}) == 1)
        fixed = {k: bodies[0][k] for k in ("stream", "store", "include")}
        box.equal("nothing is kept by the server", fixed,
                  {"stream": True, "store": False, "include": ["reasoning.encrypted_content"]})
        box.check("parallel calls and the choice of tools are left to it",
                  not {"parallel_tool_calls", "tool_choice", "previous_response_id"} & bodies[0].keys(), bodies[0].keys())
        for name in ("tools", "instructions", "model", "max_output_tokens"):
            box.check(f"the same {name} in each turn", all(b[name] == bodies[0][name] for b in bodies))
        for now, then in zip(bodies, bodies[1:]):
            box.equal("each turn begins with the one before", then["input"][:len(now["input"])], now["input"])
        second = bodies[1]["input"]
        box.equal("reasoning and call go back as they came", second[1:3],
                  [{"id": "rs_1_0", "type": "reasoning", "summary": [{"type": "summary_text", "text": "I look."}],
                    "encrypted_content": "gAAAAB=="},
                   {"id": "fc_1_1", "status": "completed", "type": "function_call", "call_id": "call_1", "name": "kb_search",
                    "arguments": '{"query": "spout"}'}])
        box.check("with its result", "a.md:2" in outputs(bodies[1])["call_1"], second)
        box.equal("both results of a turn", set(outputs(bodies[2])), {"call_1", "call_2", "call_3"})
    replay = box.run("replay", r["id"])
    box.check("the replay shows thinking and calls", "I look." in replay.out and "kb_search" in replay.out, replay)
    box.check("and never the key", KEY not in replay.out + run.out + run.err)


def test_streams_of_every_form(box):
    librarian(box)
    first = [thought("hm"), {"type": "message", "text": "Let me sée."}, call("kb_search", {"query": "spout"}),
             call("read", {"path": "a.md"}, "call_2")]
    for form in ("full", "items", "output", "parallel", "no_ids", "no_index", "document"):
        for more in ({}, {"line_end": "\r\n", "bom": True, "comments": True}, {"line_end": "\r", "write_bytes": 7, "piece": 1}):
            if form in ("no_index", "document") and more:
                continue
            with server(box, [{"items": first, "form": form, **more}, {**says("done"), "form": form}]) as fake:
                run = box.run("run", "one", "x", "--json")
                good = run.code == FINE and run.json()["report"] == "done" and run.json()["tool_calls"] == 2
                box.check(f"{form} {more}", good, run)
                sent = fake.bodies()[-1]["input"]
                wanted = [(i["call_id"], json.loads(i["arguments"])) for i in sent if i["type"] == "function_call"]
                box.equal("each call with its own arguments", wanted,
                          [("call_1", {"query": "spout"}), ("call_2", {"path": "a.md"})])
                box.check("and its own result", "Rinse" in outputs(fake.bodies()[-1]).get("call_2", ""), sent)
    with server(box, [{**says("only deltas"), "form": "deltas"}]):
        box.exits("text without items", box.run("run", "one", "x"), FINE, out="only deltas")
    with server(box, [{"items": [thought("hm")]}, says("the second time")]) as fake:
        r = box.run("run", "one", "x", "--json").json()
        box.equal("a stream in which nothing came is asked for once more", (r["report"], r["turns"]), ("the second time", 1))
        box.equal("without a stream, and paid for twice", ([b["stream"] for b in fake.bodies()], r["usage"]["output_tokens"]),
                  ([True, False], 40))
    with server(box, [says("no usage", usage=None)]):
        box.check("usage is estimated and marked", box.run("run", "one", "x", "--json").json()["usage"]["estimated"] is True)


def test_calls_that_are_not_right(box):
    librarian(box)
    with server(box, [{"items": [call("kb_search", '{"query": '), call("kb_search", "[1]", "call_2"),
                                 call("nothing", {}, "call_3")]}, says("done")]) as fake:
        box.exits("bad arguments are answered", box.run("run", "one", "x"), FINE, out="done")
        body = fake.bodies()[1]
        box.check("each of them", all("JSON object" in outputs(body)[c] for c in ("call_1", "call_2")), outputs(body))
        box.equal("and echoed as they came", [i["arguments"] for i in body["input"] if i["type"] == "function_call"],
                  ['{"query": ', "[1]", "{}"])
    two = [["response.output_item.added", {"type": "response.output_item.added", "output_index": i, "item": {
        "id": f"f{i}", "type": "function_call", "call_id": f"c{i}", "name": "kb_search", "arguments": ""}}] for i in (0, 1)]
    stray = ["response.function_call_arguments.delta", {"type": "response.function_call_arguments.delta", "delta": "{"}]
    with server(box, [{"events": [*two, stray]}]) as fake:
        box.exits("arguments of nobody", box.run("run", "one", "x"), ERRORS, err="without saying which")
        box.equal("and no second try", len(fake.requests()), 1)
    bare = {"type": "function_call", "name": "kb_search", "arguments": {"query": "spout"}}
    done = ["response.output_item.done", {"type": "response.output_item.done", "item": bare}]
    end = ["response.completed", {"type": "response.completed"}]
    with server(box, [{"events": [done, end]}, {"events": [done, done, end]}, says("done")]) as fake:
        box.exits("calls without an id, arguments as an object", box.run("run", "one", "x"), FINE, out="done")
        ids = [i["call_id"] for i in fake.bodies()[2]["input"] if i["type"] == "function_call"]
        box.equal("each gets one of its own", (len(ids), len(set(ids))), (3, 3))


def test_how_it_ends(box):
    librarian(box)
    half = call("kb_search", '{"query": "spo')
    rows = [({"status": "incomplete"}, "truncated", "max_tokens"),
            ({"status": "incomplete", "reason": "content_filter"}, "failed", "refusal"),
            ({"status": "failed", "error": {"code": "invalid_prompt", "message": "No."}}, "failed", "invalid_prompt: No.")]
    for more, status, reason in rows:
        # What was cut at its length is asked to go on, three times.
        times = 4 if status == "truncated" else 1
        with server(box, [{"items": [{"type": "message", "text": "So far."}, half], **more}] * times) as fake:
            r = box.run("run", "one", "x", "--json").json()
            box.check(f"{more}", r["status"] == status and reason in r["end_reason"], r)
            box.equal("what was said is kept, half a call is not run", (r["report"], r["tool_calls"], len(fake.requests())),
                      ("So far." * times, 0, times))
    with server(box, [{"items": [{"type": "message", "refusal": "I will not."}]}]):
        r = box.run("run", "one", "x", "--json").json()
        box.equal("a refusal", (r["status"], r["report"]), ("failed", "I will not."))
    for more in ({"end_after": 6}, {"cut_after": 6}):
        with server(box, [says("So far and no further.", **more)]) as fake:
            r = box.run("run", "one", "x", "--json").json()
            box.check(f"{more}: an error that keeps the text", r["status"] == "failed" and "So far" in r["report"], r)
            box.equal("and is not tried again", len(fake.requests()), 1)


def test_what_passes_is_tried_again(box):
    librarian(box)
    slow = {"code": "rate_limit_exceeded", "message": "Please try again."}
    rows = [{"status": 429, "error": {"type": "requests", **slow}, "headers": {"retry-after": "0"}},
            {"status": 503, "error": {"type": "server_error", "message": "overloaded"}, "headers": {"retry-after": "0"}},
            {**says("x"), "error_after": 2, "error": slow},
            {"events": [["", {"error": {"type": "server_error", "message": "busy"}}]]},
            {"items": [], "status": "failed", "error": {"code": "server_error", "message": "busy"}}]
    with server(box, [{**row} for row in rows[:2]] + [says("at last")]) as fake:
        box.exits("answers that pass", box.run("run", "one", "x"), FINE, out="at last")
        box.equal("three requests, all the same", (len(fake.bodies()), len({json.dumps(b) for b in fake.bodies()})), (3, 1))
    for row in rows[2:]:
        with server(box, [row, says("at last")]):
            box.exits(f"in the stream: {json.dumps(row)[:60]}", box.run("run", "one", "x"), FINE, out="at last")
    with server(box, [{**says("So far"), "error_after": 6, "error": slow}, says("again")]) as fake:
        box.exits("not after the first text", box.run("run", "one", "x"), ERRORS, err="rate_limit_exceeded")
        box.equal("one request", len(fake.requests()), 1)
    with server(box, [{"status": 401, "error": {"type": "invalid_request_error", "message": f"Bad key {KEY}"}}]):
        bad = box.run("run", "one", "x", env={"FAKE_KEY": KEY})
        box.check("a refused key is not shown", bad.code == ERRORS and "check the key" in bad.err and KEY not in bad.err, bad)


def test_a_model_that_does_not_reason(box):
    librarian(box)
    replies = [{"items": [call("kb_search", {"query": "spout"})]}, says("done")]
    with server(box, replies, plain=True) as fake:
        box.exits("is asked without the wish", box.run("run", "one", "x"), FINE, out="done")
        box.check("and then no more with it", len(fake.bodies()) == 2 and all("include" not in b for b in fake.bodies()))


def test_models_test(box):
    with server(box, [{"items": [thought("hm"), {"type": "message", "text": "ready"}]},
                      {"items": [thought("hm")], "status": "incomplete", "usage": None},
                      {"status": 401, "error": {"type": "invalid_request_error", "message": f"Incorrect key {KEY}"}}]) as fake:
        env = {"FAKE_KEY": KEY}
        box.exits("it answers", box.run("models", "test", env=env), FINE, out=["fake/one answered", "ready", "6 tokens in, 20 out;"])
        box.exits("it only thinks", box.run("models", "test", "fake/two", env=env), FINE, out=["(no text)", "(estimated)"])
        bad = box.run("models", "test", env=env)
        box.check("a refused key", bad.code == ERRORS and "***" in bad.err and KEY not in bad.err, bad)
        box.equal("the models that were asked", [b["model"] for b in fake.bodies()], ["one", "two", "one"])


main(globals())
