"""Rule B27: the key of a provider reaches the provider and nobody else: no output, event, database, log, replay, prompt or
later request holds it, in any of its usual encodings, also when a model or a file repeats it."""

import base64
import json
import signal
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, INTERRUPTED, calls, main, says  # noqa: E402

KEY = "sk-canary-7Q\"x/9+=é%zz-0123456789ABCDEF"


def forms(key):
    """The spellings in which a secret might slip through."""
    return {key.encode(), json.dumps(key)[1:-1].encode(), json.dumps(key, ensure_ascii=False)[1:-1].encode(),
            urllib.parse.quote(key, safe="").encode(), base64.b64encode(key.encode()).rstrip(b"="), b"canary-7Q"}


def leaks(data):
    return [f for f in forms(KEY) if f in data]


def everywhere(box):
    """Every file that the program may have written, but not the ones this test wrote."""
    places = [box.state, box.config, box.ws / ".deputy", box.home]
    return {p: p.read_bytes() for top in places if top.exists() for p in top.rglob("*") if p.is_file()}


def look(box, what, *results):
    for r in results:
        box.check(f"{what}: not on standard output or error", not leaks(r.raw) and not leaks(r.err.encode()), r)
    for path, data in everywhere(box).items():
        if leaks(data):
            box.check(f"{what}: not in {path}", False, leaks(data))
    box.check(f"{what}: in no file", not any(leaks(d) for d in everywhere(box).values()))


def test_a_file_that_holds_the_key(box):
    for i, form in enumerate(sorted(forms(KEY))):
        if form != b"canary-7Q":
            box.write(f"notes/{i}.md", b"needle: the key is " + form + b" and so on\n")
    box.agent("one", "tools: [read, grep, glob]\nknowledge: [{name: N, path: 'notes/*.md'}]\nmemory: private\n")
    n = len(list((box.ws / "notes").iterdir()))
    reads = [calls("read", {"path": f"notes/{i}.md"}) for i in range(n + 1) if (box.ws / f"notes/{i}.md").exists()]
    script = [*reads, calls("grep", {"pattern": "needle"}), calls("kb_search", {"query": "needle"}), says("All read.")]
    env = {"FAKE_KEY": KEY}
    with box.server(script, key="${FAKE_KEY}") as server:
        run = box.run("run", "one", f"what is {KEY}?", "--events", env=env)
        requests = server.requests()
    box.equal("it came to its end", (run.code, len(requests)), (FINE, len(script)))
    for i, r in enumerate(requests):
        box.check(f"request {i + 1}: the key stands in its header alone", r["headers"]["x-api-key"].encode("latin-1").decode() == KEY
                  and not leaks(json.dumps(r["body"], ensure_ascii=False).encode()) and not leaks(json.dumps(r["body"]).encode()),
                  json.dumps(r["body"])[-1500:])
    look(box, "run --events", run)
    id = run.lines()[-1]["id"]
    look(box, "looking at it", *(box.run(*argv, env=env) for argv in (["replay", id], ["replay", id, "--json"], ["tasks"],
         ["tasks", "--json"], ["config", "get"], ["config", "get", "--json"], ["models"], ["models", "--json"], ["doctor"],
         ["show", "one", "--json"], ["prompt", "one"], ["agents", "--json"], ["memory", "export", "one"])))
    box.check("what was taken out is marked", "***" in box.run("replay", id).out)


def test_a_label_and_a_note_with_the_key(box):
    box.agent("one", "tools: [glob]\nmemory: private\n")
    env = {"FAKE_KEY": KEY}
    with box.server([calls("memory_write", {"content": f"The key is {KEY}."}), says("Noted.")], key="${FAKE_KEY}"):
        run = box.run("run", "one", "x", "--description", f"about {KEY}", "--json", env=env)
    box.equal("the note was written", run.json()["memory_writes"][0]["file"], "MEMORY.md")
    look(box, "run", run)
    look(box, "what is kept", box.run("memory", "export", "one", env=env), box.run("prompt", "one", env=env), box.run("tasks", "--json", env=env))


def test_a_model_that_says_the_key(box):
    """It was never told it; should it know it all the same, nobody reads it here."""
    box.agent("one", "tools: [glob]\n")
    script = [{"blocks": [{"type": "thinking", "thinking": f"so it is {KEY}", "signature": "s"},
                          {"type": "text", "text": f"I tell {KEY}"},
                          {"type": "tool_use", "id": "t", "name": "glob", "input": {"pattern": f"{KEY}*", f"{KEY}": KEY}},
                          {"type": "tool_use", "id": "u", "name": f"n{KEY}", "input_raw": f"{{{KEY}"}], "piece": 3},
              says(f"The key is {KEY}, or {base64.b64encode(KEY.encode()).decode()}, or {urllib.parse.quote(KEY)}.", piece=1)]
    with box.server([*script, *script, *script], key="${FAKE_KEY}"):
        look(box, "run", *(box.run("run", "one", "x", *more, env={"FAKE_KEY": KEY}) for more in ([], ["--json"], ["--events"])))
    id = box.run("tasks", "--json").json()[0]["id"]
    look(box, "replay", box.run("replay", id), box.run("replay", id, "--json"))


def test_errors_and_live_output(box):
    box.agent("one", "tools: [glob]\n")
    env = {"FAKE_KEY": KEY}
    error = {"type": "authentication_error", "message": f"bad key {KEY}"}
    with box.server([{"status": 401, "error": error}, {**says(f"half {KEY} "), "error_after": 3, "error": error},
                     {"status": 400, "body": f"<p>{KEY}"}, says(f"live {KEY} text", piece=2, write_bytes=5)],
                    key="${FAKE_KEY}"):
        look(box, "an error", *(box.run("run", "one", "x", env=env) for _ in range(3)))
        live = box.tty("run", "one", "x", env=env)
        box.exits("live on a terminal", live, FINE, out=["live ***", "text"])
        look(box, "live", live)


def test_a_stop_in_the_middle_of_the_key(box):
    box.agent("one", "tools: [glob]\n")
    events = [["message_start", {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
               "content": [], "model": "one", "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}}],
              ["content_block_start", {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]]
    for part in ("The key: ", KEY[:20], KEY[20:-1]):
        events.append(["content_block_delta", {"type": "content_block_delta", "index": 0,
                                               "delta": {"type": "text_delta", "text": part}}])
    with box.server([{"events": events, "hold_open": True}], key="${FAKE_KEY}") as server:
        process = box.start("run", "one", "x", env={"FAKE_KEY": KEY})
        deadline = time.monotonic() + 30
        while not server.requests() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.6)  # more than one batch of activity
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    box.equal("stopped", process.returncode, INTERRUPTED)
    box.check("what came is kept", b"The key:" in out, out)
    whole = KEY.encode()
    box.check("the whole key is nowhere", not any(whole in d for d in [out, err, *everywhere(box).values()]))


def test_a_key_in_the_file(box):
    """A plain key in the settings works, is warned about, and is not shown."""
    box.agent("one", "tools: [glob]\n")
    with box.server([says("fine")], key=json.dumps(KEY)) as server:
        run = box.run("run", "one", "x")
        box.exits("it runs", run, FINE, out="fine", err="plain text")
        box.equal("with that key", server.requests()[0]["headers"]["x-api-key"].encode("latin-1").decode(), KEY)
        for argv in (["config", "get"], ["config", "get", "--json"], ["models", "--json"], ["doctor"], ["check"],
                     ["config", "set", "limits.turns", "5"], ["agents"]):
            answer = box.run(*argv)
            box.check(f"{argv[0]} {argv[1] if len(argv) > 1 else ''} does not show it", not leaks(answer.raw + answer.err.encode()),
                      answer)
    box.exits("a missing variable names itself only", box.run("run", "one", "x", env={"FAKE_KEY": None}), ERRORS)


if __name__ == "__main__":
    main(globals())
