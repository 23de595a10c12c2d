"""The scripts of ./dev check catch what they are for: each fault is put into a small tree, which is fine without it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = {
    "build.zig": 'const core_files = [_][]const u8{\n    "base/a.c",\n    "yaml/y.c",\n};\n'
                 'const main_files = [_][]const u8{\n    "main.c",\n};\n'
                 'const suites = [_][]const u8{\n    "base_a",\n};\n'
                 'const fuzzers = [_][]const u8{};\nconst bench_programs = [_][]const u8{};\n'
                 'const support_files = [_][]const u8{};\n',
    "dev": "#!/bin/sh\n:\n",
    ".ci/run": "#!/usr/bin/env bash\n:\n",
    "include/deputy/str.h": "#pragma once\n",
    "include/deputy/yaml.h": "#pragma once\n#include <deputy/str.h>\n",
    "src/main.c": "#include <deputy/yaml.h>\n",
    "src/base/a.c": '#include <deputy/str.h>\n#include "base/a_int.h"\n',
    "src/base/a_int.h": "#pragma once\n",
    "src/yaml/y.c": "#include <deputy/yaml.h>\n#include <yaml.h>\n",
    "tests/unit/base_a_test.c": "",
    "tests/fuzz/standalone_driver.c": "",
}
# script, file, what is added to it (None: the file is removed), words of the complaint
FAULTS = [
    ("floors.py", "src/base/a.c", "#include <deputy/yaml.h>\n", "points up"),
    ("floors.py", "include/deputy/str.h", "#include <deputy/yaml.h>\n", "points up"),
    ("floors.py", "src/yaml/y.c", "#include <deputy/search.h>\n", "points sideways"),
    ("floors.py", "src/yaml/y.c", '#include "base/a_int.h"\n', "private to the room base"),
    ("floors.py", "src/yaml/y.c", '#include "y_int.h"\n', "room/name.h"),
    ("floors.py", "src/yaml/y.c", "  #  include <curl/curl.h>\n", "belongs behind the room model"),
    ("floors.py", "src/yaml/y.c", "#include <deputy/nowhere.h>\n", "no line in floors.txt"),
    ("floors.py", "include/deputy/nowhere.h", "", "no line in floors.txt"),
    ("floors.py", "src/attic/z.c", "", "has no floor"),
    ("lists.sh", "src/base/b.c", "", "source not listed in build.zig (core_files main_files): base/b.c"),
    ("lists.sh", "src/yaml/y.c", None, "there is none: yaml/y.c"),
    ("lists.sh", "tests/unit/base_b_test.c", "", "unit suite not listed in build.zig (suites): base_b"),
    ("lists.sh", "tests/unit/stray.c", "", "not a unit suite"),
    ("lists.sh", "tests/fuzz/fuzz_new.c", "", "fuzz target not listed"),
    ("lists.sh", "tests/support/new.c", "", "test support file not listed"),
    ("style.sh", "src/base/a.c", "#embed \"x\"\n", "#embed belongs"),
    ("style.sh", "src/base/a.c", "int f(void) {\n    static int n;\n    return n++;\n}\n", "outlives a call"),
    ("style.sh", "src/yaml/y.c", "int f(void) {\n    return open(\"x\", 0);\n}\n", "opened by src/base"),
    ("style.sh", "src/base/a.c", "// TO" "DO\n", "leftover"),
    ("style.sh", "src/base/a.c", "int a; \n", "trailing blanks"),
    ("style.sh", "src/base/a.c", "\n" * 701, "split it"),
]


def make(top):
    shutil.rmtree(top, ignore_errors=True)
    for name, text in TREE.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree(ROOT / "tests" / "support" / "check", top / "tests" / "support" / "check")


def run(top, script):
    command = [sys.executable if script.endswith(".py") else "sh", str(top / "tests" / "support" / "check" / script)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    top = Path(os.environ["TMPDIR"]) / "tree"
    bad = 0
    make(top)
    for script in ("floors.py", "lists.sh", "style.sh"):
        code, output = run(top, script)
        if code or output:
            print(f"{script} complains about a good tree: {output}")
            bad += 1
    for script, name, added, words in FAULTS:
        make(top)
        path = top / name
        if added is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as f:
                f.write(added)
        code, output = run(top, script)
        if code != 1 or words not in output:
            print(f"{script} on {name} + {added!r}: exit code {code}, not a word of {words!r}: {output}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
