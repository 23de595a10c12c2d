"""What the end-to-end tests of the command line share: a throw-away home and workspace, running the program with and
without a terminal, the scripted model server, and a small runner. Python 3.11, standard library only.

A test file defines functions `test_<behaviour>(box)` and ends with `main(globals())`. Each function gets a Box of its own;
`box.check(what, condition, detail)` prints one line. Failures are listed again at the end and give exit code 1.
"""

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("DEPUTY_SHARED") or ROOT.parent / "shared")
LIMIT = 60  # seconds for one run of the program; only a hang reaches it

FINE, ERRORS, USAGE, REFUSED, UNREADABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130
KEPT = ("PATH", "LC_ALL", "TZ", "DEPUTY_SHARED", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
        "ASAN_SYMBOLIZER_PATH", "UBSAN_SYMBOLIZER_PATH")


class Result:
    """One run: exit code, standard output and standard error as text."""

    def __init__(self, argv, code, out, err):
        self.argv, self.code, self.raw = argv, code, out
        self.out, self.err = out.decode("utf-8", "backslashreplace"), err.decode("utf-8", "backslashreplace")

    def json(self):
        """The one JSON document of standard output; anything else is an error of the test."""
        return json.loads(self.raw.decode("utf-8"), object_pairs_hook=unique)

    def lines(self):
        """One JSON document a line."""
        return [json.loads(line, object_pairs_hook=unique) for line in self.raw.decode("utf-8").splitlines()]

    def __str__(self):
        return f"deputy {' '.join(self.argv)}\nexit {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


def unique(pairs):
    keys = [k for k, _ in pairs]
    assert len(keys) == len(set(keys)), f"a JSON object names a key twice: {keys}"
    return dict(pairs)


class NoTerminal(Exception):
    """A bare chroot has no /dev/pts: what asks a person cannot be tested there."""


class Box:
    """A home, a workspace and an environment of their own, below one temporary directory."""

    def __init__(self, name):
        self.top = Path(tempfile.mkdtemp(prefix="deputy-e2e-")).resolve()
        self.name, self.passed, self.failed = name, 0, []
        self.home, self.ws, self.tmp = (self.top / d for d in ("home", "ws", "tmp"))
        self.config, self.state = self.top / "config", self.top / "state"
        for path in (self.home, self.ws, self.tmp):
            path.mkdir()
        self.env = {k: v for k, v in os.environ.items() if k in KEPT}
        self.env |= {"HOME": str(self.home), "TMPDIR": str(self.tmp), "XDG_CONFIG_HOME": str(self.config),
                     "XDG_STATE_HOME": str(self.state), "TERM": "xterm", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        self.deputy = os.environ.get("DEPUTY") or sys.exit("set DEPUTY to the program under test")

    def close(self):
        for folder, names, _ in os.walk(self.top):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.top, ignore_errors=True)

    # --- Verdicts

    def check(self, what, condition, detail=""):
        """Prints one line; a failure shows what was seen (a Result, or any value)."""
        if condition:
            self.passed += 1
            print(f"ok      {self.name}: {what}", flush=True)
            return True
        self.failed.append(f"{self.name}: {what}")
        print(f"FAILED  {self.name}: {what}", flush=True)
        for line in str(detail).splitlines()[:60]:
            print(f"      | {line}", flush=True)
        return False

    def equal(self, what, seen, wanted):
        return self.check(what, seen == wanted, f"seen:   {seen!r}\nwanted: {wanted!r}")

    def exits(self, what, result, code, out=None, err=None):
        """The exit code, and that the texts (one or several) stand in the stream."""
        def holds(stream, texts):
            return all(t in stream for t in ([texts] if isinstance(texts, str) else texts or []))
        good = result.code == code and holds(result.out, out) and holds(result.err, err)
        return self.check(f"{what} (exit {code})", good, f"wanted out {out!r}, err {err!r}\n{result}")

    # --- Files

    def write(self, path, text, where=None):
        """Writes a file of the workspace (or of `where`), parents made."""
        file = (where or self.ws) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def read(self, path, where=None):
        return ((where or self.ws) / path).read_text(encoding="utf-8")

    def agent(self, name, body="", base=None, layer="workspace", trusted=True, description=None, prompt="P"):
        """A definition, written by hand; `trusted` has a person accept all of the workspace."""
        text = f"name: {name}\ndescription: {description or 'About ' + name}\n{body}"
        text += f"prompt: {prompt}\n" if "prompt:" not in body else ""
        folder = self.ws / ".deputy/agents" if layer == "workspace" else self.config / "deputy/agents"
        file = self.write((base or name) + ".yaml", text, folder)
        if trusted and layer == "workspace":
            self.trust()
        return file

    def trust(self):
        self.tty("trust", answers=[("[y/N]", "y\n")])

    def tree(self, where=None):
        """Every file with its bytes, to see that nothing changed."""
        top = where or self.ws
        return {str(p.relative_to(top)): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}

    # --- Running

    def environment(self, env):
        return {k: v for k, v in {**self.env, **(env or {})}.items() if v is not None}

    def run(self, *argv, cwd=None, stdin="", env=None, **more):
        """Runs the program without a terminal: its own session, so that /dev/tty cannot be opened."""
        process = subprocess.run([self.deputy, *map(str, argv)], cwd=cwd or self.ws, env=self.environment(env),
                                 input=stdin.encode() if isinstance(stdin, str) else stdin, capture_output=True,
                                 timeout=LIMIT, start_new_session=True, **more)
        result = Result([str(a) for a in argv], process.returncode, process.stdout, process.stderr)
        if "runtime error" in result.err or "Sanitizer" in result.err:
            self.check("no finding of a sanitizer", False, result)
        return result

    def start(self, *argv, cwd=None, env=None):
        return subprocess.Popen([self.deputy, *map(str, argv)], cwd=cwd or self.ws, env=self.environment(env),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    def tty(self, *argv, answers=(), cwd=None, env=None, out="tty", stdin="tty"):
        """Runs the program on a terminal of its own. `answers`: (text that is waited for, what is typed then).
        out="pipe" keeps standard output apart, stdin="null" gives it no input. Everything on the terminal is `err`."""
        read_end, write_end = os.pipe() if out == "pipe" else (None, None)
        try:
            pid, master = pty.fork()
        except OSError as error:
            raise NoTerminal from error
        if pid == 0:
            os.chdir(cwd or self.ws)
            if write_end is not None:
                os.dup2(write_end, 1)
            if stdin == "null":
                os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.closerange(3, 64)
            os.execve(self.deputy, [self.deputy, *map(str, argv)], self.environment(env))
        if write_end is not None:
            os.close(write_end)
        screen, kept = self.talk(master, read_end, list(answers))
        _, status = os.waitpid(pid, 0)
        os.close(master)
        code = os.waitstatus_to_exitcode(status)
        return Result([str(a) for a in argv], code, kept if out == "pipe" else screen, screen if out == "pipe" else b"")

    @staticmethod
    def talk(master, other, answers):
        """Reads until the program ends, typing each answer when its text has appeared."""
        screen, kept, seen, deadline = b"", b"", 0, time.monotonic() + LIMIT
        sources = [fd for fd in (master, other) if fd is not None]
        while sources and time.monotonic() < deadline:
            for fd in select.select(sources, [], [], 1)[0]:
                try:
                    data = os.read(fd, 65536)
                except OSError:  # the other end of the terminal was closed
                    data = b""
                if not data:
                    sources.remove(fd)
                elif fd == other:
                    kept += data
                else:
                    screen += data
            if answers and (at := screen.find(answers[0][0].encode(), seen)) >= 0:
                seen = at + 1
                os.write(master, answers.pop(0)[1].encode())
        if other is not None:
            os.close(other)
        return screen.replace(b"\r\n", b"\n"), kept

    # --- The scripted model server

    @contextlib.contextmanager
    def server(self, replies, key=None, repeat=False, api="anthropic", program="fake_anthropic.py", **more):
        """A scripted server of tests/support with these replies, configured as the default model fake/one. `more` goes into
        its script."""
        script, record = self.tmp / "script.json", self.tmp / "record.jsonl"
        script.write_text(json.dumps({"replies": replies, "repeat": repeat, "gets": {}, **more}))
        record.unlink(missing_ok=True)
        process = subprocess.Popen([sys.executable, str(ROOT / "tests" / "support" / program), str(script), "--record", str(record)],
                                   stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            port = int(process.stdout.readline().split()[1])
            self.write("deputy/config.yaml", f"model: fake/one\nproviders:\n  fake:\n    api: {api}\n"
                       f"    url: http://127.0.0.1:{port}\n    key: {key or '${FAKE_KEY:-none}'}\n", self.config)
            yield Server(record, port)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()


class Server:
    def __init__(self, record, port):
        self.record, self.port = record, port

    def requests(self, gets=False):
        """What was received so far, oldest first; questions about a model itself only with `gets`."""
        if not self.record.exists():
            return []
        all = [json.loads(line) for line in self.record.read_text(encoding="utf-8").splitlines()]
        return [r for r in all if gets or r.get("method") != "GET"]

    def bodies(self):
        return [r["body"] for r in self.requests()]


# --- Replies of the scripted server

def says(text, **more):
    return {"blocks": [{"type": "text", "text": text}], **more}


def calls(name, arguments, text="", id="toolu_1", **more):
    first = [{"type": "text", "text": text}] if text else []
    return {"blocks": [*first, {"type": "tool_use", "id": id, "name": name, "input": arguments}], **more}


def results_of(body):
    """The tool results that the newest message of a request carries."""
    last = body["messages"][-1]["content"]
    return [b for b in last if b.get("type") == "tool_result"] if isinstance(last, list) else []


def result_text(block):
    content = block["content"]
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content)


def tool_names(body):
    return [t["name"] for t in body.get("tools", [])]


def stripped(text):
    """Without colours, as a person reads it."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def main(names):
    tests = [(n[5:], f) for n, f in names.items() if n.startswith("test_") and callable(f)]
    only = sys.argv[1:]
    passed, failed, no_terminal = 0, [], 0
    for name, test in tests:
        if only and not any(o in name for o in only):
            continue
        box = Box(name)
        try:
            test(box)
        except NoTerminal:
            no_terminal += 1
            print(f"skip    {name}: no pseudo-terminals here (is /dev/pts mounted?)")
        except Exception:  # one broken test must not hide the others
            box.check("runs to its end", False, traceback.format_exc())
        finally:
            passed, failed = passed + box.passed, failed + box.failed
            box.close()
    print(f"{passed} checks passed, {len(failed)} failed")
    for line in failed[:20]:
        print(f"  failed: {line}")
    if not failed and no_terminal:
        print(f"{no_terminal} tests need a terminal, and there are no pseudo-terminals here (is /dev/pts mounted?)")
        sys.exit(77)
    sys.exit(1 if failed or not passed else 0)
