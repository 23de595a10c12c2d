"""The command line itself: help, wrong usage, reserved verbs, -C, colours and pipes, output that cannot be written."""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, REFUSED, USAGE, main, stripped  # noqa: E402

# Each verb with arguments that are too few or too many, or an option it lacks.
WRONG = {
    "agents": ["x"], "check": ["--nope"], "show": [], "explain": [], "diff": ["one"], "prompt": [], "tools": ["a", "b"],
    "init": ["a", "b"], "new": [], "copy": ["explorer"], "set": ["x"], "fmt": [], "rm": [], "enable": [], "disable": [],
    "trust": ["x"], "search": [], "run": ["explorer"], "tasks": ["--limit", "0"], "wait": ["--timeout", "x"], "stop": [],
    "tail": ["a", "b"], "replay": [], "memory": [],
    "skills": ["x"], "models": ["nonsense"], "config": ["nonsense"], "schema": ["nonsense"], "doctor": ["x"],
    "help": ["a", "b"], "version": ["x"], "chat": ["a", "b"],
}
RESERVED = ["approvals", "approve", "deny", "policy", "history", "restore", "servers", "audit",
            "mcp", "serve", "install"]
LISTINGS = ["agents", "check", "tools", "trust", "tasks", "skills", "models", "config", "doctor"]


def test_overview_names_every_verb(box):
    page = box.run("--help")
    box.exits("--help prints the page", page, FINE)
    listed = re.findall(r"^  ([a-z]+) ", page.out, re.M)
    box.equal("it lists exactly the verbs that work", sorted(listed), sorted(WRONG))
    box.equal("`help` and `-h` are the same page", (box.run("help").out, box.run("-h").out), (page.out, page.out))
    bare = box.run()
    box.check("no verb: the page on standard error", bare.code == USAGE and not bare.out and bare.err == page.out, bare)
    box.exits("--version", box.run("--version"), FINE, out="deputy 0.")
    box.equal("`version` is the same", box.run("version").out, box.run("--version").out)


def test_every_verb_has_help_and_refuses_wrong_usage(box):
    for verb, wrong in WRONG.items():
        page = box.run(verb, "--help")
        box.exits(f"{verb} --help", page, FINE, out=f"usage: deputy [-C DIR] {verb}")
        box.equal(f"help {verb} is the same page", box.run("help", verb).out, page.out)
        bad = box.run(verb, *wrong)
        box.check(f"{verb} {' '.join(wrong)}: exit 2, nothing on standard output, the way to the help",
                  bad.code == USAGE and not bad.out and f"deputy {verb} --help" in bad.err, bad)
        options = [line for line in page.out.splitlines() if line.startswith("  --")]
        box.check(f"{verb} --help: the texts stand below each other", all(o[26] == " " and o[27] != " " for o in options), page)
    box.check("nothing was made on the way", not (box.ws / ".deputy").exists() and not box.state.exists())


def test_options(box):
    box.exits("an unknown option", box.run("agents", "--al"), USAGE, err=["--al"])
    box.exits("a near miss is named", box.run("check", "--stric"), USAGE, err="--strict")
    box.exits("a value where none is taken", box.run("agents", "--all=yes"), USAGE, err="takes no value")
    box.exits("a missing value", box.run("search", "x", "--limit"), USAGE, err="needs")
    for value in ("0", "-1", "1e3", "ten", "", "99999999999999999999"):
        box.exits(f"--limit={value!r}", box.run("search", "x", f"--limit={value}"), USAGE, err="whole number")
    box.exits("--json=1", box.run("agents", "--json=1"), USAGE)
    box.exits("-C after the verb says where it belongs", box.run("agents", "-C", "."), USAGE, err="before the verb")
    box.exits("a text that begins with a hyphen", box.run("search", "-12 degrees"), USAGE, err="--")
    box.write("a.md", "it was -12 degrees\n")
    box.exits("after -- it is a text", box.run("search", "--", "-12 degrees"), FINE, out="a.md:1")


def test_reserved_verbs_answer_not_yet(box):
    for verb in RESERVED:
        answer = box.run(verb, "x", "--whatever")
        box.check(f"{verb}: not yet, exit 2", answer.code == USAGE and not answer.out and "not yet" in answer.err, answer)
        box.exits(f"help {verb}", box.run("help", verb), FINE, out="Not yet")


def test_misspelt_and_short_verbs(box):
    box.exits("a near miss", box.run("agnets"), USAGE, err='did you mean "agents"?')
    box.exits("help of a near miss", box.run("help", "agnets"), USAGE, err='did you mean "agents"?')
    box.exits("nothing near", box.run("frobnicate"), USAGE, err="deputy help")
    box.exits("ambiguous", box.run("se"), USAGE, err=["set", "search", "short for several"])
    box.exits("a unique beginning works", box.run("ag"), FINE, out="explorer")
    box.exits("the empty verb", box.run(""), USAGE)
    box.exits("an unknown option before the verb", box.run("--json", "agents"), USAGE, err="--json")
    evil = box.run("\x1b[2J\u202ex")
    box.check("a verb's name is escaped", "\x1b" not in evil.err and "\u202e" not in evil.err, evil)


def test_directory(box):
    sub = box.ws / "a" / "b"
    sub.mkdir(parents=True)
    box.agent("here", "tools: [read]\n", trusted=False)
    box.exits("-C names the workspace", box.run("-C", box.ws, "show", "here", cwd=box.top), FINE, out="untrusted")
    box.exits("the last -C counts", box.run("-C", "/", "-C", box.ws, "show", "here"), FINE)
    box.exits("it is found from below", box.run("show", "here", cwd=sub), FINE)
    box.exits("-C below is not moved up", box.run("-C", sub, "show", "here"), ERRORS, err="no agent")
    box.exits("-C without a value", box.run("-C"), USAGE, err="-C")
    box.exits("-C of nothing", box.run("-C", box.top / "none", "agents"), USAGE, err="none")
    box.exits("-C of a file", box.run("-C", box.write("f", "x"), "agents"), USAGE)
    for where, name in (("/", "/"), (box.home, "home"), (box.top, "above home")):
        box.exits(f"{name} is not taken by itself", box.run("agents", cwd=where), USAGE, err=["-C"])
        box.exits(f"{name} is taken with -C", box.run("-C", where, "agents"), FINE, out="explorer")
        for verb in ("models", "config", "doctor"):
            box.exits(f"{verb} is about the user's settings and works there", box.run(verb, cwd=where), FINE)
    box.exits("init in home", box.run("init", cwd=box.home), USAGE, err="init DIR")
    box.exits("init above home", box.run("init", cwd=box.top), USAGE, err="init DIR")
    box.check("makes nothing there", not (box.top / ".deputy").exists())
    box.exits("init -C in home", box.run("-C", box.home, "init"), FINE)
    box.exits("home as named by init", box.run("-C", box.home, "show", "helper"), FINE)
    outer = box.run("init", cwd=sub)
    box.check("init makes a workspace where it stands, also below another", outer.code == FINE
              and (sub / ".deputy/agents/helper.yaml").exists(), outer)


def test_environment_that_cannot_be_used(box):
    box.exits("no HOME", box.run("agents", env={"HOME": None}), USAGE, err="HOME")
    box.exits("relative HOME", box.run("agents", env={"HOME": "x"}), USAGE, err="HOME")
    relative = box.run("doctor", env={"XDG_STATE_HOME": "state"})
    box.exits("relative XDG values are ignored with a warning", relative, FINE, out=str(box.home), err="XDG_STATE_HOME")
    for verb in ("agents", "run", "search", "memory", "trust", "replay", "models"):
        box.exits(f"no Deputy inside a delegation: {verb}",
                  box.run(verb, *(["x"] if verb in ("search", "replay", "memory") else ["x", "y"] if verb == "run" else []),
                          env={"DEPUTY_DELEGATION": "1"}), REFUSED, err="inside a delegation")
    for argv in (["mcp"], ["run"], ["tasks", "--nonsense"]):
        box.exits(f"whatever follows: {argv}", box.run(*argv, env={"DEPUTY_DELEGATION": "1"}), REFUSED, err="inside a delegation")
    for verb in ("help", "version", "schema", "check"):
        box.exits(f"but {verb}", box.run(verb, env={"DEPUTY_DELEGATION": "1"}), FINE)


def test_listings_are_one_document(box):
    box.agent("one", "tools: [read]\nknowledge:\n  - {name: M, path: '*.md'}\nmemory: private\n")
    box.write("m.md", "# M\nword\n")
    for verb in LISTINGS:
        answer = box.run(verb, "--json")
        box.check(f"{verb} --json is one document", answer.code == FINE and answer.json() is not None, answer)
        plain = box.run(verb)
        box.check(f"{verb} has a form for people", plain.code == FINE and plain.out, plain)


def test_colours_only_on_terminals(box):
    box.agent("one", "tools: [read]\n")
    for argv in (["agents"], ["show", "one"], ["check"], ["search", "word"], ["trust"]):
        piped = box.run(*argv)
        box.check(f"{argv[0]}: none in a pipe", "\x1b" not in piped.out + piped.err, piped)
    shown = box.tty("agents")
    box.check("on a terminal", "\x1b[32meffective" in shown.out, shown)
    box.check("the same text", stripped(shown.out) == box.run("agents").out, shown)
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = box.tty("agents", env=env)
        box.check(f"none with {env}", "\x1b" not in plain.out, plain)
    box.check("an empty NO_COLOR is none", "\x1b" in box.tty("agents", env={"NO_COLOR": ""}).out)


def test_output_that_cannot_be_written(box):
    with open("/dev/full", "wb") as full:
        for argv in (["agents"], ["show", "explorer", "--json"], ["schema"]):
            end = subprocess.run([box.deputy, *argv], cwd=box.ws, env=box.env, stdout=full, stderr=subprocess.PIPE)
            box.check(f"{argv[0]}: a full disk is an error and is said", end.returncode == ERRORS
                      and b"standard output" in end.stderr, end)

    def shut():
        os.close(1)
    box.exits("new with a closed standard output still works",
              box.run("new", "made", preexec_fn=shut), ERRORS, err="standard output")
    run = box.run("run", "made", "what is this", preexec_fn=shut)
    box.check("no file of Deputy's becomes standard output", run.code == ERRORS and box.run("tasks").out.count("\n") == 1, run)
    box.equal("the definition is whole", box.run("check", "made").code, FINE)
    read_end, write_end = os.pipe()
    os.close(read_end)
    gone = subprocess.run([box.deputy, "schema"], cwd=box.ws, env=box.env, stdout=write_end, timeout=20)
    os.close(write_end)
    box.check("a reader that went away does not hang it", gone.returncode != 0, gone)


if __name__ == "__main__":
    main(globals())
