"""What the lanes of run.py share: one process measured, several in turn, and the local model server (stub.c)."""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

DEPUTY = os.path.abspath(os.environ.get("DEPUTY", "build/release/bin/deputy"))
HELPERS = os.path.abspath(os.environ.get("DEPUTY_BENCH", "build/release/tests/bench"))
ROUNDS = 9


def once(argv, env):
    """Wall milliseconds, peak KiB and CPU milliseconds of one process."""
    row = json.loads(subprocess.run([f"{HELPERS}/measure", *argv], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout)
    if row["exit"] > 1:
        sys.exit(f"bench: {argv} ended with {row['exit']}")
    return row["wall"], row["peak"], row["cpu"]


def interleaved(commands, env, rounds=ROUNDS):
    """Median wall, peak memory and CPU of each command, run in turn."""
    samples = {name: [] for name in commands}
    for argv in commands.values():
        once(argv, env)
    for _ in range(rounds):
        for name, argv in commands.items():
            samples[name].append(once(argv, env))
    return {name: [statistics.median(column) for column in zip(*rows)] for name, rows in samples.items()}


def instructions(argv, env):
    if not shutil.which("valgrind"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", *argv], env=env,
                             stdin=subprocess.DEVNULL, capture_output=True)
        for line in run.stderr.decode("utf-8", "replace").splitlines():
            if "Collected" in line:
                return int(line.split(":")[-1])
    return None


def syncs(argv, env):
    """How often a command waits for the disk; None without strace."""
    if not shutil.which("strace"):
        return None
    with tempfile.NamedTemporaryFile("r", suffix=".strace") as out:
        run = subprocess.run(["strace", "-f", "--seccomp-bpf", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o", out.name, *argv],
                             env=env, stdin=subprocess.DEVNULL, capture_output=True)
        if run.returncode:
            return None
        return sum("sync(" in line and "resumed" not in line for line in out)


class Stub:
    """stub.c as a process: `url`, what its requests were (`log`), what it served in all (`stats`)."""

    def __init__(self, folder, *options):
        self.log_file = os.path.join(folder, "stub.log")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.log_file)
        self.process = subprocess.Popen([f"{HELPERS}/stub", "--pid", str(os.getpid()), "--log", self.log_file, *options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().split()[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def stats(self):
        self.process.send_signal(signal.SIGUSR1)
        return json.loads(self.process.stdout.readline())

    def log(self):
        """Requests since the last call."""
        self.stats()
        with open(self.log_file, "r+", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
            file.truncate(0)
        return rows
