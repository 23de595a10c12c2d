"""The table "Rules and their tests" of tests/README.md names tests that exist, and every rule that binds now."""

import re
import sys

sys.dont_write_bytecode = True
from lib.deputy import ROOT, main  # noqa: E402

BINDING = {f"B{n}" for n in (1, 2, 3, 4, 5, 7, 8, 9, 10, 14, 16, 18, 19, 20, 21, 22, 23, 24, 27)}


def test_every_rule_has_tests_that_exist(box):
    page = (ROOT / "tests/README.md").read_text(encoding="utf-8").split("## Rules and their tests")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (B\d+) \|.*?\|(.*?)\|", page, re.M)
    box.equal("the rules", {rule for rule, _ in rows}, BINDING)
    box.equal("a row without a test", [rule for rule, tests in rows if "`" not in tests], [])
    sources = {f: f.read_text(encoding="utf-8") for d in ("unit", "e2e") for f in sorted((ROOT / "tests" / d).glob("*.*"))}
    everything = "".join(sources.values())
    suites = set(re.findall(r"`(test_\w+)`", page))
    # The long way for suites that name their tests by a macro.
    missing = [t for t in sorted(suites) if f"{t}(" not in everything and not named(t, everything)]
    box.equal("suites", missing, [])
    scripts = set(re.findall(r"`(\w+\.py): (\w+)`", page)) - {("script.py", "case")}
    box.equal("scripts", [s for s in sorted(scripts)
                          if f"def test_{s[1]}(" not in sources.get(ROOT / "tests/e2e" / s[0], "")], [])


def named(test, everything):
    suite, behaviour = test.split("__", 1)
    return f"{suite}__##" in everything and re.search(rf"\b{behaviour}\b", everything) is not None


if __name__ == "__main__":
    main(globals())
