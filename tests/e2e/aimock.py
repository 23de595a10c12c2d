"""Delegations against a mock that others wrote (@copilotkit/aimock from npm), through each of the three APIs: our own servers and
our clients could share one misreading. Text, calls, parallel calls, reasoning, an error, a rate limit, a cut answer, a cut stream.
The mock is installed once below build/; without npm, node 20 or the network this test is skipped."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, ROOT, main  # noqa: E402

PACKAGE, VERSION = "@copilotkit/aimock", "1.43.0"
DIGEST = "sha512-V8D8cjSMtAR4rHaD2ulp3DR/ZguXQjDNOqwKDNvjb/OJL/KR1I0SDf5xpRCd+TYKjhmf9fM8Xpg3QBKPmV9Kmw=="
HOME = ROOT / "build" / "npm" / f"aimock-{VERSION}"
PROGRAM = HOME / "node_modules" / PACKAGE / "dist" / "cli.js"
NODE_MIN = (20, 15)
INSTALL_LIMIT = 60  # seconds

APIS = ("anthropic", "openai", "openai-responses")
ANSWER = "Rinse the spout é日本, then dry it 😀😀😀. " * 8


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def calls(*pairs):
    return [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in pairs]


SEARCH, READ = ("kb_search", {"query": "spout"}), ("read", {"path": "a.md"})
FIXTURES = [
    ({"model": "text"}, {"content": ANSWER, "usage": {"input_tokens": 11, "output_tokens": 7}}),
    ({"model": "tools", "hasToolResult": False}, {"toolCalls": calls(SEARCH)}),
    ({"model": "tools", "toolResultContains": "a.md:2"}, {"content": "As the manual says: a.md:2."}),
    ({"model": "parallel", "hasToolResult": False}, {"content": "One moment.", "toolCalls": calls(SEARCH, READ, SEARCH)}),
    ({"model": "parallel", "hasToolResult": True}, {"content": "Done."}),
    ({"model": "first", "hasToolResult": False}, {"blocks": [
        {"type": "toolCall", "name": "read", "arguments": '{"path": "a.md"}'}, {"type": "text", "text": "Then I look."}]}),
    ({"model": "first", "hasToolResult": True}, {"content": "Done."}),
    ({"model": "reasons", "hasToolResult": False}, {"reasoning": "I should look.", "toolCalls": calls(READ)}),
    ({"model": "reasons", "hasToolResult": True}, {"reasoning": "I have looked.", "content": "Done."}),
    ({"model": "broken", "hasToolResult": False}, {"toolCalls": [{"name": "read", "arguments": '{"path": '}]}),
    ({"model": "broken", "hasToolResult": True}, {"content": "Done."}),
    ({"model": "error"}, {"error": {"message": "No such thing", "type": "invalid_request_error", "code": "bad"}, "status": 400}),
    ({"model": "limit", "sequenceIndex": 0}, {"error": {"message": "Slow", "type": "rate_limit_error"}, "status": 429,
                                              "retryAfter": 0}),
    ({"model": "limit", "sequenceIndex": 1}, {"error": {"message": "Busy", "type": "overloaded_error"}, "status": 503}),
    ({"model": "limit"}, {"content": "At last."}),
    ({"model": "length"}, {"content": "Half an ans", "finishReason": "length"}),
]
# Slowly: what the mock has not sent when it breaks off is lost.
CUT = {"match": {"model": "cut"}, "response": {"content": ANSWER}, "latency": 5, "truncateAfterChunks": 15}


def install():
    """npm ci with the digest of the package; a half installed one is never seen under its name."""
    if PROGRAM.exists():
        return
    package = {"name": "deputy-e2e", "version": "0.0.0", "private": True, "dependencies": {PACKAGE: VERSION}}
    lock = {"name": "deputy-e2e", "version": "0.0.0", "lockfileVersion": 3, "requires": True, "packages": {
        "": package, f"node_modules/{PACKAGE}": {"version": VERSION, "integrity": DIGEST}}}
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME.parent) as folder:
        for name, value in (("package.json", package), ("package-lock.json", lock)):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
                json.dump(value, f)
        try:
            done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"], cwd=folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=INSTALL_LIMIT, check=False)
        except subprocess.TimeoutExpired:
            skip(f"npm did not install {PACKAGE} {VERSION} within {INSTALL_LIMIT} s")
        if "EINTEGRITY" in done.stdout:
            print(done.stdout)
            sys.exit(1)
        if done.returncode:
            print(done.stdout)
            skip(f"npm could not install {PACKAGE} {VERSION}; is there a network?")
        with contextlib.suppress(OSError):  # somebody else was first
            os.rename(folder, HOME)
            os.mkdir(folder)  # for the end of the with


def need_node():
    if not shutil.which("node") or not shutil.which("npm"):
        skip("node and npm are not installed")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers < NODE_MIN:
        skip(f"node {NODE_MIN[0]}.{NODE_MIN[1]} or newer is needed, here is {version.strip()}")


@contextlib.contextmanager
def mock(box, api):
    """A mock of its own for each API, because it counts; its models are those of the provider `mock`."""
    path = box.tmp / "fixtures.json"
    path.write_text(json.dumps({"fixtures": [*({"match": m, "response": r} for m, r in FIXTURES), CUT]}))
    process = subprocess.Popen(["node", str(PROGRAM), "--port", "0", "--fixtures", str(path), "--chunk-size", "5", "--strict"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                               env={**box.env, "AIMOCK_API_KEYS": "mock-key"})
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"listening on (http://127\.0\.0\.1:\d+)", line):
                break
        else:
            raise RuntimeError("the mock did not start:\n" + "".join(lines))
        box.write("deputy/config.yaml", f"providers:\n  mock:\n    api: {api}\n    url: {found[1]}/v1\n    key: ${{MOCK_KEY}}\n",
                  box.config)
        yield found[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def ask(box, model):
    return box.run("run", "one", "How do I clean it?", "--model", f"mock/{model}", "--json", env={"MOCK_KEY": "mock-key"})


def served(url, model):
    """How often the mock was asked for that model."""
    request = urllib.request.Request(f"{url}/__aimock/journal", headers={"authorization": "Bearer mock-key"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return sum((entry.get("body") or {}).get("model") == model for entry in json.load(answer))


def whole(box, api, url):
    rows = [("text", ANSWER.strip(), 0), ("tools", "As the manual says: a.md:2.", 1), ("parallel", "Done.", 3),
            ("first", "Done.", 1), ("reasons", "Done.", 1), ("broken", "Done.", 1)]
    for model, report, n in rows:
        run = ask(box, model)
        r = run.json() if run.code == FINE else {}
        if not box.check(f"{api}: {model}", r.get("status") == "completed" and r["report"].strip() == report
                         and r["tool_calls"] == n, run):
            continue
        box.equal(f"{api}: {model}: turns", (r["turns"], served(url, model)), (2, 2) if n else (1, 1))
        if model == "text":
            box.equal(f"{api}: usage", (r["usage"]["input_tokens"], r["usage"]["output_tokens"]), (11, 7))
        replay = box.run("replay", r["id"]).out
        wanted = "Rinse the spout"
        if model == "broken":  # for Anthropic the mock sends {} in its place
            wanted = "Invalid arguments" if api == "anthropic" else "not a JSON object"
        box.check(f"{api}: {model}: every call has its result", n == 0 or replay.count("→ ") == n == replay.count(wanted), replay)
        if model == "reasons":
            box.check(f"{api}: reasoning is heard", "I should look." in replay, replay)


def broken_off(box, api, url):
    error = box.run("run", "one", "x", "--model", "mock/error", env={"MOCK_KEY": "mock-key"})
    box.exits(f"{api}: an error", error, ERRORS, err=["400", "No such thing"])
    box.equal(f"{api}: is not tried again", served(url, "error"), 1)
    refused = box.run("run", "one", "x", "--model", "mock/text", env={"MOCK_KEY": "wrong-key"})
    box.check(f"{api}: a wrong key", refused.code == ERRORS and "401" in refused.err and "wrong-key" not in refused.err, refused)
    limit = ask(box, "limit").json()
    box.equal(f"{api}: a rate limit and an overload pass", (limit["report"], served(url, "limit")), ("At last.", 3))
    length = ask(box, "length").json()
    box.check(f"{api}: the limit of an answer", length["status"] == "truncated" and length["report"] == "Half an ans" * 4
              and "max_tokens" in length["end_reason"], length)
    cut = ask(box, "cut").json()
    box.check(f"{api}: a stream that breaks keeps its text", cut["status"] == "failed" and cut["report"]
              and ANSWER.startswith(cut["report"]), cut)


def test_every_api(box):
    box.write("a.md", "# Kettle\nRinse the spout.\n")
    box.agent("one", "tools: [read]\nknowledge: [{name: M, path: '*.md'}]\n")
    for api in APIS:
        with mock(box, api) as url:
            whole(box, api, url)
            broken_off(box, api, url)


need_node()
install()
main(globals())
