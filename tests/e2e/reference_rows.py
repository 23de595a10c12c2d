"""Rows of the reference specifications that are seen only with the whole program (tests/README.md, "Reference rows")."""

import json
import re
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, ROOT, calls, main, result_text, results_of, says, tool_names  # noqa: E402


def test_every_test_that_the_table_names_exists(box):
    page = (ROOT / "tests/README.md").read_text(encoding="utf-8").split("## Reference rows")[1]
    rows = re.findall(r"^\| ([FL]\d+) \|", page, re.M)
    box.check("each row once", len(rows) == len(set(rows)) > 40, rows)
    sources = {f: f.read_text(encoding="utf-8") for d in ("unit", "e2e") for f in sorted((ROOT / "tests" / d).glob("*.*"))}
    everything = "".join(sources.values())
    named = set(re.findall(r"`(test_\w+)`", page))
    box.equal("suites", [t for t in sorted(named) if f"static void {t}(" not in everything], [])
    scripts = set(re.findall(r"`(\w+\.py): (\w+)`", page))
    box.equal("scripts", [s for s in sorted(scripts)
                          if f"def test_{s[1]}(" not in sources.get(ROOT / "tests/e2e" / s[0], "")], [])


def test_f03_an_unknown_name_is_an_error_with_its_line(box):
    box.agent("a", "tools: [raed]\n")
    answer = box.run("check", "a")
    box.exits("the line, the place and the nearest name", answer, ERRORS,
              out=[".deputy/agents/a.yaml:3:9: error:", '"raed"', "did you mean `read`?"])
    run = box.run("run", "a", "x")
    box.check("and it does not run", run.code not in (FINE,) and "invalid" in run.err, run)


def test_f06_spelling_changes_nothing(box):
    box.agent("one", "tools: [WebFetch, read]\n", description="d")
    box.agent("two", "tools: 'READ, webfetch'\n", description="d")
    box.exits("no difference", box.run("diff", "one", "two"), FINE, out="the same reach")
    grants = [box.run("show", n, "--json").json()["grant"] for n in ("one", "two")]
    box.equal("the same grant, in the table's spelling", grants[0], grants[1])
    box.check("canonical", "WebFetch" in box.run("show", "two").out and "webfetch" not in box.run("show", "two").out)


def test_f20_f21_a_load_lasts_for_the_run_and_brings_guidance(box):
    box.agent("one", "tools: [read]\nmemory: private\nresident: [read]\n")
    steps = [calls("load_tools", {"name": "memory"}), calls("load_tools", {"name": "memory_write"}), says("done")]
    with box.server(steps) as server:
        box.run("run", "one", "x")
        first = server.bodies()
    with box.server([says("done")]) as server:
        box.run("run", "one", "x")
        second = server.bodies()
    answers = [result_text(results_of(b)[0]) for b in first[1:]]
    guidance = "Write down only what a later task will need."
    box.check("F21: guidance comes with the load", guidance in answers[0], answers[0])
    box.check("F21: and stands nowhere before", guidance not in json.dumps(first[0]), first[0])
    box.check("F20: a second load is answered, not done twice", "already" in answers[1], answers[1])
    box.equal("F20: one copy of each", len(tool_names(first[2])), len(set(tool_names(first[2]))))
    box.check("F20: another run begins anew", "memory_write" not in tool_names(second[0]), tool_names(second[0]))


def test_f56_equal_descriptions_are_told(box):
    box.agent("one", "tools: [read]\n", description="Does things")
    box.agent("two", "tools: [read]\n", description="Does things")
    answer = box.run("check", "--json")
    told = [d for d in answer.json()["diagnostics"] if d["code"] == "DEF032"]
    box.equal("one warning", [d["severity"] for d in told], ["warning"])
    box.check("which names both files", "one.yaml" in told[0]["message"] and told[0]["file"].endswith("two.yaml"), told)
    box.agent("three", "tools: [read]\n", description='"  "')
    box.check("an empty one too", any(d["code"] == "DEF003" for d in box.run("check", "--json").json()["diagnostics"]))
    box.equal("warnings do not fail", answer.code, FINE)


def test_f65_counts_of_the_list_are_those_of_the_grant(box):
    box.write("docs/a.md", "x\n")
    box.agent("one", "tools: [read, glob, bash]\nmemory: private\nresident: [read]\napproval: {confirm: [read]}\n"
              "knowledge: [{name: M, path: docs}]\n")
    row = next(a for a in box.run("agents", "--json").json() if a["name"] == "one")
    shown = box.run("show", "one", "--json").json()
    box.check("name, description, layer, file and state", {"name", "description", "layer", "file", "state"} <= set(row), row)
    box.equal("state", row["state"], "effective")
    grant = shown["grant"]
    box.equal("memory", grant["memory"], "private")
    box.equal("sources with their files", [(s["name"], s["files"]) for s in grant["sources"]], [("M", 1)])
    box.check("gates with their origin", any(g["origin"] == "definition" for g in shown["gates"]), shown["gates"])
    rows = {r["name"]: r["state"] for r in shown["report"] if r["dimension"] == "tools"}
    offered = [n for n, s in rows.items() if s in ("granted", "narrowed", "deferred")]
    box.equal("every tool of the report is in the grant, and the reverse",
              sorted(offered + ["available_tools", "load_tools"]), sorted(grant["tools"] + grant["deferred"]))


def test_l11_an_absent_tool_is_no_tool(box):
    box.agent("one", "tools: [read]\n")
    with box.server([calls("WebFetch", {"url": "http://127.0.0.1:1/"}), says("done")]) as server:
        run = box.run("run", "one", "x", "--json").json()
        answer = results_of(server.bodies()[1])[0]
    box.check("the answer names what there is", "ou do not have" in result_text(answer) and "read" in result_text(answer), answer)
    kept = box.run("replay", run["id"], "--json")
    box.check("and it is kept", "WebFetch" in kept.out and "do not have" in kept.out, kept)
    box.equal("the run goes on", run["status"], "completed")


def test_l43_another_agents_dimensions_change_no_byte(box):
    box.agent("one", "tools: [read]\n")
    before = box.run("prompt", "one").raw, box.run("tools", "one").raw
    box.write("docs/a.md", "x\n")
    box.write(".deputy/skills/s/SKILL.md", "---\nname: s\ndescription: S\n---\nB\n")
    box.agent("two", "tools: [read, grep]\nskills: [s]\nmemory: shared\nknowledge: [{name: M, path: docs}]\n"
              "mcp: {servers: [crm]}\n")
    box.equal("the same prompt and tools", (box.run("prompt", "one").raw, box.run("tools", "one").raw), before)


if __name__ == "__main__":
    main(globals())
