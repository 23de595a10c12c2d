"""The tables of keys, the schemas, the reference page and the parsers say the same: keys are equal, what the program
accepts the schema accepts, and what the schema can express it refuses."""

import copy
import json
import re
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, ROOT, main  # noqa: E402
from lib.schema import faults, paths, read_yaml  # noqa: E402

BASE = {"name": "x", "description": "d", "tools": ["read"], "prompt": "p"}
# Rows of the table; a document with one of these errors is wrong in a way that a schema can say.
IN_SCHEMA = {"KEY002", "KEY003", "KEY004", "KEY005", "KEY006", "KEY007", "KEY009"}


def schema_of(box, name):
    result = box.run("schema", name)
    box.exits(f"schema {name}", result, FINE)
    return result.json()


def verdict(box, text, name="x.yaml"):
    """The program's diagnostics for one definition, as (errors, codes of errors, all)."""
    path = box.write(f"drafts/{name}", text)
    found = box.run("check", str(path), "--json").json()["diagnostics"]
    return [d for d in found if d["severity"] == "error"]


def changed(**keys):
    return {**copy.deepcopy(BASE), **keys}


def without(key):
    return {k: v for k, v in BASE.items() if k != key}


GOOD = {
    "the least": BASE,
    "no name": without("name"),
    "an empty description": changed(description=""),
    "texts that look like other types": changed(name=7, description=True, prompt=1.10, color=3),
    "comma strings": changed(tools="read, glob", skills="a b", resident="read"),
    "all": changed(tools="all", resident=["fs"]),
    "no tools but memory": {**without("tools"), "memory": "private"},
    "an empty list": changed(tools=[], memory="shared"),
    "servers by name and by mapping": changed(mcp={"servers": ["a", {"name": "b.c", "include": ["t"], "readonly": True}],
                                                   "search": "on"}),
    "one server as text": changed(mcp={"servers": "a, b"}),
    "an include of one text": changed(mcp={"servers": [{"name": "a", "include": "t"}]}),
    "knowledge": changed(knowledge=[{"name": "M", "path": "docs"},
                                    {"name": "N", "path": ["a/**", "b.md"], "exclude": ["x"], "encoding": "Big5"}]),
    "gates": changed(approval={"confirm": ["read"], "review": []}),
    "gates as text": changed(approval={"confirm": "fs.read"}),
    "permissions": changed(permissions={"read": ["."], "write": [], "run": "git", "net": ["*.example.org"]}),
    "limits": changed(maxTurns=1, limits={"minutes": 1, "tokens": 1}),
    "limits at their most": changed(maxTurns=10000, limits={"minutes": 10080, "tokens": 1000000000}),
    "a price": changed(limits={"cost": 0.5}),
    "keys of one's own": {**BASE, "x-team": {"a": [1, None]}, "x-": None},
    "sixteen skills": changed(skills=[f"s{i}" for i in range(16)]),
    "an unknown key": {**BASE, "favourite": 1},
    "a foreign key that is harmless": {**BASE, "instructions": "q"},
}

# Document, the code it must get.
BAD = {
    "no description": (without("description"), "KEY005"),
    "no prompt": (without("prompt"), "KEY005"),
    "a description without value": (changed(description=None), "KEY005"),
    "a name without value": (changed(name=None), "KEY002"),
    "an empty name": (changed(name=""), "KEY003"),
    "an empty prompt": (changed(prompt=""), "KEY003"),
    "a list as name": (changed(name=["x"]), "KEY002"),
    "a mapping as prompt": (changed(prompt={"a": "b"}), "KEY002"),
    "tools as mapping": (changed(tools={"read": True}), "KEY002"),
    "a list in tools": (changed(tools=[["read"]]), "KEY002"),
    "tools without value": (changed(tools=None), "KEY002"),
    "skills as mapping": (changed(skills={"a": 1}), "KEY002"),
    "seventeen skills": (changed(skills=[f"s{i}" for i in range(17)]), "KEY007"),
    "seventeen servers": (changed(mcp={"servers": [f"s{i}" for i in range(17)]}), "KEY007"),
    "thirteen sources": (changed(knowledge=[{"name": f"k{i}", "path": "p"} for i in range(13)]), "KEY007"),
    "a server without name": (changed(mcp={"servers": [{"include": ["a"]}]}), "KEY005"),
    "readonly as text": (changed(mcp={"servers": [{"name": "a", "readonly": "true"}]}), "KEY002"),
    "mcp as list": (changed(mcp=["a"]), "KEY002"),
    "search of no kind": (changed(mcp={"servers": ["a"], "search": "always"}), "KEY004"),
    "a source without path": (changed(knowledge=[{"name": "M"}]), "KEY005"),
    "a source with no path": (changed(knowledge=[{"name": "M", "path": []}]), "KEY003"),
    "a source as text": (changed(knowledge=["docs"]), "KEY002"),
    "knowledge as mapping": (changed(knowledge={"name": "M", "path": "docs"}), "KEY002"),
    "a source of type mcp": (changed(knowledge=[{"name": "M", "path": "d", "type": "mcp"}]), "KEY006"),
    "memory of no kind": (changed(memory="yes"), "KEY004"),
    "memory as boolean": (changed(memory=True), "KEY004"),
    "no turns": (changed(maxTurns=0), "KEY003"),
    "too many turns": (changed(maxTurns=10001), "KEY003"),
    "half a turn": (changed(maxTurns=60.5), "KEY002"),
    "turns in words": (changed(maxTurns="sixty"), "KEY002"),
    "no minutes": (changed(limits={"minutes": 0}), "KEY003"),
    "too many tokens": (changed(limits={"tokens": 1000000001}), "KEY003"),
    "no price": (changed(limits={"cost": 0}), "KEY003"),
    "a price in words": (changed(limits={"cost": "free"}), "KEY002"),
    "limits as number": (changed(limits=30), "KEY002"),
    "permissions as list": (changed(permissions=["read"]), "KEY002"),
    "thirty-three prefixes": (changed(permissions={"read": [f"d{i}" for i in range(33)]}), "KEY007"),
    "approval as list": (changed(approval=["bash"]), "KEY002"),
    "a gate without server": (changed(approval={"confirm": [{"tool": "x"}]}), "KEY005"),
    "a long model": (changed(model="a/" + "b" * 255), "KEY003"),
    # An unknown key where every key counts; elsewhere a schema cannot know how near it is.
    "an unknown axis": (changed(permissions={"read": ["d"], "exec": ["x"]}), "KEY008"),
    "a misspelt limit": (changed(limits={"minute": 5}), "KEY008"),
    "a misspelt exclude": (changed(knowledge=[{"name": "M", "path": "d", "exlude": "x"}]), "KEY008"),
    "a misspelt include": (changed(mcp={"servers": [{"name": "a", "inculde": ["t"]}]}), "KEY008"),
    "a misspelt confirm": (changed(approval={"confrim": ["read"]}), "KEY008"),
    # Other hosts' restrictions.
    "disallowedTools": ({**BASE, "disallowedTools": ["bash"]}, "KEY006"),
    "permission": ({**BASE, "permission": {"edit": "deny"}}, "KEY006"),
    "readonly": ({**BASE, "readonly": True}, "KEY006"),
    "allowedTools": ({**BASE, "allowedTools": ["read"]}, "KEY006"),
    "a dotted confirm": ({**BASE, "approval.confirm": ["read"]}, "KEY006"),
    "max_turns": ({**BASE, "max_turns": 5}, "KEY006"),
    "deniedTools": ({**BASE, "deniedTools": ["bash"]}, "KEY006"),
    "a switch": ({**BASE, "enabled": False}, "KEY006"),
    "hooks that may refuse": ({**BASE, "hooks": {"PreToolUse": []}}, "KEY006"),
    "a time-out": ({**BASE, "timeout_mins": 10}, "KEY006"),
    "a network switch": ({**BASE, "network": False}, "KEY006"),
    # What no schema can say.
    "a misspelt restriction": ({**BASE, "permisions": {"read": ["d"]}}, "KEY008 top"),
    "an unknown tool": (changed(tools=["raed"]), "DEF004"),
    "a foreign tool": (changed(tools=["read_file"]), "DEF005"),
    "a condition": (changed(tools=["Bash(git:*)"]), "DEF006"),
    "all without resident": (changed(tools="all"), "DEF008"),
    "All": (changed(tools="All"), "KEY004 text"),
    "a path outside": (changed(knowledge=[{"name": "M", "path": "../x"}]), "DEF012"),
    "a model without provider": (changed(model="sonnet"), "DEF019"),
    "a server twice": (changed(mcp={"servers": ["a", "a"]}), "DEF016"),
}


def test_good_definitions_are_good_for_both(box):
    schema = schema_of(box, "definition")
    for what, doc in GOOD.items():
        errors = verdict(box, json.dumps(doc, ensure_ascii=False, indent=1))
        box.equal(f"the program: {what}", errors, [])
        box.equal(f"the schema: {what}", faults(schema, doc), [])


def test_bad_definitions_are_bad_for_both(box):
    schema = schema_of(box, "definition")
    for what, (doc, want) in BAD.items():
        code = want.split()[0]
        errors = verdict(box, json.dumps(doc, ensure_ascii=False, indent=1))
        box.equal(f"the program: {what}", [d["code"] for d in errors], [code])
        sayable = want in IN_SCHEMA or want == "KEY008"
        box.check(f"the schema {'refuses' if sayable else 'cannot know'}: {what}", bool(faults(schema, doc)) == sayable,
                  faults(schema, doc))


def test_bundled_definitions_fit_the_schema(box):
    schema = schema_of(box, "definition")
    files = [*sorted((ROOT / "agents").glob("*.yaml")), ROOT / "tests/fixtures/definitions/every-key.yaml",
             *sorted((ROOT / "src/assets/sample").glob("**/agents/*.yaml"))]
    box.check("there are some", len(files) > 6, files)
    for file in files:
        text = file.read_text(encoding="utf-8")
        box.equal(f"the program: {file.name}", verdict(box, text, file.name), [])
        box.equal(f"the schema: {file.name}", faults(schema, read_yaml(text)), [])
    fresh = box.run("new", "fresh")
    box.exits("new", fresh, FINE)
    box.equal("the schema: what `new` writes", faults(schema, read_yaml(box.read(".deputy/agents/fresh.yaml"))), [])
    box.run("init")
    for file in sorted((box.ws / ".deputy/agents").glob("*.yaml")):
        box.equal(f"the schema: what `init` writes: {file.name}", faults(schema, read_yaml(file.read_text())), [])


def reference_keys(page):
    """Dotted paths of the rows of a reference page."""
    above, found = "", []
    for line in page.splitlines():
        if heading := re.fullmatch(r"### `(.*)`", line):
            above = heading[1] + "."
        elif row := re.match(r"\| `([^`]+)`", line):
            found.append(above + row[1])
    return found


def test_schema_and_reference_hold_the_same_keys(box):
    for name in ("definition", "config", "skill"):
        schema = schema_of(box, name)
        page = box.run("schema", name, "--reference")
        keys = reference_keys(page.out)
        box.check(f"{name}: the page has each key once", len(keys) == len(set(keys)) > 5, keys)
        box.equal(f"{name}: the schema has the same", sorted(set(paths(schema))), sorted(keys))
        box.equal(f"{name}: $id", schema["$id"], f"{name}.schema.json")
        box.check(f"{name}: each key is explained", "| |\n" not in page.out.replace("|  |", "| |"), page)
    box.equal("without a name it is the definition's", box.run("schema").out, box.run("schema", "definition").out)


def literals(*files):
    """The keys that the sources ask a mapping for."""
    text = "".join((ROOT / f).read_text(encoding="utf-8") for f in files)
    found = set(re.findall(r'yaml_get\([^()]*(?:\([^()]*\)[^()]*)*S\("([^"]+)"\)\)', text))
    return found | set(re.findall(r'take_axis\(c, permissions, S\("(\w+)"\)', text)) \
        | set(re.findall(r'take_gates\(\w*&?c, approval, S\("(\w+)"\)', text)) | set(re.findall(r'allowed\(\w+, S\("(\w+)"\)', text)) \
        | set(re.findall(r'allowed\(&c, S\("(\w+)"\)', text)) | set(re.findall(r'\{"(\w+)", &l->', text))


def test_parsers_read_the_keys_of_the_tables_and_no_others(box):
    for name, files in (("definition", ["src/definition/parse.c", "src/definition/rules.c"]), ("config", ["src/config/config.c"])):
        read = literals(*files)
        rows = {p.split(".")[-1] for p in paths(schema_of(box, name)) if "*" not in p}
        if name == "config":  # what is reserved is read by nobody yet
            rows -= {k for k, v in schema_of(box, name)["properties"].items() if "not" in v} | {"neverAutoApprove"}
        box.equal(f"{name}: keys in the source and rows of the table", sorted(read), sorted(rows))


# --- Config ----------------------------------------------------------------------------------------------------

CONFIG_GOOD = [
    {}, {"model": "quote/passages"}, {"limits": {"turns": 1, "minutes": 10080}},
    {"providers": {"a": {"api": "anthropic", "url": "https://x", "key": "${K}", "maxTokens": 1, "caFile": "/x"}}},
    {"approval": {"confirm": ["bash", {"server": "a.b", "tool": "t"}], "review": "web"}}, {"x-mine": [1]}, {"modle": "a/b"},
    {"providers": {"a": {"api": "openai", "window": 1024, "params": {"temperature": 0.2, "seed": 1, "b": True, "t": "x"}}}},
    {"limits": {"turns": "unlimited", "minutes": "unlimited", "tokens": "unlimited", "running": 1000, "cost": 0.5}},
    {"prices": {"a/b": {"input": 0, "output": 1000000}, "a/*": {"input": 3, "output": 15.5, "cacheRead": 0.3, "cacheWrite": 3.75}}},
    {"retention": {"days": 0, "count": 10000000}}, {"retention": {"days": 36500}},
]
CONFIG_BAD = [
    ({"model": ["a/b"]}, "KEY002"), ({"limits": {"turns": 0}}, "KEY003"), ({"limits": {"turn": 5}}, "KEY008"),
    ({"limits": [5]}, "KEY002"), ({"providers": {"a": {"url": "x"}}}, "KEY005"), ({"providers": {"a": {"api": "gopher"}}}, "KEY004"),
    ({"providers": {"a": {"api": "quote", "ulr": "x"}}}, "KEY008"), ({"providers": {"a": "x"}}, "KEY002"), ({"level": "full"}, "KEY009"),
    ({"sandbox": "off"}, "KEY009"), ({"approval": {"neverAutoApprove": ["bash"]}}, "KEY009"), ({"permissions": {}}, "KEY006"),
    ({"limits": {"toolKiB": "unlimited"}}, "KEY002"), ({"limits": {"turns": "endless"}}, "KEY002"), ({"limits": {"running": 1001}}, "KEY003"),
    ({"limits": {"cost": 0}}, "KEY003"), ({"limits": {"cost": "unlimited"}}, "KEY002"), ({"limits": {"cost": 1000000.5}}, "KEY003"),
    ({"prices": {"a/b": {"input": 1}}}, "KEY005"), ({"prices": {"a/b": {"input": 1000000.5, "output": 1}}}, "KEY003"),
    ({"prices": {"a/b": {"input": "free", "output": 1}}}, "KEY002"), ({"prices": {"a/b": {"input": 1, "output": 1, "c": 1}}}, "KEY008"),
    ({"prices": {f"a/{i}": {"input": 1, "output": 1} for i in range(1025)}}, "KEY007"),
    ({"retention": {"days": 36501}}, "KEY003"), ({"retention": {"count": -1}}, "KEY003"), ({"retention": {"day": 1}}, "KEY008"),
    ({"providers": {"a": {"api": "openai", "window": 1023}}}, "KEY003"), ({"providers": {"a": {"api": "openai", "params": {"a": [1]}}}}, "KEY002"),
    ({"providers": {"a": {"api": "openai", "params": {f"p{i}": 1 for i in range(17)}}}}, "KEY007"),
    ({"providers": {f"p{i}": {"api": "quote"} for i in range(65)}}, "KEY007"),
]


def test_config_and_its_schema_agree(box):
    schema = schema_of(box, "config")

    def errors_of(doc):
        box.write("deputy/config.yaml", json.dumps(doc) if doc else "# nothing\n", box.config)
        found = box.run("check", "--json").json()["diagnostics"]
        return [d["code"] for d in found if d["severity"] == "error"]

    for doc in CONFIG_GOOD:
        box.equal(f"the program: {json.dumps(doc)}", errors_of(doc), [])
        box.equal(f"the schema: {json.dumps(doc)}", faults(schema, doc), [])
    for doc, code in CONFIG_BAD:
        text = json.dumps(doc)[:60]
        box.equal(f"the program: {text}", errors_of(doc), [code])
        box.check(f"the schema refuses: {text}", faults(schema, doc))


# --- Skills and reports -----------------------------------------------------------------------------------------

def test_skills_of_the_sample_fit_their_schema(box):
    schema = schema_of(box, "skill")
    skills = sorted((ROOT / "src/assets/sample").glob("**/SKILL.md"))
    box.check("there are some", skills)
    for file in skills:
        front = file.read_text(encoding="utf-8").split("---\n")[1]
        box.equal(f"the schema: {file.parent.name}", faults(schema, read_yaml(front)), [])
    box.check("the schema refuses a skill without description", faults(schema, {"name": "a"}))


def test_a_report_fits_its_schema(box):
    schema = schema_of(box, "report")
    box.write("manual.md", "# Manual\n\nThe filter is changed every 200 cycles.\n")
    done = box.run("run", "librarian", "how often is the filter changed", "--json")
    box.exits("a delegation", done, FINE, out="manual.md:3")
    box.equal("its report", faults(schema, done.json()), [])
    broken = {**done.json(), "status": "fine"}
    box.check("the schema refuses a status that does not exist", faults(schema, broken))
    refused = box.run("run", "nobody", "x", "--json")
    box.check("nobody has no report", refused.code == ERRORS and not refused.out, refused)


if __name__ == "__main__":
    main(globals())
