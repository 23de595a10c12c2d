"""Verbs that write definitions: init, new, copy, set, fmt, rm, and enable/disable as far as they follow a name."""

import json
import stat
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, REFUSED, USAGE, main  # noqa: E402

ORDER = ["name", "description", "tools", "prompt"]


def keys_of(text):
    return [line.split(":")[0] for line in text.splitlines() if line[:1].isalpha()]


def test_init(box):
    box.write("docs/a.md", "# Keys\nRotate the keys every ninety days.\n")
    box.write("guide/x/y.rst", "Guide\n")
    box.write("src/main.c", "int main;\n")
    box.write("node_modules/p/readme.md", "no\n")
    box.write("notes.txt", "hello\n")
    first = box.run("init")
    box.exits("init", first, FINE, out=["./docs/**/*", "./guide/**/*", "./*.{", "deputy show helper"])
    box.check("it names no folder without text", "src" not in first.out and "node_modules" not in first.out, first)
    made = sorted(p for p in box.tree() if p.startswith(".deputy/"))
    box.equal("what it makes", made, [".deputy/.gitignore", ".deputy/agents/helper.yaml", ".deputy/schemas/config.schema.json",
                                     ".deputy/schemas/definition.schema.json"])
    ignored = box.read(".deputy/.gitignore").split()
    box.check("both memory folders are ignored", "memory/" in ignored and "agent-memory/" in ignored, ignored)
    text = box.read(".deputy/agents/helper.yaml")
    box.check("the definition names its schema", text.startswith("# yaml-language-server: $schema=../schemas/definition"))
    box.equal("the schema is what `schema` prints", box.read(".deputy/schemas/definition.schema.json"), box.run("schema").out)
    box.exits("what it wrote is trusted", box.run("trust"), FINE, out="everything")
    box.exits("and sound", box.run("check", "--strict"), FINE, out="0 errors, 0 warnings")
    box.exits("and answers", box.run("run", "helper", "how often do we rotate the keys"), FINE, out="docs/a.md:2")
    before = box.tree()
    second = box.run("init")
    box.exits("a second run", second, FINE, out="nothing was changed")
    box.equal("changes nothing", box.tree(), before)
    box.write(".deputy/agents/helper.yaml", "mine\n")
    box.write(".deputy/.gitignore", "secret\n")
    (box.ws / ".deputy/schemas/config.schema.json").unlink()
    third = box.run("init")
    box.exits("it makes what is missing", third, FINE, out="config.schema.json", err="notes may be committed")
    box.equal("and keeps what is there", (box.read(".deputy/agents/helper.yaml"), box.read(".deputy/.gitignore")),
              ("mine\n", "secret\n"))
    box.check("a file it did not write is not trusted by it", ".deputy/agents/helper.yaml" in box.run("trust").out)


def test_init_elsewhere(box):
    box.exits("init DIR makes it", box.run("init", "a/b"), FINE)
    box.check("there", (box.ws / "a/b/.deputy/agents/helper.yaml").exists() and not (box.ws / ".deputy").exists())
    box.exits("no manuals", box.run("init", "c"), FINE, out="deputy set helper knowledge")
    box.exits("an absolute DIR", box.run("init", box.top / "d"), FINE)
    box.exits("a DIR with ..", box.run("init", "a/../e"), FINE)
    box.check("is taken as the system takes it", (box.ws / "e/.deputy").is_dir())
    box.exits("twice the directory", box.run("-C", "c", "init", "x"), USAGE, err="once")
    box.write("f", "x")
    box.check("DIR is a file", box.run("init", "f").code in (ERRORS, REFUSED, USAGE))
    (box.ws / "g").mkdir()
    (box.ws / "g/.deputy").symlink_to(box.top / "d/.deputy")
    box.write("old", "x", box.top / "d/.deputy")
    link = box.run("init", "g")
    box.exits(".deputy as a link is refused by name", link, REFUSED, err=".deputy")
    box.write("h/.deputy", "a file")
    box.check(".deputy as a file is refused by name", (r := box.run("init", "h")).code in (ERRORS, REFUSED)
              and ".deputy" in r.err, r)


def test_init_sample(box):
    box.exits("--sample wants a place", box.run("init", "--sample"), USAGE, err="init --sample DIR")
    box.exits("--sample", box.run("init", "--sample", "s"), FINE, out=["customer-service.yaml", "show customer-service"])
    sample = box.ws / "s"
    box.check("a manual of ten pages or more", len(list((sample / "docs").rglob("*.md"))) >= 10)
    box.exits("all of it is trusted", box.run("-C", sample, "trust"), FINE, out="everything")
    check = box.run("-C", sample, "check")
    box.exits("and sound", check, FINE, out="0 errors, 0 warnings")
    shown = box.run("-C", sample, "show", "customer-service", "--json").json()
    box.equal("five dimensions", {r["dimension"] for r in shown["report"]}, {"tools", "skills", "knowledge", "mcp", "memory"})
    run = box.run("-C", sample, "run", "customer-service", "refund for a used appliance")
    box.exits("it answers from the manual, offline", run, FINE, out="docs/policies/returns-and-refunds.md:")
    before = box.tree(sample)
    box.exits("a second run", box.run("init", "--sample", "s"), FINE, out="0 files made")
    box.equal("changes nothing", box.tree(sample), before)
    box.write("t/README.md", "mine\n")
    box.exits("into a folder that is in use", box.run("init", "--sample", "t"), FINE)
    box.equal("keeps its files", box.read("t/README.md"), "mine\n")


def test_new(box):
    box.write("docs/a.md", "word\n")
    made = box.run("new", "Käse Helper", "--knowledge", "docs/*.md", "--knowledge", "a/*.{md,txt},b c/*.md", "--tools",
                   "READ,grep", "--skills", "one, two", "--memory", "private", "--description", "About: cheese", "--model",
                   "quote/passages", "--prompt", "Line one\nLine two")
    box.exits("new with all options", made, FINE, out="wrote .deputy/agents/käse-helper.yaml")
    shown = box.run("show", "KÄSE HELPER", "--json").json()
    d = shown["definition"]
    box.equal("what it holds", (d["name"], d["description"], d["skills"], d["memory"], d["model"]),
              ("Käse Helper", "About: cheese", ["one", "two"], "private", "quote/passages"))
    box.equal("globs split at commas outside braces", d["knowledge"][0]["path"], ["docs/*.md", "a/*.{md,txt}", "b c/*.md"])
    box.check("the prompt", d["prompt"].rstrip("\n") == "Line one\nLine two", d)
    box.equal("it is trusted and effective", shown["state"], "effective")
    box.check("the schema that it names is there", (box.ws / ".deputy/schemas/definition.schema.json").exists())
    box.exits("tools default to reading", box.run("new", "plain"), FINE)
    box.equal("to reading", box.run("show", "plain", "--json").json()["definition"]["tools"], ["read", "glob", "grep"])
    box.exits("--system", box.run("new", "mine", "--system"), FINE, out=str(box.config / "deputy/agents/mine.yaml"))
    mode = stat.S_IMODE((box.config / "deputy/agents/mine.yaml").stat().st_mode)
    box.equal("the system's files are private", mode, 0o600)
    box.exits("it is seen everywhere", box.run("-C", box.tmp, "show", "mine"), FINE, out="system")


def test_new_is_refused_before_writing(box):
    box.run("new", "taken")
    before = box.tree()
    names = ["", " x", "x ", ".x", "a/b", "..", "-", "all", "none", "CORE", "shared", "mcp", "a\nb", "a\x1b[31mb", "a\u202eb",
             "a\u200bb", "x" * 65, "ä" * 61, "a:b", "a\tb"]
    for name in names:
        answer = box.run("new", "--", name)
        box.check(f"the name {name[:20]!r}", answer.code == ERRORS and answer.err and "\x1b" not in answer.err, answer)
    for name in ("taken", "TAKEN", "ｔａｋｅｎ"):
        box.exits(f"taken: {name}", box.run("new", name), ERRORS, err=".deputy/agents/taken.yaml")
    for option in (["--tools", "raed"], ["--tools", "Bash(git:*)"], ["--tools", "all"], ["--memory", "all"], ["--model", "x"],
                   ["--knowledge", "../x"], ["--knowledge", "/etc/*"], ["--tools", "glob", "--knowledge", "*.md"]):
        answer = box.run("new", "other", *option)
        box.exits(f"other {' '.join(option)}", answer, ERRORS, err=["error", "nothing was written"])
    box.exits("--edit without an editor", box.run("new", "other", "--edit"), USAGE, err="EDITOR")
    box.equal("nothing was written by any of them", box.tree(), before)
    box.write(".deputy/agents/other.yaml", "name: else\ndescription: d\ntools: [read]\nprompt: P\n")
    box.exits("a file of another name is no hindrance", box.run("new", "other"), FINE, out="other-2.yaml")
    box.exits("the owner's other layer is only said", box.run("new", "explorer"), FINE, err="builtin")


def test_new_with_an_editor(box):
    editor = box.write("ed.sh", "#!/bin/sh\nsed -i 's/^maxTurns: 60/maxTurns: 7/' \"$1\"\n", box.tmp)
    box.exits("--edit opens it", box.run("new", "one", "--edit", env={"EDITOR": f"sh {editor}"}), FINE)
    box.equal("what was saved is accepted", (s := box.run("show", "one", "--json").json())["budgets"]["turns"], 7)
    box.equal("and effective", s["state"], "effective")
    broken = box.write("bad.sh", "#!/bin/sh\necho 'maxTurns: x' >> \"$1\"\n", box.tmp)
    shown = box.run("new", "two", "--edit", env={"VISUAL": f"sh {broken}"})
    box.exits("errors are shown", shown, ERRORS, err="two.yaml:")
    box.check("and it does not say that the file is as before", "nothing was written" not in shown.err, shown)
    rename = {"EDITOR": "sh -c 'sed -i s/^name:.*/name:\\ one/ \"$0\"'"}
    box.exits("a name that is taken is said", box.run("new", "four", "--edit", env=rename), ERRORS, err="one.yaml")
    box.exits("an editor that fails", box.run("new", "three", "--edit", env={"EDITOR": "false"}), ERRORS, err="editor")


def test_copy(box):
    text = ("# head\nname: one   # its name\ndescription: D\ntools:\n- read   # why\n- Grep\nmemory: private\nx-team: [a, b]\n"
            "color: red\nlimits: {minutes: 3}\nfuture: kept\nprompt: >-\n  folded\n  text\n")
    box.write(".deputy/agents/one.yaml", text)
    box.trust()
    box.exits("copy --as", box.run("copy", "one", "--to", "workspace", "--as", "Two: x"), ERRORS)
    box.exits("copy --as", box.run("copy", "one", "--to", "workspace", "--as", "Two"), FINE, out=["two.yaml", "starts empty"])
    box.equal("all keys and comments come along", box.read(".deputy/agents/two.yaml"), text.replace("one   #", "Two   #"))
    box.exits("copy --to system", box.run("copy", "one", "--to", "system"), FINE)
    box.equal("byte for byte", box.read("deputy/agents/one.yaml", box.config), text)
    box.equal("it says who shadows it", [a["shadowed_by"] for a in box.run("agents", "--json").json() if a["name"] == "one"
                                         and a["layer"] == "system"], [".deputy/agents/one.yaml"])
    box.exits("a builtin", box.run("copy", "librarian", "--to", "workspace"), FINE)
    box.equal("is effective in its place", box.run("show", "librarian", "--json").json()["layer"], "workspace")
    before = box.tree(box.top)
    box.exits("no --to", box.run("copy", "one"), USAGE, err="--to")
    box.exits("--to elsewhere", box.run("copy", "one", "--to", "builtin"), USAGE)
    box.exits("taken", box.run("copy", "one", "--to", "workspace"), ERRORS, err="one.yaml")
    box.exits("taken, --as", box.run("copy", "explorer", "--to", "workspace", "--as", "ONE"), ERRORS, err="one.yaml")
    box.exits("nobody", box.run("copy", "nobody", "--to", "workspace"), ERRORS, err="no agent")
    box.exits("a bad name", box.run("copy", "one", "--to", "workspace", "--as", "a/b"), ERRORS)
    box.equal("nothing was written by any of them", box.tree(box.top), before)


def test_copying_accepts_nothing(box):
    box.agent("evil", "tools: [read]\n", trusted=False)
    refused = box.run("copy", "evil", "--to", "system")
    box.exits("an untrusted file does not become the system's", refused, REFUSED, err="deputy trust")
    box.check("nothing was written", not (box.config / "deputy/agents").exists())
    box.exits("a copy beside it", box.run("copy", "evil", "--to", "workspace", "--as", "twin"), FINE)
    box.equal("is as untrusted as its source", box.run("show", "twin", "--json").json()["state"], "untrusted")
    box.write(".deputy/agents/broken.yaml", "name: broken\ntools: [\n")
    box.exits("a broken one is not copied", box.run("copy", "broken", "--to", "workspace", "--as", "b2"), ERRORS)


def test_set(box):
    text = ("# head\nname: one\ndescription: 'D'   # label\ntools: [read, grep]\nknowledge:\n  - name: M   # manual\n"
            "    path: \"*.md\"\nmaxTurns: 9   # few\nx-team: {a: 1}\nprompt: |\n  P\n")
    file = box.write(".deputy/agents/one.yaml", text)
    box.trust()
    steps = [(["maxTurns", "20"], ("maxTurns: 9 ", "maxTurns: 20 ")),
             (["description", "new words"], ("'D'", "'new words'")),
             (["knowledge.0.path", '"docs/**/*.md"'], ('"*.md"', '"docs/**/*.md"')),
             (["knowledge.0.exclude", "[a.md]"], None),
             (["knowledge.0.exclude", "--unset"], None),
             (["tools", "glob", "--add"], ("[read, grep]", "[read, grep, glob]")),
             (["tools", "grep", "--remove"], ("[read, grep, glob]", "[read, glob]")),
             (["limits.minutes", "5"], None),
             (["limits", "--unset"], None),
             (["maxTurns", "--unset"], ("maxTurns: 20   # few\n", ""))]
    for argv, change in steps:
        answer = box.run("set", "one", *argv)
        box.exits(f"set one {' '.join(argv)}", answer, FINE, out="wrote .deputy/agents/one.yaml")
        now = file.read_text()
        if change:
            text = text.replace(*change)
            box.equal("only that changed", now, text)
    box.equal("in the end everything else is as it was", file.read_text(), text)
    box.exits("it stays trusted", box.run("trust"), FINE, out="everything")


def test_set_is_refused(box):
    box.agent("one", "tools: [read]\nknowledge:\n  - {name: M, path: '*.md'}\n")
    box.agent("two", "tools: [read]\n")
    before = box.tree()
    refused = [("maxTurns", "0", "maxTurns"), ("maxTurns", "60.5", "maxTurns"), ("tools", "[raed]", "read"),
               ("tools", "[glob]", "knowledge without `read`"), ("permisions", "{read: [docs]}", "permissions"),
               ("knowledge.0.path", "*.md", '"*.md"'), ("knowledge.7.path", "x", "knowledge"), ("name", "Two", "two.yaml"),
               ("name", "all", "all"), ("memory", "both", "memory"), ("tools", "all", "resident"), ("a..b", "1", ""),
               ("prompt", "[", "YAML"), ("disallowedTools", "[bash]", "disallowedTools"), ("name", "\"a\\u202eb\"", "")]
    for key, value, says in refused:
        box.exits(f"set one {key} {value}", box.run("set", "one", key, "--", value), ERRORS, err=says)
    box.exits("--unset of nothing", box.run("set", "one", "maxTurns", "--unset"), ERRORS)
    box.exits("--remove of nothing", box.run("set", "one", "tools", "bash", "--remove"), ERRORS)
    box.exits("--add twice", box.run("set", "one", "tools", "read", "--add"), ERRORS)
    box.exits("a required key", box.run("set", "one", "prompt", "--unset"), ERRORS, err="prompt")
    box.exits("a builtin is read-only", box.run("set", "explorer", "maxTurns", "2"), REFUSED, err="deputy copy")
    box.exits("nobody", box.run("set", "nobody", "maxTurns", "2"), ERRORS, err="no agent")
    box.exits("two ways at once", box.run("set", "one", "tools", "x", "--add", "--remove"), USAGE)
    box.exits("--unset with a value", box.run("set", "one", "tools", "x", "--unset"), USAGE)
    box.exits("no value", box.run("set", "one", "tools"), USAGE)
    box.equal("not one byte was written", box.tree(), before)


def test_set_says_what_it_changes_and_no_more(box):
    box.agent("old", "tools: [read, NoSuchTool]\n")
    older = box.run("set", "old", "maxTurns", "3")
    box.exits("older errors are listed", older, FINE, out="wrote", err=["NoSuchTool", "older errors"])
    box.agent("one", "tools: [read]\n")
    quiet = box.run("set", "one", "maxTurns", "3")
    box.check("notes that were there before are not repeated", quiet.code == FINE and not quiet.err, quiet)
    loud = box.run("set", "one", "colour", "red")
    box.exits("a new warning is shown", loud, FINE, err="colour")
    box.write(".deputy/agents/one.yaml", box.read(".deputy/agents/one.yaml").replace("[read]", "[read, grep]"))
    box.exits("a file that lost its trust", box.run("set", "one", "maxTurns", "4"), FINE)
    box.equal("does not get it back by a set", box.run("show", "one", "--json").json()["state"], "untrusted")
    box.agent("lf", "tools: [read]\r\nmaxTurns: 9\r\n")
    box.run("set", "lf", "maxTurns", "8")
    box.check("CRLF stays", b"maxTurns: 8\r\n" in (box.ws / ".deputy/agents/lf.yaml").read_bytes())


def test_rename(box):
    box.run("new", "one", "--memory", "private")
    editor = {"EDITOR": "sh -c 'echo remember this >> \"$0\"'"}
    box.exits("a note", box.run("memory", "edit", "one", env=editor), FINE)
    box.exits("a daily note", box.run("memory", "edit", "one", "daily/2026-01-02.md", env=editor), FINE)
    box.run("disable", "one")
    renamed = box.run("set", "one", "name", "The Two")
    box.exits("set name", renamed, FINE, err="memory moved")
    box.check("the file keeps its name", (box.ws / ".deputy/agents/one.yaml").exists())
    listed = box.run("memory", "list", "the two", "--json").json()
    box.equal("the notes are its notes, and trusted", [(f["file"], f["withheld"]) for f in listed],
              [("MEMORY.md", ""), ("daily/2026-01-02.md", "")])
    box.equal("the switch followed", box.run("show", "the two", "--json").json()["state"], "disabled")
    box.exits("nothing is left to trust", box.run("trust"), FINE, out="everything")
    box.run("new", "one", "--memory", "private")
    box.equal("a new one of the old name is on", box.run("show", "one", "--json").json()["state"], "effective")
    box.run("memory", "edit", "one", env=editor)
    other = box.ws / ".deputy/agent-memory/three"
    other.mkdir()
    taken = box.run("set", "one", "name", "three")
    box.exits("a taken place is said", taken, FINE, err="stays at")
    box.check("and nothing is lost", (box.ws / ".deputy/agent-memory/one/MEMORY.md").exists())


def test_a_note_changed_outside_stays_untrusted_after_a_rename(box):
    box.run("new", "one", "--memory", "private")
    box.run("memory", "edit", "one", env={"EDITOR": "sh -c 'echo a >> \"$0\"'"})
    box.write(".deputy/agent-memory/one/MEMORY.md", "changed by hand\n")
    box.run("set", "one", "name", "two")
    listed = box.run("memory", "list", "two", "--json").json()
    box.check("withheld", listed[0]["withheld"].startswith("untrusted"), listed)
    box.check("not in the prompt", "changed by hand" not in box.run("prompt", "two").out)


def test_fmt(box):
    text = ("# head of the file\n\n# why this prompt\nprompt: |\n  Body\n  # no comment\n\n# reads only\n"
            "tools: [Read, GREP, webfetch]   # three\nx-foo: 1\ndescription: d\n# the name\nname: odd\nmaxTurns: 5\n")
    box.write(".deputy/agents/odd.yaml", text)
    box.trust()
    box.exits("--check", box.run("fmt", "odd", "--check"), ERRORS, err="not in order")
    box.equal("changes nothing", box.read(".deputy/agents/odd.yaml"), text)
    before = box.run("show", "odd", "--json").json()["grant"]
    box.exits("fmt", box.run("fmt", "odd"), FINE, out="wrote")
    now = box.read(".deputy/agents/odd.yaml")
    box.equal("keys in order", [k for k in keys_of(now) if k in ORDER], ORDER)
    box.check("tools in canonical spelling", "tools: [read, grep, WebFetch]   # three" in now, now)
    for comment in ("# head of the file", "# why this prompt\nprompt:", "# reads only\ntools", "# the name\nname", "  # no comment"):
        box.check(f"kept: {comment!r}", comment in now, now)
    box.equal("the same grant", box.run("show", "odd", "--json").json()["grant"], before)
    box.exits("again", box.run("fmt", "odd"), FINE, err="is in order")
    box.exits("--check now", box.run("fmt", "odd", "--check"), FINE)
    loose = box.write("loose.yaml", text)
    loose.chmod(0o640)
    box.exits("a file by its path", box.run("fmt", "loose.yaml", "--check"), ERRORS, err="not in order")
    box.exits("a file by its path", box.run("fmt", "./loose.yaml"), FINE, out="wrote")
    box.equal("the same result", (loose.read_text(), stat.S_IMODE(loose.stat().st_mode)), (now, 0o640))
    box.exits("of a file with errors", box.run("fmt", box.write("e.yaml", "name: [x]\n")), ERRORS, err=["e.yaml:1", "nothing"])
    box.exits("of nothing", box.run("fmt", "none.yaml"), ERRORS, err="none.yaml")
    box.exits("of a builtin", box.run("fmt", "explorer"), REFUSED, err="copy")
    box.write("outer.yaml", "name: out\n", box.top)
    box.equal("twice is once", box.run("fmt", "loose.yaml").out, "")


def test_rm(box):
    box.run("new", "one", "--memory", "private")
    file = box.ws / ".deputy/agents/one.yaml"
    box.exits("no terminal, no --yes", box.run("rm", "one"), REFUSED, err="--yes")
    box.check("it is there", file.exists())
    box.exits("a no", box.tty("rm", "one", answers=[("[y/N]", "n\n")]), REFUSED)
    box.exits("an empty answer is a no", box.tty("rm", "one", answers=[("[y/N]", "\n")]), REFUSED)
    box.check("it is still there", file.exists())
    box.run("memory", "edit", "one", env={"EDITOR": "sh -c 'echo a >> \"$0\"'"})
    box.run("disable", "one")
    gone = box.tty("rm", "one", answers=[("[y/N]", "y\n")])
    box.exits("a yes", gone, FINE, out=["removed", "notes are kept"])
    box.check("it is gone", not file.exists())
    again = box.run("new", "one", "--memory", "private")
    box.exits("a new one of that name", again, FINE, err="notes of an earlier")
    box.equal("is on", box.run("show", "one", "--json").json()["state"], "effective")
    box.exits("--yes", box.run("rm", "one", "--yes"), FINE, out="removed")
    box.exits("a builtin", box.run("rm", "explorer", "--yes"), REFUSED, err="read-only")
    box.exits("nobody", box.run("rm", "nobody", "--yes"), ERRORS, err="no agent")
    box.run("new", "explorer")
    box.exits("what is in effect now is said", box.run("rm", "explorer", "--yes"), FINE, out="in effect now: builtin:explorer.yaml")
    box.write(".deputy/agents/bad.yaml", "name: [\n")
    box.exits("a broken file can be removed", box.run("rm", "bad", "--yes"), FINE)


def test_switches(box):
    box.write("a.md", "x marks it\n")
    box.agent("one", "tools: [read]\nknowledge: [{name: M, path: '*.md'}]\n")
    box.exits("disable", box.run("disable", "one"), FINE, err="is off")
    box.exits("twice", box.run("disable", "one"), FINE)
    box.exits("it does not run", box.run("run", "one", "x"), REFUSED, err=["disabled", "deputy enable"])
    box.exits("but is shown", box.run("show", "one"), FINE, out="disabled")
    shown = box.run("enable", "one")
    box.exits("enable without a terminal", shown, REFUSED, out="prompt: P", err="deputy enable one")
    box.equal("changes nothing", box.run("show", "one", "--json").json()["state"], "disabled")
    box.exits("a no", box.tty("enable", "one", answers=[("[y/N]", "no\n")]), REFUSED)
    box.equal("changes nothing", box.run("show", "one", "--json").json()["state"], "disabled")
    box.exits("a yes", box.tty("enable", "one", answers=[("[y/N]", "YES\n")]), FINE, out=["prompt: P", "is on"])
    box.exits("it runs", box.run("run", "one", "x"), FINE)
    box.exits("enable what is on", box.run("enable", "one"), FINE, err="not switched off")
    box.exits("a builtin too", box.run("disable", "explorer"), FINE)
    box.exits("off", box.run("run", "explorer", "x"), REFUSED)
    other = json.loads(box.run("-C", box.tmp, "show", "explorer", "--json").out)
    box.equal("in this workspace alone", other["state"], "effective")
    box.agent("librarian", "tools: [read]\n")
    hidden = "builtin:librarian.yaml"
    box.exits("one that is shadowed can be switched off", box.run("disable", hidden), FINE)
    box.exits("and on again", box.tty("enable", hidden, answers=[("[y/N]", "y\n")]), FINE, out="is on")
    box.exits("which is what it is then", box.run("enable", hidden), FINE, err="not switched off")
    piped = box.tty("enable", "explorer", answers=[("[y/N]", "y\n")], out="pipe")
    box.check("who answers has seen it, also when the listing goes elsewhere", "prompt:" in piped.err and "prompt:" in piped.out
              and piped.code == FINE, piped)


def at_once(processes):
    """Exit codes, and what each said on standard error."""
    return [(p.wait(timeout=60), p.communicate()[1].decode()) for p in processes]


def test_several_writers(box):
    """Each change is there, or its writer was told that it is not."""
    box.run("new", "one")
    ends = at_once([box.start("set", "one", f"x-{i}", str(i)) for i in range(12)])
    text = box.read(".deputy/agents/one.yaml")
    box.equal("what succeeded is in the file", [code == FINE for code, _ in ends], [f"x-{i}: {i}\n" in text for i in range(12)])
    box.check("somebody came through", any(code == FINE for code, _ in ends), ends)
    box.check("the others know what to do", all(code == FINE or (code == ERRORS and "try again" in said) for code, said in ends), ends)
    ends = at_once([box.start("config", "set", f"x-{i}", str(i)) for i in range(12)])
    text = (box.config / "deputy/config.yaml").read_text(encoding="utf-8")
    box.check("settings wait for each other", all(code == FINE for code, _ in ends)
              and all(f"x-{i}: {i}\n" in text for i in range(12)), f"{ends}\n{text}")
    box.equal("nothing but the files is left", {p.name for top in (box.ws / ".deputy/agents", box.config / "deputy") for p in top.iterdir()},
              {"one.yaml", "config.yaml"})


if __name__ == "__main__":
    main(globals())
