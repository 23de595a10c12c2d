"""Runs the libFuzzer programs of build/fuzz: run_fuzz.py [TARGET…] [SECONDS].

Each target gets SECONDS (60 unless told), two or more at a time as the machine has processors. A corpus grows in
build/corpus/TARGET; the inputs of tests/fuzz/regression/TARGET and the dictionary tests/fuzz/TARGET.dict are used when
they exist. A finding is kept in build/findings/TARGET, from where it moves to the regression inputs with its fix.
"""

import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

from clang_build import listed
from run_tests import SYMBOLIZER

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
MAX_LEN = 65536


def fuzz(target, seconds):
    corpus, findings = BUILD / "corpus" / target, BUILD / "findings" / target
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    command = [str(BUILD / "fuzz" / target), f"-max_total_time={seconds}", f"-max_len={MAX_LEN}", "-timeout=20",
               "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={findings}/", str(corpus)]
    seeds = ROOT / "tests" / "fuzz" / "regression" / target
    if seeds.is_dir():
        command.append(str(seeds))
    words = ROOT / "tests" / "fuzz" / f"{target}.dict"
    if words.exists():
        command.append(f"-dict={words}")
    env = os.environ | {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1",
                        "ASAN_SYMBOLIZER_PATH": SYMBOLIZER, "UBSAN_SYMBOLIZER_PATH": SYMBOLIZER}
    log = BUILD / "findings" / f"{target}.log"
    with log.open("wb") as output:
        code = subprocess.run(command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT).returncode
    text = log.read_text(errors="replace")
    runs = re.search(r"number_of_executed_units: (\d+)", text)
    cover = re.findall(r"cov: (\d+)", text)
    return target, code, runs[1] if runs else "?", cover[-1] if cover else "?", log


def main(arguments):
    seconds, wanted = 60, []
    for argument in arguments:
        if argument.isdigit() and int(argument) > 0:
            seconds = int(argument)
        else:
            wanted.append(argument)
    known = listed("fuzzers")
    if unknown := [name for name in wanted if name not in known]:
        print(f"no such target: {' '.join(unknown)}; there are: {' '.join(known)}", file=sys.stderr)
        return 2
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for target, code, runs, cover, log in pool.map(lambda name: fuzz(name, seconds), wanted or known):
            print(f"{'FAIL' if code else 'ok':4} {target:20} {seconds} s, {runs} runs, coverage {cover}", flush=True)
            if code:
                bad += 1
                print("".join(f"     | {line}\n" for line in log.read_text(errors="replace").splitlines()[-40:]), end="")
                print(f"     the input is in build/findings/{target}/, the whole output in {log.relative_to(ROOT)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
