"""run with a model behind Chat Completions: what the server gets turn by turn, calls however their pieces are marked, streams
that break, errors and retries, and what a person and the record then see."""

import json
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, main  # noqa: E402


def serving(box, replies, **more):
    return box.server(replies, api="openai", program="fake_openai.py", **more)


def agent(box, name="one", body="tools: [read, glob]\nknowledge: [{name: M, path: '*.md'}]\n", **more):
    box.write("a.md", "# Kettle\nRinse the spout — täglich.\n")
    box.agent(name, body, **more)


def call(name, arguments, id="call_1", **more):
    return {"id": id, "name": name, "arguments": arguments, **more}


def results(body):
    return [m for m in body["messages"] if m["role"] == "tool"]


def test_tools_turn_by_turn(box):
    agent(box, prompt="BODY")
    replies = [{"thinking": "I think", "text": "Looking.", "piece": 1, "write_bytes": 3, "line_end": "\r\n", "comments": True,
                "calls": [call("read", {"path": "a.md"}), call("kb_search", {"query": "spout"}, "call_2")]},
               {"thinking": "And now", "calls": [call("glob", '{ "pattern": "*.md" }', "call_3", extra_content={"s": "SIG"})]},
               {"text": "The answer — fertig.", "piece": 2, "write_bytes": 1}]
    with serving(box, replies, key="sk-e2e-0123456789") as server:
        run = box.run("run", "one", "what is in a.md?", "--json")
        box.exits("the run", run, FINE)
        r, got = run.json(), server.requests()
    box.equal("its end", (r["status"], r["report"], r["turns"], r["tool_calls"]), ("completed", "The answer — fertig.", 3, 3))
    box.equal("tokens", (r["usage"]["input_tokens"], r["usage"]["output_tokens"]), (30, 60))
    box.equal("where it went", {(g["path"], g["headers"]["authorization"]) for g in got},
              {("/v1/chat/completions", "Bearer sk-e2e-0123456789")})
    first, second, third = (g["body"] for g in got)
    box.check("the first request", first["stream"] and first["stream_options"] == {"include_usage": True} and first["max_tokens"] == 8192
              and not {"tool_choice", "max_completion_tokens"} & set(first), first)
    box.equal("system, then the task", [m["role"] for m in first["messages"]], ["system", "user"])
    box.check("the prompt", "BODY" in first["messages"][0]["content"], first)
    box.check("tools", {"read", "glob", "kb_search"} <= {t["function"]["name"] for t in first["tools"]}
              and all(t["type"] == "function" and t["function"]["parameters"]["type"] == "object" for t in first["tools"]), first)
    for one, two in ((first, second), (second, third)):
        box.equal("turn by turn the same beginning", two["messages"][:len(one["messages"])], one["messages"])
        box.equal("and the same tools", json.dumps(two["tools"]), json.dumps(one["tools"]))
    echo, *rest = second["messages"][2:]
    box.equal("the calls as they were, text but not thinking",
              (echo["role"], echo["content"], "reasoning_content" in echo, [c["id"] for c in echo["tool_calls"]],
               echo["tool_calls"][0]["function"]),
              ("assistant", "Looking.", False, ["call_1", "call_2"], {"name": "read", "arguments": '{"path": "a.md"}'}))
    box.equal("a result each", [(m["role"], m["tool_call_id"]) for m in rest], [("tool", "call_1"), ("tool", "call_2")])
    box.check("what they found", all("täglich" in m["content"] for m in rest), rest)
    echo = third["messages"][5]
    box.equal("thinking before calls goes back", (echo["content"], echo["reasoning_content"]), (None, "And now"))
    box.equal("byte for byte", echo["tool_calls"], [{"id": "call_3", "type": "function", "extra_content": {"s": "SIG"},
                                                    "function": {"name": "glob", "arguments": '{ "pattern": "*.md" }'}}])
    replay = box.run("replay", r["id"])
    box.exits("the record", replay, FINE, out=["Looking.", "→ read", "→ kb_search", "→ glob", "fertig"])
    box.check("the key is nowhere", "sk-e2e" not in run.out + run.err + replay.out and
              all(b"sk-e2e" not in data for path, data in box.tree(box.state).items()))


def chunk(*pieces, finish=None):
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(pieces)} if pieces else {}, "finish_reason": finish}]}


def piece(id=None, name=None, arguments=None, index=None):
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return {**({"index": index} if index is not None else {}), **({"id": id} if id is not None else {}), "function": function}


READ = '{"path":"a.md"}'


def test_calls_however_they_are_marked(box):
    agent(box)
    streams = {
        "no index, whole calls": [chunk(piece("a", "read", READ)), chunk(piece("b", "glob", '{"pattern":"*"}')), chunk(finish="stop")],
        "0 for both": [chunk(piece("a", "read", "", 0)), chunk(piece(None, None, READ, 0)),
                       chunk(piece("b", "glob", '{"pattern":"*"}', 0)), chunk(finish="stop")],
        "no ids": [chunk(piece("", "read", READ)), chunk(piece("", "glob", '{"pattern":"*"}')), chunk(finish="tool_calls")],
        "objects": [chunk(piece("a", "read", {"path": "a.md"}, 0), piece("b", "glob", {"pattern": "*"}, 0)), chunk(finish="stop")],
    }
    for what, chunks in streams.items():
        with serving(box, [{"chunks": chunks}, {"text": "done"}]) as server:
            run = box.run("run", "one", "x", "--json")
            box.equal(f"{what}: completed", (run.json()["status"], run.json()["tool_calls"]), ("completed", 2))
            body = server.bodies()[1]
        ids = [c["id"] for c in body["messages"][2]["tool_calls"]]
        box.equal(f"{what}: results belong to their calls", [m["tool_call_id"] for m in results(body)], ids)
        box.check(f"{what}: each call its own", len(set(ids)) == 2 and "täglich" in results(body)[0]["content"]
                  and "a.md" in results(body)[1]["content"], body)
        if what == "no ids":
            box.check("made ids", all(len(i) == 9 and i.isalnum() for i in ids), ids)


def test_faulty_arguments_are_told_to_the_model(box):
    agent(box)
    with serving(box, [{"calls": [call("read", '{"path": "a.md"')]}, {"text": "sorry"}]) as server:
        run = box.run("run", "one", "x", "--json").json()
        body = server.bodies()[1]
    box.equal("the run goes on", (run["status"], run["report"]), ("completed", "sorry"))
    box.check("it is told", results(body)[0]["content"].startswith("Error: The arguments are not a JSON object"), body)
    sent = json.loads(body["messages"][2]["tool_calls"][0]["function"]["arguments"])
    box.equal("what it wrote, as an object that servers can read", sent, {"invalid_arguments": '{"path": "a.md"'})


def test_pieces_of_no_call(box):
    agent(box)
    chunks = [chunk(piece("a", "read", ""), piece("b", "glob", "")), chunk(piece(None, None, READ)), chunk(finish="stop")]
    with serving(box, [{"chunks": chunks}]) as server:
        run = box.run("run", "one", "x", "--json")
        box.equal("asked once", len(server.requests()), 1)
    r = run.json()
    box.check("failed, and says why", run.code == ERRORS and r["status"] == "failed" and r["tool_calls"] == 0
              and "belongs to no one call" in r["end_reason"] and "a.md" in r["end_reason"], r)


def test_streams_that_break(box):
    agent(box)
    long = "This is the beginning of an answer."
    breaks = {
        "cut": ({"text": long, "cut_after": 4}, "network"),
        "ended early": ({"text": long, "end_after": 4}, "ended early"),
        "an error in it": ({"text": long, "error_after": 4, "error": {"message": "boom", "type": "server_error"}}, "server_error: boom"),
        "an error event": ({"events": [[None, chunk_of(long)], ["error", {"message": "boom"}]]}, "boom"),
        "no JSON": ({"chunks": [chunk_of(long), "{"]}, "not JSON"),
    }
    for what, (reply, reason) in breaks.items():
        with serving(box, [reply]) as server:
            run = box.run("run", "one", "x", "--json")
            box.equal(f"{what}: asked once, for text was shown", len(server.requests()), 1)
        r = run.json()
        box.check(f"{what}: failed, the text kept", run.code == ERRORS and r["status"] == "failed" and reason in r["end_reason"]
                  and r["report"] and long.startswith(r["report"][:10]), r)
    whole = {"after the reason": {"text": long, "cut_after": 7}, "without [DONE]": {"text": long, "no_done": True}}
    for what, reply in whole.items():
        with serving(box, [reply]):
            r = box.run("run", "one", "x", "--json").json()
        box.equal(f"{what}: whole", (r["status"], r["report"]), ("completed", long))


def chunk_of(text):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


def test_ends(box):
    agent(box)
    ends = {
        "length": ({"text": "cut", "finish": "length"}, "truncated"),
        "content_filter": ({"text": "no", "finish": "content_filter"}, "failed"),
        "unknown": ({"text": "fine", "finish": "something_new"}, "completed"),
        "no usage": ({"text": "fine", "usage": None}, "completed"),
        "a document": ({"text": "fine", "document": True}, "completed"),
    }
    for what, (reply, status) in ends.items():
        # What was cut is asked to go on, three times.
        with serving(box, [reply] * (4 if what == "length" else 1)):
            r = box.run("run", "one", "x", "--json").json()
        box.equal(f"{what}: its status", (r["status"], r["report"]),
                  (status, reply["text"] * (4 if what == "length" else 1)))
        box.equal(f"{what}: an estimate is marked", r["usage"]["estimated"], what == "no usage")
    refusal = [{"choices": [{"index": 0, "delta": {"refusal": "I will not."}, "finish_reason": "stop"}]}]
    with serving(box, [{"chunks": refusal}]):
        r = box.run("run", "one", "x", "--json").json()
    box.equal("a refusal", (r["status"], r["report"]), ("failed", "I will not."))


def test_errors_and_retries(box):
    agent(box)
    busy = {"status": 429, "error": {"message": "slow down", "type": "rate_limit_error"}, "headers": {"retry-after": "0"}}
    with serving(box, [busy, {"close": True}, {"text": "there"}]) as server:
        run = box.run("run", "one", "x", "--json").json()
        box.equal("tried until it answers", (run["status"], run["report"], len(server.requests())), ("completed", "there", 3))
    denied = {"status": 401, "error": {"message": "bad key sk-e2e-0123456789", "type": "invalid_request_error", "code": "invalid_api_key"}}
    with serving(box, [denied], key="sk-e2e-0123456789") as server:
        run = box.run("run", "one", "x")
        box.exits("a key that is refused", run, ERRORS, err=["401", "check the key"])
        box.check("and not shown", "sk-e2e" not in run.out + run.err, run)
        box.equal("not tried again", len(server.requests()), 1)


def test_an_empty_stream_is_asked_for_as_a_document(box):
    agent(box)
    replies = [{"text": ""}, {"calls": [call("read", {"path": "a.md"})]}, {"text": "read it"}]
    with serving(box, replies) as server:
        r = box.run("run", "one", "x", "--json").json()
        bodies = server.bodies()
    box.equal("the call was not lost", (r["status"], r["report"], r["tool_calls"], r["turns"]), ("completed", "read it", 1, 2))
    box.equal("stream, document, stream", [b["stream"] for b in bodies], [True, False, True])


def test_a_librarian(box):
    agent(box)
    with serving(box, [{"librarian": True}], repeat=True):
        box.exits("looks it up and tells", box.run("run", "one", "spout"), FINE, out="Rinse the spout")


if __name__ == "__main__":
    main(globals())
