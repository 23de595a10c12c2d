"""Builds what Zig cannot: the ASan + LSan + UBSan lane and the libFuzzer targets, with clang-19.

    clang_build.py asan    program, suites and replays in build/asan, laid out as `zig build test-bin -p build/asan` would
    clang_build.py fuzz    build/fuzz/NAME, one libFuzzer program for each target

Sources, libraries and warnings are those of build.zig (check/list.sh). An object is compiled again when one of its
inputs, this script or its command line is newer.
"""

import concurrent.futures
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CC = os.environ.get("CLANG", "clang-19")
COMMON = ["-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-march=x86-64-v2", "-D_GNU_SOURCE",
          "-Iinclude", "-Isrc", "--embed-dir=."]
LANES = {
    "asan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "fuzz": ["-fsanitize=fuzzer-no-link,address,undefined", "-fno-sanitize-recover=all"],
}
BANNED = ["-include", "src/base/banned.h"]


def listed(name):
    return subprocess.run(["sh", "tests/support/check/list.sh", name], cwd=ROOT, check=True, capture_output=True,
                          text=True).stdout.split()


def pkg_config(kind, names):
    output = subprocess.run(["pkg-config", kind, *names], check=True, capture_output=True, text=True).stdout
    return shlex.split(output)


class Lane:
    def __init__(self, name):
        self.out = ROOT / "build" / name
        self.sanitize = LANES[name]
        libraries = listed("libraries")
        self.flags = [*listed("warnings"), *COMMON, *self.sanitize, *pkg_config("--cflags", libraries)]
        self.libs = pkg_config("--libs", libraries)
        self.compiled = {}

    def object(self, source, extra=()):
        """The object of a source below the root, to be made by compile_all."""
        target = self.out / "obj" / (source + ".o")
        self.compiled[target] = [CC, *self.flags, *extra, "-MMD", "-c", source, "-o", str(target)]
        return target

    def compile_all(self):
        stale = [(target, command) for target, command in self.compiled.items() if not fresh(target, command)]
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            return all(list(pool.map(lambda job: compile_one(*job), stale)))

    def link(self, target, objects, extra=()):
        if target.exists() and all(o.stat().st_mtime <= target.stat().st_mtime for o in objects):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([CC, *self.sanitize, "-o", str(target), *map(str, objects), *extra, "-Wl,--as-needed", *self.libs],
                       cwd=ROOT, check=True)


def fresh(target, command):
    """Whether the object is newer than all its inputs and was made by the same command."""
    record, depfile = target.with_suffix(".cmd"), target.with_suffix(".d")
    if not (target.exists() and record.exists() and depfile.exists()) or record.read_text() != shlex.join(command):
        return False
    inputs = depfile.read_text().replace("\\\n", " ").split(":", 1)[1].split()
    made = target.stat().st_mtime
    return all((ROOT / i).exists() and (ROOT / i).stat().st_mtime <= made for i in inputs)


def compile_one(target, command):
    target.parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        return False
    target.with_suffix(".cmd").write_text(shlex.join(command))
    return True


def build(name):
    lane = Lane(name)
    core = [lane.object(f"src/{f}", BANNED) for f in listed("core_files")]
    programs = []
    if name == "asan":
        cmocka = ["-Itests", *pkg_config("--cflags", ["cmocka"])]
        main = [lane.object(f"src/{f}", BANNED) for f in listed("main_files")]
        support = [lane.object(f"tests/support/{f}", cmocka) for f in listed("support_files")]
        driver = lane.object("tests/fuzz/standalone_driver.c")
        programs.append((lane.out / "bin" / "deputy", main, ()))
        for suite in listed("suites"):
            own = lane.object(f"tests/unit/{suite}_test.c", cmocka)
            programs.append((lane.out / "tests" / "unit" / suite, [own, *support], pkg_config("--libs", ["cmocka"])))
        for target in listed("fuzzers"):
            own = lane.object(f"tests/fuzz/fuzz_{target}.c", ["-Itests"])
            programs.append((lane.out / "tests" / "fuzz" / target, [own, driver], ()))
    else:
        for target in listed("fuzzers"):
            own = lane.object(f"tests/fuzz/fuzz_{target}.c", ["-Itests"])
            programs.append((lane.out / target, [own], ["-fsanitize=fuzzer"]))
    if not lane.compile_all():
        return 1
    archive = lane.out / "lib" / "libdeputy.a"
    if not archive.exists() or any(o.stat().st_mtime > archive.stat().st_mtime for o in core):
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.unlink(missing_ok=True)
        subprocess.run(["ar", "rcs", str(archive), *map(str, core)], check=True)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        list(pool.map(lambda p: lane.link(p[0], [*p[1], archive], p[2]), programs))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in LANES:
        sys.exit("usage: clang_build.py " + "|".join(LANES))
    try:
        sys.exit(build(sys.argv[1]))
    except subprocess.CalledProcessError as failed:
        sys.exit(f"clang_build.py: {shlex.join(map(str, failed.cmd))[:200]} ended with {failed.returncode}")
