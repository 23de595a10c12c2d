"""Verbs that look: agents, check, show, explain, diff, prompt, tools, schema, skills. Their JSON has the shape that
programs rely on; what they print for people is escaped and says where a thing stands."""

import json
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, REFUSED, ROOT, USAGE, main, tool_names  # noqa: E402

STATES = {"granted", "deferred", "missing", "disabled", "unconnected", "narrowed", "withheld", "refused"}
BUILTINS = {"explorer", "librarian", "code-reviewer", "test-runner", "fixer", "main"}
FULL = """# everything
name: full
description: All five
tools: [read, grep, bash, use_skill]
skills: [ways, lost]
mcp:
  servers: [crm, {name: hub, include: [a, b], readonly: true}]
knowledge:
  - name: Manual
    path: docs/**/*.md
  - {name: Nothing, path: none/*.md}
memory: private
maxTurns: 7
limits: {minutes: 4, tokens: 9000}
model: quote/passages
resident: [read, kb_search]
approval:
  confirm: [grep]
permissions:
  read: [docs]
prompt: |
  BODY
"""


def full(box):
    box.write(".deputy/agents/full.yaml", FULL)
    box.write(".deputy/skills/ways/SKILL.md", "---\nname: ways\ndescription: How to\nallowed-tools: Bash\n---\nSteps\n")
    box.write("docs/a.md", "# A\nword\n")
    box.trust()


def test_agents(box):
    full(box)
    box.agent("explorer", "tools: [read]\n")
    box.agent("bad", "tools: [raed]\n")
    box.agent("off", "tools: [read]\n")
    box.run("disable", "off")
    box.agent("new", "tools: [read]\n", trusted=False)
    rows = box.run("agents", "--json").json()
    for row in rows:
        box.check(f"shape of {row['name']} ({row['layer']})", {"name", "description", "layer", "file", "state", "diagnostics"}
                  <= set(row) and isinstance(row["diagnostics"], list), row)
    states = {(r["name"], r["layer"]): r["state"] for r in rows}
    box.equal("states", {states[(n, "workspace")] for n in ("full", "explorer")}, {"effective"})
    box.equal("states", [states[(n, "workspace")] for n in ("bad", "off", "new")], ["invalid", "disabled", "untrusted"])
    shadowed = next(r for r in rows if r["name"] == "explorer" and r["layer"] == "builtin")
    box.equal("a shadowed one says by which file", (shadowed["state"], shadowed["shadowed_by"]),
              ("shadowed", ".deputy/agents/explorer.yaml"))
    box.equal("the bundled ones", {r["name"] for r in rows if r["layer"] == "builtin"}, BUILTINS)
    shown = box.run("agents")
    box.exits("for people", shown, FINE, out=["full", "1 shadowed: see --all", "deputy enable"], err="deputy check")
    box.exits("--all", box.run("agents", "--all"), FINE, out="shadowed by .deputy/agents/explorer.yaml")
    box.check("a broken one hides no other", shown.out.count("\n") >= 10, shown)


def test_check(box):
    full(box)
    box.agent("bad", "tools: [raed]\nmaxTurns: sixty\ncolour: red\n")
    answer = box.run("check", "--json")
    result = answer.json()
    box.equal("exit code with errors", answer.code, ERRORS)
    box.equal("shape", set(result), {"files", "errors", "warnings", "diagnostics"})
    for d in result["diagnostics"]:
        box.check(f"a diagnostic has all of its members: {d['code']}",
                  {"severity", "code", "file", "line", "column", "end", "path", "message", "hint"} <= set(d), d)
    count = lambda s: sum(d["severity"] == s for d in result["diagnostics"])  # noqa: E731
    box.equal("the counts agree", (result["errors"], result["warnings"]), (count("error"), count("warning")))
    box.check("all faults in one go", {(".deputy/agents/bad.yaml", 3), (".deputy/agents/bad.yaml", 4),
              (".deputy/agents/bad.yaml", 5)} <= {(d["file"], d["line"]) for d in result["diagnostics"]}, result)
    text = box.run("check", "bad")
    box.exits("as text with place and caret", text, ERRORS,
              out=[".deputy/agents/bad.yaml:3:9: error:", "tools: [raed]", "^~~~", "hint: "])
    box.check("nothing on standard error", not text.err, text)
    box.exits("one sound definition", box.run("check", "full"), FINE, out="1 file checked: 0 errors")
    box.exits("a missing skill is named", box.run("check", "full"), FINE, out=["lost", "Nothing"])
    box.exits("--strict makes warnings errors", box.run("check", "full", "--strict"), ERRORS, out="error:")
    box.exits("nobody", box.run("check", "nobody"), ERRORS, err="no agent")
    loose = box.write("loose.yaml", FULL.replace("full", "loose"), box.tmp)
    box.exits("a file by its path", box.run("check", loose), FINE, out="1 file")
    box.exits("several", box.run("check", "full", loose, "explorer"), FINE, out="3 files")
    box.exits("a path that is not there", box.run("check", "./no.yaml"), ERRORS, err="no.yaml")
    box.write("a.md", "x", box.tmp)
    box.exits("the bundled ones are sound", box.run("-C", box.tmp, "check", "--all", "--strict"), FINE, out="0 errors, 0 warn")
    box.write(".deputy/config.yaml", "providers: {x: {api: anthropic}}\nlimits: {turns: 99}\n")
    box.trust()
    settings = {d["code"] for d in box.run("check", "--json").json()["diagnostics"] if d["file"] == ".deputy/config.yaml"}
    box.check("settings are checked", {"CFG001", "CFG002"} <= settings, settings)
    box.write(".deputy/agent-memory/gone/MEMORY.md", "x\n")
    orphan = box.run("check")
    box.check("memory that nobody owns is named", ".deputy/agent-memory/gone" in orphan.out, orphan)


def test_show(box):
    full(box)
    answer = box.run("show", "full", "--json")
    shown = answer.json()
    box.check("shape", {"definition", "grant", "report", "gates", "permissions", "level", "model"} <= set(shown), shown.keys())
    box.check("shape of the grant", {"tools", "deferred", "skills", "servers", "sources", "memory"} <= set(shown["grant"]),
              shown["grant"])
    box.equal("the definition as written", shown["definition"]["limits"], {"minutes": 4, "tokens": 9000})
    for row in shown["report"]:
        box.check(f"row {row['dimension']} {row['name']}", {"dimension", "name", "state", "reason", "at"} <= set(row)
                  and row["state"] in STATES, row)
    rows = {(r["dimension"], r["name"]): r for r in shown["report"]}
    box.equal("states", [rows[k]["state"] for k in (("tools", "read"), ("tools", "bash"), ("skills", "ways"), ("skills", "lost"),
              ("mcp", "crm"), ("knowledge", "Manual"), ("knowledge", "Nothing"))],
              ["narrowed", "missing", "granted", "missing", "unconnected", "granted", "missing"])
    box.check("each declared item has a row", {4, 5, 7, 9, 11, 12, 18} <= {r["at"]["line"] for r in shown["report"] if r["at"]},
              shown["report"])
    box.equal("deferred ones", sorted(shown["grant"]["deferred"]), ["grep", "memory_read", "memory_search", "memory_write",
                                                                   "use_skill"])
    box.equal("budgets", shown["budgets"], {"turns": 7, "minutes": 4, "tokens": 9000, "cost": None})
    box.equal("gates with their origin", [(g["gate"], g["list"], g["line"]) for g in shown["gates"]], [("grep", "confirm", 18)])
    box.equal("permissions", shown["permissions"]["read"], ["docs"])
    box.equal("an absent axis grants nothing", (shown["permissions"]["write"], shown["permissions"]["net"]), ([], []))
    text = box.run("show", "full")
    box.exits("for people", text, FINE, out=["All five", "quote/passages", "lost", "unconnected", "confirm", "docs", "7 turns",
                                             "4 minutes", "full.yaml:5"])
    box.exits("--role main", box.run("show", "full", "--role", "main", "--json"), FINE, out='"role":"main"')
    box.exits("--role nonsense", box.run("show", "full", "--role", "boss"), USAGE, err="delegate or main")
    box.exits("nobody", box.run("show", "nobody"), ERRORS, err="no agent")
    box.exits("a near name", box.run("show", "explorr"), ERRORS, err='did you mean "explorer"')
    box.exits("in any case", box.run("show", "FULL"), FINE)
    box.exits("by its file", box.run("show", ".deputy/agents/full.yaml"), FINE)
    box.exits("a builtin by its file", box.run("show", "builtin:explorer.yaml"), FINE)


def test_explain(box):
    full(box)
    answer = box.run("explain", "full", "--json").json()
    box.equal("shape", set(answer), {"items"})
    for item in answer["items"]:
        box.check(f"item {item['item']}", {"item", "state", "rules"} <= set(item) and item["state"] in STATES
                  and all({"rule", "effect", "at"} <= set(r) for r in item["rules"]), item)
    names = {i["item"] for i in answer["items"]}
    box.check("all that is not in effect, and no more", {"bash", "lost", "crm", "Nothing", "grep"} <= names
              and not {"ways", "Manual"} & names, names)
    read = box.run("explain", "full", "READ", "--json").json()["items"]
    box.check("one item: what grants it and what narrows it", len(read) == 1 and {4, 20}
              <= {r["at"]["line"] for r in read[0]["rules"]}, read)
    deferred = box.run("explain", "full", "grep")
    box.exits("a deferred, gated one", deferred, FINE, out=["defers", "full.yaml:16", "full.yaml:18"])
    box.exits("what is not declared", box.run("explain", "full", "write"), FINE, out=["not declared", "`tools`"])
    box.exits("what nobody knows", box.run("explain", "full", "zzz"), FINE, out="not declared")
    box.agent("small", "tools: [read]\n")
    box.exits("nothing to explain", box.run("explain", "small"), FINE, out="everything that is declared is in effect")
    box.equal("as JSON", box.run("explain", "small", "--json").json(), {"items": []})


def test_diff(box):
    box.agent("one", "tools: [read, grep]\nmemory: private\napproval: {confirm: [grep]}\n")
    box.agent("two", "tools: [read, bash]\nknowledge: [{name: M, path: '*.md'}]\n")
    answer = box.run("diff", "one", "two", "--json")
    d = answer.json()
    box.equal("shape", set(d), {"gained", "lost", "gates_gained", "gates_lost"})
    box.equal("growth is exit 1", answer.code, ERRORS)
    box.check("what was gained and lost", any("bash" in g for g in d["gained"]) and any("*.md" in g for g in d["gained"])
              and any("grep" in g for g in d["lost"]) and any("memory" in g for g in d["lost"]), d)
    box.exits("for people", box.run("diff", "one", "two"), ERRORS, out=["+ ", "- "])
    box.agent("strict", "tools: [read, grep]\napproval: {confirm: [grep]}\n")
    box.agent("free", "tools: [read, grep]\n")
    gate = box.run("diff", "strict", "free", "--json")
    box.check("a gate that is lost is growth", gate.code == ERRORS and gate.json()["gates_lost"]
              and not gate.json()["gained"], gate)
    box.agent("less", "tools: [read]\napproval: {confirm: [read]}\n")
    box.exits("less reach and more gates is exit 0", box.run("diff", "one", "less"), FINE, out=["- tool grep", "+ gate"])
    box.exits("the same", box.run("diff", "one", "one"), FINE, out="the same reach")
    box.exits("a file", box.run("diff", "one", box.ws / ".deputy/agents/two.yaml"), ERRORS, out="+ ")
    box.exits("nobody", box.run("diff", "one", "nobody"), ERRORS, err="no agent")
    box.write("bad.yaml", "name: [\n")
    box.exits("a broken file", box.run("diff", "one", "./bad.yaml"), ERRORS, err="bad.yaml:")


def test_prompt(box):
    full(box)
    exact = box.run("prompt", "full")
    box.check("the body is last and exact", exact.out.endswith("\n\nBODY\n") or exact.out.endswith("\n\nBODY"), exact)
    box.check("nothing else on either stream", exact.code == FINE and "DEF" not in exact.err, exact)
    box.equal("equal input, equal bytes", box.run("prompt", "full").raw, exact.raw)
    box.equal("a terminal changes nothing", box.tty("prompt", "full").out, exact.out)
    box.equal("--json is the same text", box.run("prompt", "full", "--json").json(), exact.out)
    parts = box.run("prompt", "full", "--parts", "--json").json()
    at = 0
    for part in parts:
        box.check(f"part {part['part']}", set(part) == {"part", "offset", "bytes", "tokens"} and part["offset"] >= at, part)
        at = part["offset"] + part["bytes"]
    box.equal("the parts end where the text ends", at, len(exact.raw))
    box.check("framing first, body last", parts[0]["part"] == "framing" and parts[-1]["part"] == "body", parts)
    box.exits("--parts for people", box.run("prompt", "full", "--parts"), FINE, out=["framing", "tokens"])
    main_role = box.run("prompt", "full", "--role", "main")
    box.check("another role, another framing", main_role.code == FINE and main_role.out != exact.out)
    box.exits("--role nonsense", box.run("prompt", "full", "--role", "x"), USAGE)
    box.agent("bad", "tools: [raed]\n")
    box.exits("a broken one has none", box.run("prompt", "bad"), ERRORS, err="bad.yaml:3")
    box.agent("plain", "tools: [read]\n")
    text = box.run("prompt", "plain").out
    box.check("undeclared dimensions add nothing", not any(w in text for w in ("<available_skills", "<knowledge", "<memory",
              "<allowed_mcp")), text)


def test_tools(box):
    full(box)
    array = box.run("tools", "full").json()
    box.equal("the array as sent: resident ones, in the table's order", [t["name"] for t in array],
              ["read", "kb_search", "available_tools", "load_tools"])
    box.check("names, descriptions, schemas", all({"name", "description", "input_schema"} <= set(t) for t in array), array)
    box.equal("--api anthropic", box.run("tools", "full", "--api", "anthropic").json(), array)
    functions = box.run("tools", "full", "--api", "openai").json()
    box.equal("--api openai: the same as functions", functions,
              [{"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": t["input_schema"]}}
               for t in array])
    responses = box.run("tools", "full", "--api", "openai-responses").json()
    box.equal("--api openai-responses: the same tools in its form",
              [(t["type"], t["name"], t["description"], t["parameters"]) for t in responses],
              [("function", t["name"], t["description"], t["input_schema"]) for t in array])
    box.exits("an API nobody knows", box.run("tools", "full", "--api", "smtp"), USAGE, err=["smtp", "openai-responses"])
    catalogue = box.run("tools", "--json").json()
    names = [t["name"] for t in catalogue]
    box.check("the catalogue has the grantable names first", names[:12] == ["bash", "read", "write", "edit", "glob", "grep",
              "task_output", "task_stop", "WebFetch", "WebSearch", "use_skill", "todo"], names)
    read = next(t for t in catalogue if t["name"] == "read")
    box.check("who holds what", "full" in read["held_by"] and "explorer" in read["held_by"], read)
    box.exits("for people", box.run("tools"), FINE, out=["not yet", "here", "full"])
    box.check("the resident ones are what a request carries", tool_names({"tools": array}) == [t["name"] for t in array])


def test_schema(box):
    for what in ("definition", "config", "skill", "report"):
        answer = box.run("schema", what)
        schema = answer.json()
        box.check(f"schema {what}", answer.code == FINE and schema["$schema"].startswith("https://json-schema.org/")
                  and schema["type"] == "object", answer)
        file = json.loads((ROOT / f"schemas/{what}.schema.json").read_text())
        box.check(f"{what} is the file of the repository", schema == file, f"schemas/{what}.schema.json differs")
    box.equal("definition is the default", box.run("schema").raw, box.run("schema", "definition").raw)
    for what in ("definition", "config", "skill"):
        page = box.run("schema", what, "--reference")
        box.exits(f"{what} --reference", page, FINE, out="|")
    box.exits("of nothing", box.run("schema", "nothing"), USAGE, err="definition, config, skill, report")


def test_skills(box):
    full(box)
    box.write(".claude/skills/ways/SKILL.md", "---\nname: ways\ndescription: Another\n---\nB\n")
    box.write(".deputy/skills/Odd Folder/SKILL.md", "---\nname: tide-table\ndescription: Tides\n---\nB\n")
    box.write("deputy/skills/mine/SKILL.md", "---\nname: mine\ndescription: My own\n---\nB\n", box.config)
    box.write(".deputy/skills/broken/SKILL.md", "no frontmatter\n")
    box.trust()
    rows = box.run("skills", "--json").json()
    seen = {r["location"]: r for r in rows}
    for r in rows:
        box.check(f"row {r['location']}", {"name", "description", "layer", "location", "not_in_effect"} <= set(r), r)
    box.equal("the nearer one wins", seen[".claude/skills/ways/SKILL.md"]["not_in_effect"],
              "shadowed by .deputy/skills/ways/SKILL.md")
    box.equal("one of the user needs no trust", next(r for r in rows if r["name"] == "mine")["not_in_effect"], "")
    answer = box.run("skills")
    box.exits("for people", answer, FINE, out=["tide-table", "grants nothing: allowed-tools"], err=["broken", "Odd Folder"])


def test_untrusted_names_and_texts_are_escaped(box):
    name = "evil\x1b]0;x\x07"
    text = ("name: esc\ndescription: \"\\e[31mred\\e[0m \\u202E back\\r\\nnext\"\ntools: [read, \"\\e[2J\"]\n"
            "skills: [\"s\\e[2J\"]\nmcp: {servers: [\"m\\e[2J\"]}\nknowledge:\n  - {name: \"k\\e[2J\", path: \"d\\e[2J/*\"}\n"
            "model: \"p/\\e[2J\"\nmemory: private\nprompt: \"\\e[2J\"\n")
    box.write(".deputy/agents/esc.yaml", text)
    box.write(f".deputy/agents/{name}.yaml", "name: [\n")
    box.write(".deputy/skills/s/SKILL.md", "---\nname: s\ndescription: \"\\e[2J\\u202e\"\n---\n\x1b[2J\n")
    box.write("docs/a\x1b[2J.md", "needle \x1b[2J\n")
    for trusted in (False, True):
        if trusted:
            box.trust()
        for argv in (["agents", "--all"], ["check"], ["check", "esc"], ["show", "esc"], ["explain", "esc"], ["trust"], ["skills"],
                     ["diff", "explorer", "esc"], ["search", "needle"], ["doctor"], ["tools"], ["run", "esc", "x\x1b[2J"],
                     ["enable", "esc"], ["copy", "esc", "--to", "workspace", "--as", "\x1b[2J"], ["show", "\x1b[2J"]):
            answer = box.run(*argv)
            box.check(f"{argv[0]}: no control character gets out ({'trusted' if trusted else 'not trusted'})",
                      not any(c in answer.out + answer.err for c in "\x1b\x07\r\u202e"), answer)
    box.check("--json is exact", "\x1b[31mred" in next(a["description"] for a in box.run("agents", "--json").json()
                                                        if a["name"] == "esc"))


def test_broken_files_hide_nothing(box):
    box.agent("good", "tools: [read]\n")
    broken = {"empty.yaml": b"", "nul.yaml": b"name: a\x00b\n", "utf16.yaml": "name: x\n".encode("utf-16"),
              "latin.yaml": "name: caf\xe9\n".encode("latin-1"), "list.yaml": b"- a\n", "two.yaml": b"name: a\n---\nname: b\n",
              "tag.yaml": b"name: !!str x\n", "deep.yaml": b"a: " + b"[" * 500, "big.yaml": b"#" * (256 * 1024 + 1)}
    for file, data in broken.items():
        box.write(f".deputy/agents/{file}", data)
    (box.ws / ".deputy/agents/link.yaml").symlink_to("/etc/hostname")
    (box.ws / ".deputy/agents/dir.yaml").mkdir()
    box.trust()
    answer = box.run("agents")
    box.exits("the listing stands", answer, FINE, out="good", err="deputy check")
    box.equal("a good one works", box.run("show", "good").code, FINE)
    check = box.run("check")
    for file in [*broken, "link.yaml"]:
        box.check(f"check names {file}", f"agents/{file}" in check.out, check)
    box.check("a link's target is not quoted", open("/etc/hostname").read().strip() not in check.out.split())
    box.equal("exit code", check.code, ERRORS)


def test_refused_verbs_on_untrusted(box):
    box.agent("one", "tools: [read]\n", trusted=False)
    box.exits("explain still explains", box.run("explain", "one"), FINE)
    box.exits("prompt does not show", box.run("prompt", "one"), REFUSED)


if __name__ == "__main__":
    main(globals())
