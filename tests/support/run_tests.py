"""Runs what `zig build test-bin` has built: unit suites, end-to-end tests, fuzz replays; prints one line each and totals.

A unit suite is a cmocka program (PREFIX/tests/unit/NAME) whose TAP output is counted test by test. An end-to-end test is
tests/e2e/NAME.sh or .py; exit code 0 passes, 77 skips. A fuzz replay (PREFIX/tests/fuzz/NAME) runs over the files of
tests/fuzz/regression/NAME. The last line of the output is `N passed, N failed[, N skipped]`; the exit code is 1 when
something failed, 2 on wrong usage.
"""

import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("unit", "e2e", "fuzz")
TAP = re.compile(r"^(ok|not ok) \d+ (?:- (.*)|# SKIP (.*))$")
PLAN = re.compile(r"^1\.\.(\d+)$")
SYMBOLIZER = "/usr/lib/llvm-19/bin/llvm-symbolizer"
TAIL = 60  # lines of output shown of a failed end-to-end test or replay


class Outcome:
    """What one program gave: names by verdict, and the text to show when something failed."""

    def __init__(self, kind, name):
        self.kind, self.name, self.seconds, self.output = kind, name, 0.0, ""
        self.passed, self.failed, self.skipped = [], [], []


def run_program(argv, env, timeout):
    """Exit code (None after a timeout) and the merged output. What the program left running ends with it."""
    with tempfile.TemporaryFile() as output:  # a pipe would wait for left-over children that hold it
        try:
            process = subprocess.Popen(argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:  # listed after the build, or not executable
            return 127, f"{argv[0]}: {error.strerror}"
        try:
            code = process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")


def ended(code, timeout):
    """How a program ended, as words; empty when it ended well."""
    if code is None:
        return f"stopped after {timeout} s"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}" if code else ""


class Runner:
    def __init__(self, options):
        self.options = options
        self.prefix = Path(options.prefix).resolve()
        self.wrap = shlex.split(options.wrap)

    def environment(self, scratch):
        """The caller's environment without what would let a test touch the person's own files or keys."""
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("XDG_", "DEPUTY_", "CMOCKA_", "ANTHROPIC_", "OPENAI_")) or k == "DEPUTY_SHARED"}
        for name in ("home", "tmp"):
            (scratch / name).mkdir()
        env |= {"HOME": str(scratch / "home"), "TMPDIR": str(scratch / "tmp"), "LC_ALL": "C.UTF-8", "TZ": "UTC",
                "DEPUTY": str(self.prefix / "bin" / "deputy"), "CMOCKA_MESSAGE_OUTPUT": "TAP"}
        env |= {k: SYMBOLIZER for k in ("ASAN_SYMBOLIZER_PATH", "UBSAN_SYMBOLIZER_PATH")}
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
        env.setdefault("TSAN_OPTIONS", "halt_on_error=1")
        return env

    def run(self, job):
        kind, name, path = job
        outcome = Outcome(kind, name)
        scratch = Path(tempfile.mkdtemp(prefix="deputy-test-"))
        scratch.chmod(0o711)  # tests of permissions become another user below it
        try:
            env = self.environment(scratch)
            begin = time.monotonic()
            getattr(self, "run_" + kind)(outcome, path, env)
            outcome.seconds = time.monotonic() - begin
        finally:
            make_writable(scratch)
            shutil.rmtree(scratch, ignore_errors=True)
        return outcome

    def run_unit(self, outcome, path, env):
        code, outcome.output = run_program([*self.wrap, str(path)], env, self.options.timeout)
        planned = 0
        for line in outcome.output.splitlines():
            if plan := PLAN.match(line):
                planned += int(plan[1])
            elif tap := TAP.match(line):
                if tap[3] is not None:
                    outcome.skipped.append(tap[3])
                else:
                    (outcome.passed if tap[1] == "ok" else outcome.failed).append(tap[2])
        done = len(outcome.passed) + len(outcome.failed) + len(outcome.skipped)
        how = ended(code, self.options.timeout)
        if planned == 0:
            outcome.failed.append(f"no test ran ({how or 'no plan in the output'})")
        elif done < planned:
            outcome.failed += [f"not run, number {n} ({how or 'no verdict'})" for n in range(done + 1, planned + 1)]
        elif how and not outcome.failed:
            outcome.failed.append(f"the suite as a whole ({how})")

    def run_script(self, outcome, argv, env):
        code, outcome.output = run_program(argv, env, self.options.timeout)
        if code == 77:
            outcome.skipped.append(outcome.name)
        elif code == 0:
            outcome.passed.append(outcome.name)
        else:
            outcome.failed.append(f"{outcome.name} ({ended(code, self.options.timeout)})")

    def run_e2e(self, outcome, path, env):
        self.run_script(outcome, [sys.executable if path.suffix == ".py" else "sh", str(path)], env)

    def run_fuzz(self, outcome, path, env):
        inputs = ROOT / "tests" / "fuzz" / "regression" / outcome.name
        self.run_script(outcome, [*self.wrap, str(path), *([str(inputs)] if inputs.is_dir() else [])], env)


def make_writable(top):
    """A test may leave directories without permissions behind; they must not survive it."""
    for folder, names, _ in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)


def find_jobs(options):
    prefix = Path(options.prefix)
    unit, fuzz, e2e = prefix / "tests" / "unit", prefix / "tests" / "fuzz", ROOT / "tests" / "e2e"
    listed = {kind: listed_in_build(name) for kind, name in (("unit", "suites"), ("fuzz", "fuzzers"))}
    jobs = [("unit", name, unit / name) for name in listed["unit"]]
    jobs += [("e2e", path.stem, path) for path in sorted(e2e.glob("*"))
             if path.suffix in (".sh", ".py") and path.name[0] not in "._" and not path.stem.endswith("_lib")]
    jobs += [("fuzz", name, fuzz / name) for name in listed["fuzz"]]
    only = options.only.split(",")
    jobs = [job for job in jobs if job[0] in only]
    if options.names:
        jobs = [job for job in jobs if any(name in job[1] for name in options.names)]
    return jobs


def listed_in_build(name):
    script = ROOT / "tests" / "support" / "check" / "list.sh"
    return subprocess.run(["sh", str(script), name], cwd=ROOT, check=True, capture_output=True,
                          text=True).stdout.split()


def report(outcome, verbose):
    counts = f"{len(outcome.passed)} passed, {len(outcome.failed)} failed"
    if outcome.skipped:
        counts += f", {len(outcome.skipped)} skipped"
    mark = "FAIL" if outcome.failed else "skip" if not outcome.passed else "ok"
    print(f"{mark:4} {outcome.kind:4} {outcome.name:36} {counts} ({outcome.seconds:.2f} s)")
    if verbose:
        for verdict in ("passed", "skipped"):
            for name in getattr(outcome, verdict):
                print(f"       {verdict}  {name}")
    for name in outcome.failed:
        print(f"       failed  {name}")
    if outcome.failed:
        lines = [line for line in outcome.output.splitlines() if outcome.kind != "unit" or not line.startswith("ok ")]
        shown = lines if outcome.kind == "unit" else lines[-TAIL:]
        print("".join(f"     | {line}\n" for line in shown), end="")
    elif outcome.skipped and outcome.kind != "unit":
        print("".join(f"     | {line}\n" for line in outcome.output.splitlines()[-1:]), end="")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only what has NAME in its name")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every test")
    parser.add_argument("--prefix", required=True, help="what was given to zig build -p")
    parser.add_argument("--only", default=",".join(KINDS), help="unit, e2e, fuzz (comma list)")
    parser.add_argument("--wrap", default="", help="command before each suite and replay, such as valgrind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one program")
    options = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")

    jobs = find_jobs(options)
    if options.names and not jobs:
        parser.error("nothing has such a name: " + " ".join(options.names))
    runner = Runner(options)
    passed = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        for outcome in pool.map(runner.run, jobs):
            report(outcome, options.verbose)
            passed += len(outcome.passed)
            failed += len(outcome.failed)
            skipped += len(outcome.skipped)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
