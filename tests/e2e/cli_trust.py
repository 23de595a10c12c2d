"""Trust on the command line (rules B7 and B16): nothing from a clone takes effect before a person accepted it on a
terminal; what changes outside Deputy loses its trust; copies, links and pipes are no way around it."""

import json
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, REFUSED, calls, main, says  # noqa: E402

EVIL = "name: helper\ndescription: MAGIC-LABEL\ntools: [read]\nskills: [ways]\nmemory: private\nprompt: MAGIC-BODY\n"
SKILL = "---\nname: ways\ndescription: MAGIC-SKILL\n---\nMAGIC-STEPS\n"


def clone(box):
    """What a hostile clone brings: a definition, a skill, settings and notes."""
    box.write(".deputy/agents/helper.yaml", EVIL)
    box.write(".deputy/skills/ways/SKILL.md", SKILL)
    box.write(".deputy/config.yaml", "limits: {turns: 3}\n")
    box.write(".deputy/agent-memory/helper/MEMORY.md", "MAGIC-NOTE\n")


def state(box, name="helper"):
    return box.run("show", name, "--json").json()["state"]


def test_a_clone_does_nothing(box):
    clone(box)
    before = box.tree(box.top)
    run = box.run("run", "helper", "x")
    box.exits("run is refused with what to type", run, REFUSED, err=["never trusted", "deputy trust"])
    box.check("nothing of it is shown", "MAGIC" not in run.out + run.err, run)
    box.exits("prompt is refused", box.run("prompt", "helper"), REFUSED, err="deputy trust")
    box.exits("tools are refused", box.run("tools", "helper"), REFUSED, err="deputy trust")
    box.exits("search of its sources is refused", box.run("search", "x", "--agent", "helper"), REFUSED, err="deputy trust")
    listing = box.run("agents")
    box.check("the listing gives its name and state only", "helper" in listing.out and "untrusted" in listing.out
              and "MAGIC" not in listing.out, listing)
    rows = {a["name"]: a for a in box.run("agents", "--json").json()}
    box.check("also as JSON", rows["helper"]["state"] == "untrusted" and "MAGIC" not in json.dumps(rows), rows["helper"])
    box.equal("its settings are not read", box.run("config", "get", "limits.turns").out, "60\n")
    box.exits("and that is said", box.run("config", "get"), FINE, err="deputy trust")
    skills = box.run("skills")
    box.check("a skill is withheld", "not trusted" in skills.out and "MAGIC" not in skills.out, skills)
    box.exits("doctor counts the files", box.run("doctor"), FINE, out="4 files of this workspace are not trusted")
    box.check("check says that it is not in effect", "never trusted" in box.run("check").err + box.run("check").out)
    box.equal("none of this wrote anything", box.tree(box.top), before)


def test_trust_without_a_terminal(box):
    clone(box)
    before = box.tree(box.top)
    answer = box.run("trust", stdin="y\ny\n")
    box.exits("it shows all and changes nothing", answer, REFUSED, out=["helper.yaml", "ways/SKILL.md", "config.yaml",
              "agent-memory/helper/MEMORY.md", "MAGIC-BODY", "MAGIC-STEPS", "MAGIC-NOTE", "turns: 3"], err="terminal")
    listed = box.run("trust", "--json")
    box.equal("as JSON", {(f["kind"], f["state"]) for f in listed.json()},
              {("definition", "new"), ("skill", "new"), ("config", "new"), ("memory", "new")})
    box.equal("exit code of the listing", listed.code, REFUSED)
    box.equal("nothing was written", box.tree(box.top), before)
    box.equal("it is still not trusted", state(box), "untrusted")


def test_trust_on_a_terminal(box):
    clone(box)
    box.exits("no", box.tty("trust", answers=[("[y/N]", "n\n")]), REFUSED)
    box.exits("nothing typed", box.tty("trust", answers=[("[y/N]", "\n")]), REFUSED)
    box.exits("end of input", box.tty("trust", answers=[("[y/N]", "\x04")]), REFUSED)
    box.equal("none of them is a yes", state(box), "untrusted")
    yes = box.tty("trust", answers=[("trust these 4 files? [y/N]", "y\n")])
    box.exits("yes", yes, FINE, out=["+ ", "4 files trusted"])
    box.equal("it is effective", state(box), "effective")
    box.check("its skill and notes are in its prompt", all(m in box.run("prompt", "helper").out
              for m in ("MAGIC-SKILL", "MAGIC-NOTE", "MAGIC-BODY")))
    box.equal("its settings count", box.run("config", "get", "limits.turns").out, "3\n")
    box.exits("there is nothing more", box.run("trust"), FINE, out="everything")
    box.exits("as JSON", box.run("trust", "--json"), FINE, out="[]")
    elsewhere = box.top / "clone2"
    (box.ws).rename(elsewhere)
    box.ws.mkdir()
    box.equal("the same files elsewhere are not trusted", box.run("-C", elsewhere, "show", "helper", "--json").json()["state"],
              "untrusted")


def test_who_answers_has_seen_it(box):
    clone(box)
    piped = box.tty("trust", answers=[("[y/N]", "y\n")], out="pipe")
    box.check("the listing goes to the pipe and to the terminal", "MAGIC-BODY" in piped.out and "MAGIC-BODY" in piped.err, piped)
    box.equal("the answer counts", state(box), "effective")
    box.agent("late", "tools: [read]\n", trusted=False)
    ahead = box.tty("trust", answers=[("[y/N]", "n\n")], stdin="null")
    box.exits("standard input is no answer", ahead, REFUSED)
    hidden = "name: x\ndescription: \"a \u202eb\"\ntools: [read]\nprompt: \"\u200b\u001b[2J\U000e0041\"\n"
    box.write(".deputy/agents/x.yaml", hidden.replace("\u001b", "\\e"))
    shown = box.tty("trust", answers=[("[y/N]", "n\n")])
    box.check("hidden text is made visible", not any(c in shown.out for c in "\u202e\u200b\U000e0041")
              and "\\u{202e}" in shown.out.lower(), shown)


def test_a_change_outside_deputy(box):
    box.agent("one", "tools: [read]\nmaxTurns: 5\napproval: {confirm: [read]}\n")
    file = box.ws / ".deputy/agents/one.yaml"
    file.write_text(file.read_text().replace("maxTurns: 5", "maxTurns: 4").replace("prompt: P", "prompt: Q"))
    box.equal("reach that does not grow keeps its trust", state(box, "one"), "effective")
    file.write_text(file.read_text().replace("[read]\nmax", "[read, grep]\nmax"))
    box.equal("reach that grows loses it", state(box, "one"), "untrusted")
    run = box.run("run", "one", "x")
    box.exits("run says so", run, REFUSED, err=["reach grew", "deputy trust"])
    shown = box.run("trust")
    box.exits("trust shows what is gained first", shown, REFUSED, out=["changed since it was trusted", "+ "])
    box.check("and only the gain", "grep" in shown.out.split("|")[0] and "+ tool read" not in shown.out, shown)
    box.exits("--update is about this", box.tty("trust", "--update", answers=[("[y/N]", "y\n")]), FINE)
    file.write_text(file.read_text().replace("approval: {confirm: [read]}\n", ""))
    box.equal("a gate that goes is growth", state(box, "one"), "untrusted")
    box.exits("trust shows it", box.run("trust"), REFUSED, out="gate")
    box.agent("new", "tools: [read]\n", trusted=False)
    box.check("--update leaves what is new", "new.yaml" not in box.run("trust", "--update").out)
    file.write_text("name: [\n")
    box.equal("broken after it was trusted", [a["state"] for a in box.run("agents", "--json").json() if a["name"] == "one"],
              ["untrusted"])


def test_it_keeps_its_name(box):
    box.agent("explorer", "tools: [read]\n")
    file = box.ws / ".deputy/agents/explorer.yaml"
    file.write_text(file.read_text().replace("[read]", "[read, grep]"))
    box.exits("a builtin does not take over", box.run("run", "explorer", "x"), REFUSED, err=["explorer.yaml", "builtin"])
    box.agent("librarian", "tools: [read]\n", trusted=False)
    rows = [a["layer"] for a in box.run("agents", "--json").json() if a["name"] == "librarian" and a["state"] == "effective"]
    box.equal("one that was never trusted shadows nothing", rows, ["builtin"])


def test_names_outlive_a_folder_that_cannot_be_read(box):
    box.agent("explorer", "tools: [read]\npermissions: {read: [docs]}\n")
    agents = box.ws / ".deputy/agents"
    agents.rename(box.ws / ".deputy/other")
    agents.symlink_to("other")
    box.exits("the wider one does not take over", box.run("run", "explorer", "x"), REFUSED, err="link")
    rows = {r["layer"]: r["state"] for r in box.run("agents", "--all", "--json").json() if r["name"] == "explorer"}
    box.equal("and the list says so", rows, {"workspace": "untrusted", "builtin": "shadowed"})
    agents.unlink()
    box.exits("a folder that is gone holds nothing", box.run("show", "explorer"), FINE, out="builtin")


def test_run_asks_on_a_terminal(box):
    box.write("a.md", "the needle\n")
    box.agent("one", "tools: [read]\nknowledge: [{name: M, path: '*.md'}]\n", trusted=False)
    no = box.tty("run", "one", "needle", answers=[("[y/N]", "n\n")])
    box.exits("no", no, REFUSED, out=["one.yaml", "prompt: P"])
    box.check("nothing ran", not box.run("tasks", "--json").json())
    yes = box.tty("run", "one", "needle", answers=[("[y/N]", "y\n")])
    box.exits("yes", yes, FINE, out="a.md:1")
    box.equal("it is trusted now", state(box, "one"), "effective")
    file = box.ws / ".deputy/agents/one.yaml"
    file.write_text(file.read_text().replace("[read]", "[read, grep]"))
    fed = box.tty("run", "one", "needle", stdin="null")
    box.exits("with another standard input it does not ask", fed, REFUSED, out="deputy trust")
    box.exits("growth is shown", box.tty("run", "one", "needle", answers=[("[y/N]", "y\n")]), FINE, out=["+ ", "grep", "a.md:1"])


def test_run_and_what_it_rests_on(box):
    clone(box)
    box.trust()
    with box.server([says("done")], repeat=True) as server:
        box.exits("all trusted: it runs", box.run("run", "helper", "x"), FINE)
        for path, text in ((".deputy/skills/ways/SKILL.md", SKILL + "more\n"), (".deputy/config.yaml", "limits: {turns: 2}\n"),
                           (".deputy/agent-memory/helper/MEMORY.md", "MAGIC-NOTE 2\n")):
            box.write(path, text)
            sent = len(server.requests())
            box.exits(f"{path.split('/')[-1]} changed: refused off a terminal", box.run("run", "helper", "x"), REFUSED,
                      err=[path, "deputy trust --update"])
            box.exits("no", box.tty("run", "helper", "x", answers=[("[y/N]", "n\n")]), REFUSED, out=text.splitlines()[-1])
            box.equal("nothing was sent", len(server.requests()), sent)
            box.exits("yes", box.tty("run", "helper", "x", answers=[("[y/N]", "y\n")]), FINE, out="done")
        system = server.bodies()[-1]["system"]
        box.check("what was accepted is in effect at once", "MAGIC-NOTE 2" in json.dumps(system), system)
        box.write(".deputy/skills/other/SKILL.md", SKILL.replace("ways", "other"))
        box.exits("what it does not declare is no hindrance", box.run("run", "helper", "x"), FINE)
        box.write(".deputy/agent-memory/helper/new.md", "MAGIC-NEW\n")
        box.exits("a new note is withheld", box.run("run", "helper", "x"), FINE, err="withheld")
        box.check("and not sent", "MAGIC-NEW" not in json.dumps(server.bodies()[-1]))


def test_a_run_writes_only_what_is_trusted(box):
    box.agent("one", "tools: [read]\nmemory: private\n")
    box.write(".deputy/agent-memory/one/MEMORY.md", "by a clone\n")
    with box.server([calls("memory_write", {"content": "mine"}), says("a"), calls("memory_write", {"content": "mine",
                    "file": "own.md"}), says("b")]):
        first = box.run("run", "one", "x", "--json").json()
        box.equal("an untrusted note is not written to", first["memory_writes"], [])
        second = box.run("run", "one", "x", "--json").json()
        box.equal("a new one is", [w["file"] for w in second["memory_writes"]], ["own.md"])
    listed = {f["file"]: f["withheld"] for f in box.run("memory", "list", "one", "--json").json()}
    box.check("and trusted", listed["own.md"] == "" and listed["MEMORY.md"], listed)
    box.exits("a person may see the other", box.run("memory", "show", "one"), FINE, out="by a clone", err="withheld")


def test_state_that_others_could_write(box):
    box.agent("one", "tools: [read]\n")
    box.agent("explorer", "tools: [read]\npermissions: {read: [docs]}\n")
    (box.state / "deputy").chmod(0o777)
    box.check("is not believed", state(box, "one") == "untrusted", box.run("agents"))
    box.exits("and doctor says so", box.run("doctor"), ERRORS, out="chmod")
    (box.state / "deputy").chmod(0o700)
    box.equal("until it is mended", state(box, "one"), "effective")
    record = next((box.state / "deputy/trust").glob("*.json"))
    record.write_bytes(b"{broken")
    answer = box.run("agents")
    box.exits("a broken list trusts nothing", answer, FINE, out="untrusted", err="is trusted until that is mended")
    rows = {r["file"]: r["state"] for r in box.run("agents", "--all", "--json").json()}
    box.equal("and lets no wider one take a name over", (rows[".deputy/agents/explorer.yaml"], rows["builtin:explorer.yaml"]),
              ("untrusted", "shadowed"))
    box.exits("and cannot be written over by a yes", box.tty("trust", answers=[("[y/N]", "y\n")]), ERRORS)


if __name__ == "__main__":
    main(globals())
