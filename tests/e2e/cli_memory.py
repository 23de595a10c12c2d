"""deputy memory: a person sees, edits, removes and exports notes; links and foreign files are refused by name; writers in
several processes lose nothing."""

import contextlib
import json
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, REFUSED, USAGE, calls, main, result_text, results_of, says  # noqa: E402

APPEND = {"EDITOR": "sh -c 'echo \"added line\" >> \"$0\"'"}


def notes(box, name="one", memory="private"):
    box.agent(name, f"tools: [read]\nmemory: {memory}\n")
    box.run("memory", "edit", name, env=APPEND)


def test_list_show_search_export_where(box):
    box.agent("one", "tools: [read]\nmemory: private\n")
    box.exits("list before there are any", box.run("memory", "list", "one"), FINE, out="no notes yet")
    box.equal("as JSON", box.run("memory", "list", "one", "--json").json(), [])
    box.exits("show before there are any", box.run("memory", "show", "one"), ERRORS, err="no notes yet")
    box.check("looking makes nothing", not (box.ws / ".deputy/agent-memory").exists())
    box.exits("edit", box.run("memory", "edit", "one", env=APPEND), FINE, err="wrote MEMORY.md")
    box.exits("edit again", box.run("memory", "edit", "one", env=APPEND), FINE)
    box.exits("edit a daily note", box.run("memory", "edit", "one", "daily/2026-02-03.md", env=APPEND), FINE)
    box.exits("edit one with a blank in its name", box.run("memory", "edit", "one", "old orders.md", env=APPEND), FINE)
    rows = box.run("memory", "list", "one", "--json").json()
    box.equal("list", [(r["file"], r["resident"], r["withheld"]) for r in rows],
              [("MEMORY.md", True, ""), ("old orders.md", True, ""), ("daily/2026-02-03.md", False, "")])
    box.exits("show", box.run("memory", "show", "one"), FINE, out="added line\nadded line\n")
    box.equal("show --json", box.run("memory", "show", "one", "old orders.md", "--json").json(), "added line\n")
    found = box.run("memory", "search", "one", "added", "line")
    box.exits("search", found, FINE, out=["MEMORY.md:1: added line", "daily/2026-02-03.md:1"])
    box.equal("search --limit --json", len(box.run("memory", "search", "one", "added", "--limit", "2", "--json").json()["hits"]), 2)
    box.exits("search finds nothing", box.run("memory", "search", "one", "zebra"), ERRORS)
    box.exits("export", box.run("memory", "export", "one"), FINE, out=["===== MEMORY.md", "===== daily/2026-02-03.md"])
    box.equal("export --json", [e["text"] for e in box.run("memory", "export", "one", "--json").json()],
              ["added line\nadded line\n", "added line\n", "added line\n"])
    box.equal("where", box.run("memory", "where", "one").out, f"{box.ws}/.deputy/agent-memory/one\n")
    ignored = (box.ws / ".deputy/.gitignore").read_text().split()
    box.check("notes are kept out of commits", "agent-memory/" in ignored and "memory/" in ignored, ignored)


def test_usage(box):
    notes(box)
    box.exits("no NAME", box.run("memory", "list"), USAGE, err="--shared")
    box.exits("nobody", box.run("memory", "list", "nobody"), ERRORS, err="no agent")
    box.exits("no memory declared", box.run("memory", "list", "explorer"), ERRORS, err="declares no memory")
    box.exits("restore", box.run("memory", "restore", "one"), USAGE, err="not yet")
    box.exits("another word", box.run("memory", "purge", "one"), USAGE, err="export")
    box.exits("too much", box.run("memory", "list", "one", "x"), USAGE, err="nothing after NAME")
    box.exits("--shared and NAME", box.run("memory", "list", "one", "--shared"), USAGE, err="instead of NAME")
    box.exits("search without a query", box.run("memory", "search", "one"), USAGE, err="query")
    box.exits("rm without a file", box.run("memory", "rm", "one"), USAGE, err="FILE")
    box.exits("no editor", box.run("memory", "edit", "one"), USAGE, err="EDITOR")
    before = box.tree()
    for name in ("../x.md", "a/b.md", ".x.md", "x.txt", "daily/../x.md", "/etc/x.md", "daily/a/b.md", "a\x1b.md", "x" * 70 + ".md"):
        box.exits(f"edit {name[:20]!r}", box.run("memory", "edit", "one", name, env=APPEND), USAGE)
        box.check(f"show {name[:20]!r}", box.run("memory", "show", "one", name).code in (ERRORS, REFUSED))
        box.check(f"rm {name[:20]!r}", box.run("memory", "rm", "one", name, "--yes").code in (ERRORS, REFUSED))
    box.equal("nothing was written", box.tree(), before)


def test_shared(box):
    box.exits("list", box.run("memory", "list", "--shared"), FINE, out="no notes yet")
    box.exits("edit", box.run("memory", "edit", "--shared", env=APPEND), FINE)
    box.check("there", (box.ws / ".deputy/memory/MEMORY.md").exists())
    box.exits("show", box.run("memory", "show", "--shared", "MEMORY.md"), FINE, out="added line")
    box.agent("one", "tools: [read]\nmemory: shared\n")
    box.exits("an agent that shares it", box.run("memory", "show", "one"), FINE, out="added line")
    box.check("sees it in its prompt", "added line" in box.run("prompt", "one").out)
    box.agent("two", "tools: [read]\nmemory: private\n")
    box.check("a private one does not", "added line" not in box.run("prompt", "two").out)
    box.exits("rm", box.run("memory", "rm", "--shared", "MEMORY.md", "--yes"), FINE)


def test_edit(box):
    notes(box)
    file = box.ws / ".deputy/agent-memory/one/MEMORY.md"
    before = file.read_bytes()
    box.exits("an editor that changes nothing", box.run("memory", "edit", "one", env={"EDITOR": "true"}), FINE, err="nothing was")
    box.exits("one that fails", box.run("memory", "edit", "one", env={"EDITOR": "false"}), ERRORS, err="editor")
    broken = box.run("memory", "edit", "one", env={"EDITOR": "sh -c 'echo kept >> \"$0\"; exit 3'"})
    box.exits("one that writes and fails", broken, ERRORS, err="is kept in")
    kept = broken.err.split("kept in ")[1].split()[0]
    box.check("what was written is there", "kept" in open(kept).read())
    race = f"sh -c 'echo by another >> {file}; echo mine >> \"$0\"'"
    lost = box.run("memory", "edit", "one", env={"EDITOR": race})
    box.exits("a note that changed meanwhile is not lost", lost, REFUSED, err=["has changed", "is kept in"])
    box.equal("the file is the other's", file.read_bytes(), before + b"by another\n")
    box.trust()
    big = box.run("memory", "edit", "one", env={"EDITOR": "sh -c 'head -c 262145 /dev/zero | tr \"\\0\" a > \"$0\"'"})
    box.check("over the limit", big.code == ERRORS and "kept in" in big.err, big)
    box.exits("at the limit", box.run("memory", "edit", "one", env={"EDITOR":
              "sh -c 'head -c 262144 /dev/zero | tr \"\\0\" a > \"$0\"'"}), FINE)
    left = [p.name for p in box.tmp.iterdir() if p.name.startswith("deputy-memory")]
    box.equal("private copies are left only where the text would be lost", len(left), 3)
    fresh = box.run("memory", "edit", "one", "new.md", env={"EDITOR": "true"})
    box.exits("a new one left empty is not made", fresh, FINE)
    box.check("indeed", not (file.parent / "new.md").exists())


def test_rm(box):
    notes(box)
    file = box.ws / ".deputy/agent-memory/one/MEMORY.md"
    box.exits("no terminal", box.run("memory", "rm", "one", "MEMORY.md"), REFUSED, err="--yes")
    box.exits("a no", box.tty("memory", "rm", "one", "MEMORY.md", answers=[("[y/N]", "n\n")]), REFUSED)
    box.check("it is there", file.exists())
    box.exits("a yes", box.tty("memory", "rm", "one", "MEMORY.md", answers=[("[y/N]", "y\n")]), FINE)
    box.check("it is gone", not file.exists())
    box.exits("again", box.run("memory", "rm", "one", "MEMORY.md", "--yes"), ERRORS, err="MEMORY.md")
    box.write(".deputy/agent-memory/one/MEMORY.md", "by a clone\n")
    box.check("its record went with it", "untrusted" in box.run("memory", "list", "one", "--json").json()[0]["withheld"])
    box.exits("an untrusted one can be removed", box.run("memory", "rm", "one", "MEMORY.md", "--yes"), FINE)


def test_links_and_foreign_files(box):
    """C42: what is not the scope's own plain file is refused by name, and nothing of it is read or written."""
    notes(box)
    scope = box.ws / ".deputy/agent-memory/one"
    victim = box.write("victim.md", "victim\n", box.top)
    (scope / "link.md").symlink_to(victim)
    (scope / "host.md").symlink_to("/etc/hostname")
    (scope / "hard.md").hardlink_to(victim)
    (scope / "dir.md").mkdir()
    rows = {r["file"]: r["withheld"] for r in box.run("memory", "list", "one", "--json").json()}
    box.check("each is named with its reason", "link" in rows["link.md"] and "link" in rows["hard.md"]
              and "regular" in rows["dir.md"], rows)
    for name in ("link.md", "host.md", "hard.md", "dir.md"):
        for verb in ("show", "edit"):
            answer = box.run("memory", verb, "one", name, env=APPEND)
            box.check(f"{verb} {name}", answer.code != FINE and name in answer.err and "victim\n" not in answer.out, answer)
    box.check("none is in the prompt", not any(t in box.run("prompt", "one").out for t in ("victim", open("/etc/hostname").read())))
    box.equal("the victim is as it was", victim.read_text(), "victim\n")
    with box.server([calls("memory_write", {"content": "x", "file": "link.md"}), calls("memory_read", {"file": "host.md"}),
                     says("done")]) as server:
        box.run("run", "one", "x")
        seen = [result_text(results_of(b)[0]) for b in server.bodies()[1:]]
    box.check("an agent is refused too", "link.md" in seen[0] and open("/etc/hostname").read().strip() not in seen[1], seen)
    box.equal("the victim is as it was", victim.read_text(), "victim\n")


def test_a_scope_that_is_a_link(box):
    """C42: a link in place of a directory of memory, at any depth."""
    elsewhere = box.top / "elsewhere"
    box.write("MEMORY.md", "from elsewhere\n", elsewhere)
    for depth in (".deputy/agent-memory/one", ".deputy/agent-memory", ".deputy"):
        other = box.top / depth.replace("/", "_")
        box.ws.rename(box.top / "old") if box.ws.exists() else None
        (box.top / "old").rename(other)
        box.ws.mkdir()
        box.agent("one", "tools: [read]\nmemory: private\n")
        place = box.ws / depth
        if depth == ".deputy":
            place.rename(elsewhere / "deputy")
            place.symlink_to(elsewhere / "deputy")
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(elsewhere)
        before = box.tree(elsewhere)
        answer = box.run("memory", "edit", "one", env=APPEND)
        box.check(f"{depth} as a link: nothing is written", answer.code != FINE and box.tree(elsewhere) == before, answer)
        if depth != ".deputy":
            box.check("and the component is named", depth.split("/")[-1] in answer.err, answer)
        shown = box.run("prompt", "one")
        box.check("nothing of it is in the prompt", "from elsewhere" not in shown.out, shown)


def test_two_processes_lose_nothing(box):
    """C44: agents that append and overwrite, a person who edits, all at once in several processes."""
    box.agent("one", "tools: [read]\nmemory: shared\n")
    runs, per_run = 4, 10

    def line(run, i):
        return f"run {run} note {i}"

    scripts = [[calls("memory_write", {"content": line(r, i)} if i % 5 else {"content": f"whole {r} {i}", "file": "status.md",
                "mode": "overwrite"}) for i in range(per_run)] + [says("done")] for r in range(runs)]
    processes = []
    with contextlib.ExitStack() as stack:
        for r in range(runs):
            home = box.top / f"config{r}"
            config, box.config = box.config, home
            stack.enter_context(box.server(scripts[r]))
            box.config = config
            processes.append(box.start("run", "one", "go", "--json", env={"XDG_CONFIG_HOME": str(home)}))
        edits = 0
        for i in range(8):
            editor = {"EDITOR": f"sh -c 'echo person {i} >> \"$0\"'"}
            edits += box.run("memory", "edit", "--shared", "status.md", env=editor).code == FINE
        reports = [json.loads(p.communicate(timeout=60)[0]) for p in processes]
    box.equal("each run came to its end", [r["status"] for r in reports], ["completed"] * runs)
    box.equal("each write was made", [len(r["memory_writes"]) for r in reports], [per_run] * runs)
    text = box.run("memory", "show", "--shared").out.splitlines()
    wanted = sorted(line(r, i) for r in range(runs) for i in range(per_run) if i % 5)
    box.equal("every line is there, once and whole", sorted(t for t in text if t.startswith("run ")), wanted)
    box.equal("every entry has its header", sum("<!-- deputy:" in t for t in text), len(wanted))
    status = box.run("memory", "show", "--shared", "status.md").out
    box.check("the overwritten file is one whole version", status.count("whole") == 1, status)
    rows = box.run("memory", "list", "--shared", "--json").json()
    box.check("all of it is trusted", all(not r["withheld"] for r in rows), rows)
    box.check("nothing is left beside the files", {p.name for p in (box.ws / ".deputy/memory").iterdir()}
              <= {"MEMORY.md", "status.md", ".lock"}, list((box.ws / ".deputy/memory").iterdir()))


def test_a_linked_worktree_shares_the_notes(box):
    if not shutil.which("git"):
        return
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    box.agent("one", "tools: [read]\nmemory: private\n", trusted=False)
    for argv in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"], ["worktree", "add", "-q", str(box.top / "tree"), "-b", "b"]):
        subprocess.run([*git, *argv], cwd=box.ws, check=True, env=box.env)
    box.trust()
    box.run("memory", "edit", "one", env=APPEND)
    tree = box.top / "tree"
    box.tty("trust", cwd=tree, answers=[("[y/N]", "y\n")])
    box.equal("where", box.run("memory", "where", "one", cwd=tree).out, f"{box.ws}/.deputy/agent-memory/one\n")
    box.exits("show", box.run("memory", "show", "one", cwd=tree), FINE, out="added line")
    box.run("memory", "edit", "one", "new.md", cwd=tree, env=APPEND)
    for place in (box.ws, tree):
        rows = box.run("memory", "list", "one", "--json", cwd=place).json()
        box.equal(f"what Deputy wrote is trusted in {place.name}", {r["file"]: r["withheld"] for r in rows},
                  {"MEMORY.md": "", "new.md": ""})


if __name__ == "__main__":
    main(globals())
