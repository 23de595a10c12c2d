"""deputy search: sources, options, many queries from a file or a stream, exit codes, JSON."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, INTERRUPTED, REFUSED, UNREADABLE, USAGE, main, stripped  # noqa: E402


def manual(box):
    box.write("docs/a.md", "# Kettle\n\n## Cleaning\nRinse the spout with vinegar.\nThen dry it.\n")
    box.write("docs/b.md", "# Lamp\nThe spout is not part of the lamp.\nReplace the bulb.\n")
    box.write("docs/zh.md", "# 售后\n退款政策：收到商品后七日内可退\n")
    box.write("other/c.txt", "A spout elsewhere\n")


def test_hits_and_exit_codes(box):
    manual(box)
    hit = box.run("search", "vinegar spout")
    box.exits("found", hit, FINE, out=["docs/a.md:4: Rinse the spout", "Kettle > Cleaning"], err="matching lines")
    box.check("the best hit first", hit.out.startswith("docs/a.md:4"), hit)
    box.exits("none", box.run("search", "zebra"), ERRORS, err="0 of 0 matching lines")
    box.exits("nothing to read", box.run("-C", box.tmp, "search", "x"), UNREADABLE, err="no file")
    box.exits("a path that matches nothing", box.run("search", "x", "--path", "none/**"), UNREADABLE, err="none/**")
    for query in ("", "  "):
        answer = box.run("search", "--", query)
        box.check(f"the query {query!r} is wrong usage", answer.code == USAGE and answer.err and not answer.out, answer)
    box.exits("several words without quotes", box.run("search", "replace", "the", "bulb"), FINE, out="docs/b.md:3")
    box.exits("CJK without blanks", box.run("search", "退款"), FINE, out="docs/zh.md:2")
    box.exits("a phrase", box.run("search", '"part of the lamp"'), FINE, out="docs/b.md:2")
    box.check("alone", "a.md" not in box.run("search", '"part of the lamp"').out)


def test_json(box):
    manual(box)
    answer = box.run("search", "spout", "--json")
    result = answer.json()
    box.equal("exit code", answer.code, FINE)
    box.check("shape", {"hits", "totals", "cuts"} <= set(result), result.keys())
    for hit in result["hits"]:
        box.check(f"hit {hit['path']}", {"source", "path", "line", "text", "heading", "score"} <= set(hit), hit)
    box.check("totals", {"files", "bytes", "matched_lines"} <= set(result["totals"]) and result["totals"]["files"] == 4
              and result["totals"]["matched_lines"] == 3, result["totals"])
    box.check("nothing else on either stream", not answer.err, answer)
    none = box.run("search", "zebra", "--json")
    box.equal("no hit is still a document", (none.code, none.json()["hits"]), (ERRORS, []))
    box.equal("equal input, equal bytes", box.run("search", "spout", "--json").raw, answer.raw)
    empty = box.run("-C", box.tmp, "search", "x", "--json")
    box.equal("nothing to read", (empty.code, empty.json()["totals"]["files"]), (UNREADABLE, 0))


def test_options(box):
    manual(box)
    box.check("--path", box.run("search", "spout", "--path", "docs/**").out.count("spout") == 2)
    box.check("--path twice, and braces", box.run("search", "spout", "--path", "docs/{a,b}.md", "--path", "other/*").out
              .count("spout") == 3)
    box.equal("--limit", box.run("search", "spout", "--limit", "1", "--json").json()["totals"]["matched_lines"], 3)
    box.equal("--limit cuts the list only", len(box.run("search", "spout", "--limit", "1", "--json").json()["hits"]), 1)
    box.equal("--count", box.run("search", "spout", "--count").out, "3\n")
    box.exits("--count of none", box.run("search", "zebra", "--count"), ERRORS, out="0")
    context = box.run("search", "vinegar", "--context", "1")
    box.exits("--context", context, FINE, out=["docs/a.md-3-## Cleaning", "docs/a.md:4: Rinse", "docs/a.md-5-Then dry it."])
    hit = box.run("search", "vinegar", "--context", "1", "--json").json()["hits"][0]
    box.equal("--context as JSON", (hit["before"], hit["after"]), (["## Cleaning"], ["Then dry it."]))
    for bad in (["--limit", "0"], ["--limit", "10001"], ["--context", "-1"], ["--context", "101"], ["--agent", ""]):
        answer = box.run("search", "x", *bad)
        box.check(f"{' '.join(bad)}", answer.code in (USAGE, ERRORS) and answer.err and not answer.out, answer)
    box.exits("a path outside", box.run("search", "x", "--path", "../**"), USAGE, err="..")
    box.exits("an absolute path", box.run("search", "x", "--path", "/etc/*"), USAGE, err="/etc/*")


def test_sources(box):
    manual(box)
    box.agent("one", "tools: [read]\nknowledge:\n  - {name: Manual, path: docs/a.md}\n  - {name: Lamp, path: docs/b.md}\n")
    box.agent("bare", "tools: [read]\n")
    by_default = box.run("search", "spout")
    box.check("by default the declared sources", "docs/a.md" in by_default.out and "other/c.txt" not in by_default.out, by_default)
    only = box.run("search", "spout", "--agent", "one", "--source", "Lamp", "--json").json()
    box.equal("--agent and --source", [(h["source"], h["path"]) for h in only["hits"]], [("Lamp", "docs/b.md")])
    narrowed = box.run("search", "spout", "--agent", "one", "--path", "docs/a*", "--json").json()
    box.equal("--path narrows an agent's sources", [h["path"] for h in narrowed["hits"]], ["docs/a.md"])
    box.agent("whole", "tools: [read]\nknowledge:\n  - {name: All, path: '**/*'}\n")
    for given in (["docs"], ["docs/"], ["docs", "none"], ["docs", "other/x*"], ["docs/a.md", "docs/{b,c}.md"], ["docs/*.md,none"]):
        both = box.run("search", "spout", "--agent", "whole", *(word for path in given for word in ("--path", path)), "--json")
        box.equal(f"--path {' and '.join(given)} with an agent", sorted(h["path"] for h in both.json()["hits"]), ["docs/a.md", "docs/b.md"])
    (box.ws / ".deputy/agents/whole.yaml").unlink()
    wider = box.run("search", "spout", "--agent", "one", "--path", "other/**")
    box.check("and never widens them", wider.code == UNREADABLE and not wider.out, wider)
    box.exits("an agent without knowledge", box.run("search", "x", "--agent", "bare"), USAGE, err="no knowledge")
    box.exits("nobody", box.run("search", "x", "--agent", "nobody"), ERRORS, err="no agent")
    box.exits("a source that is not there", box.run("search", "x", "--agent", "one", "--source", "Lump"), USAGE, err="Lamp")
    box.agent("two", "tools: [read]\nknowledge: [{name: Manual, path: docs/zh.md}]\n", trusted=False)
    box.exits("an untrusted one", box.run("search", "x", "--agent", "two"), REFUSED, err="deputy trust")
    box.check("is not among the default sources", "zh.md" not in box.run("search", "退款").out)
    box.trust()
    box.exits("two sources of one name", box.run("search", "退款"), FINE, out="docs/zh.md:2")


def test_more_sources_than_are_searched(box):
    def sources(n):
        return "tools: [read]\nknowledge:\n" + "".join(f"  - {{name: S{i}, path: {i}.md}}\n" for i in range(n))
    box.write("0.md", "needle\n")
    for i in range(100):
        box.agent(f"many{i}", sources(10), layer="system")
    exactly = box.run("search", "needle")
    box.check("a thousand are searched", exactly.code == FINE and "not searched" not in exactly.err, exactly)
    box.agent("one-more", sources(1), layer="system")
    box.exits("the next one is named", box.run("search", "needle"), FINE, err="1 source beyond the first 1000 not searched")


def test_what_is_never_searched(box):
    box.write("ok.md", "needle here\n")
    for path in (".hidden.md", ".git/x.md", "node_modules/x.md", ".deputy/notes.md", ".deputy/memory/MEMORY.md",
                 ".deputy/agent-memory/x/MEMORY.md", ".env", "id_rsa", "server.pem"):
        box.write(path, "needle secret\n")
    (box.ws / "out.md").symlink_to(box.write("outside.md", "needle outside\n", box.top))
    (box.ws / "link").symlink_to(box.ws / ".deputy/memory")
    plain = box.run("search", "needle", "--json")
    box.equal("the plain ones only", [h["path"] for h in plain.json()["hits"]], ["ok.md"])
    for glob in (".hidden.md", ".env", "*.pem", "id_rsa", ".deputy/**", ".deputy/memory/*", "link/*", "out.md", ".git/**"):
        answer = box.run("search", "needle", "--path", glob)
        box.check(f"--path {glob}", "secret" not in answer.out.replace("hidden", "") or glob == ".hidden.md", answer)
        box.check(f"--path {glob}: nothing from outside", "outside" not in answer.out, answer)


def test_many_queries(box):
    manual(box)
    rows = ["spout", '{"query": "vinegar", "path": "docs/b.md", "limit": 0}', "zebra", '{"nothing": 1}', "", '  "dry it"  ',
            "退款政策", "{zebra"]
    file = box.write("q.txt", "\n".join(rows), box.tmp)
    answer = box.run("search", "--queries", file)
    lines = answer.lines()
    box.equal("one answer a line", (answer.code, len(lines)), (FINE, 7))
    box.equal("in their order", [h["hits"][0]["path"] if h["hits"] else None for h in lines],
              ["other/c.txt", "docs/a.md", None, None, "docs/a.md", "docs/zh.md", None])
    box.check("a row without a query is an error of its own", lines[3].get("error"), lines[3])
    box.equal("each is what the query alone gives", json.dumps(lines[0]), json.dumps(box.run("search", "spout", "--json").json()))
    box.equal("from standard input", box.run("search", "--queries", "-", stdin="\n".join(rows)).raw, answer.raw)
    box.equal("with a limit", [len(h["hits"]) for h in box.run("search", "--queries", "-", "--limit", "1",
              stdin="spout\n").lines()], [1])
    box.exits("all without a hit", box.run("search", "--queries", "-", stdin="zebra\n"), ERRORS)
    box.exits("no query at all", box.run("search", "--queries", "-", stdin=""), ERRORS)
    box.exits("nothing to read", box.run("-C", box.home, "search", "--queries", "-", stdin="x\n"), UNREADABLE)
    box.exits("a file that is not there", box.run("search", "--queries", "none.txt"), UNREADABLE, err="none.txt")
    box.exits("a folder", box.run("search", "--queries", "docs"), UNREADABLE, err="docs")
    box.exits("and a query", box.run("search", "--queries", file, "x"), USAGE)
    odd = box.run("search", "--queries", "-", stdin=b"sp\xffout\n\x00\n" + b"x" * 100000 + b"\nspout\n")
    box.equal("odd bytes are answered line by line", (odd.code, len(odd.lines()), bool(odd.lines()[-1]["hits"])), (FINE, 4, True))


def test_a_conversation_line_by_line(box):
    manual(box)
    process = subprocess.Popen([box.deputy, "search", "--queries", "-"], cwd=box.ws, env=box.env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    for query, path in (("vinegar", "docs/a.md"), ("bulb", "docs/b.md")):
        process.stdin.write(f"{query}\n".encode())
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        box.equal(f"{query}: the answer is there before the next question", answer["hits"][0]["path"], path)
    box.write("docs/new.md", "A zebra came\n")
    box.write("docs/a.md", "The vinegar has gone\n")
    for query, path in (("zebra", "docs/new.md"), ("gone", "docs/a.md")):
        process.stdin.write(f"{query}\n".encode())
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        box.equal(f"{query}: files that changed between two questions", [hit["path"] for hit in answer["hits"]], [path])
    code = None
    for _ in range(200):  # one that comes just before the wait for a question is seen with the next one
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout=0.1)
            break
    box.equal("Ctrl-C while it waits for a question", code, INTERRUPTED)
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()


class Conversation:
    """A deputy search --queries - that is asked again and again."""

    def __init__(self, box):
        self.process = subprocess.Popen([box.deputy, "search", "--queries", "-", "--limit", "100"], cwd=box.ws, env=box.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def ask(self, query):
        self.process.stdin.write(f"{query}\n".encode())
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def changes(box):
    """What may happen to files between two questions; each yields its name."""
    ws = box.ws
    box.write("d/a.md", "needle one\n")
    yield "a new directory"
    with open(ws / "d/a.md", "a", encoding="utf-8") as file:
        file.write("needle two\n")
    yield "a line at the end"
    (ws / "d/a.md").write_text("needle\n", encoding="utf-8")
    yield "written anew"
    os.truncate(ws / "d/a.md", 3)
    yield "its end taken away"
    box.write("new.tmp", "needle in its place\n").rename(ws / "d/a.md")
    yield "another file in its place"
    box.write("d/e/f/g/deep.md", "needle deep\n")
    yield "new nested directories"
    (ws / "d/e").rename(ws / "d/z")
    yield "a directory renamed"
    box.write("d/z/f/g/deep.md", "needle deeper\n")
    yield "and a file in it written"
    os.link(ws / "d/a.md", ws / "hard.md")
    with open(ws / "hard.md", "a", encoding="utf-8") as file:
        file.write("needle through the other name\n")
    yield "written through a hard link"
    (ws / "soft.md").symlink_to("d/z/f/g/deep.md")
    (ws / "way").symlink_to("d/z")
    yield "links to a file and to a directory"
    (ws / "way").unlink()
    (ws / "way").symlink_to("d")
    yield "a link that leads elsewhere"
    (ws / "d/a.md").chmod(0)
    yield "rights taken away"
    (ws / "d/a.md").chmod(0o600)
    yield "and given back"
    (ws / "d/z/f/g/deep.md").write_bytes(b"\0\0needle")
    yield "text that becomes binary"
    shutil.rmtree(ws / "d")
    yield "a directory removed"
    for name in ("hard.md", "soft.md", "way"):
        (ws / name).unlink()
    yield "all of it gone"


def test_files_that_change_between_questions(box):
    for i in range(400):
        box.write(f"many/{i}.md", f"# Page {i}\ntext\n")
    with Conversation(box) as talk:
        talk.ask("needle")
        # First every file is looked at; a corpus that was searched often is watched.
        for phase in ("looked at", "watched"):
            for what in changes(box):
                box.equal(f"{phase}: {what}", talk.ask("needle"), box.run("search", "needle", "--json", "--limit", "100").json())
            for _ in range(12):
                talk.ask("needle")


def test_hostile_names_and_texts_on_a_terminal(box):
    box.write(b"docs/a\nb\x1b[31m.md".decode(), "# Top\x1b]0;title\x07\n\nneedle \x1b[2J\u202e\u200b\u009b31m end\rover\n")
    (box.ws / b"docs/in\xffvalid.md".decode("utf-8", "surrogateescape")).write_bytes(b"needle\n")
    box.write("docs/𝒜😀.md", "needle\n")
    os.symlink("/etc/hostname", box.ws / "docs/a\x1b[0mb.md")
    plain = box.run("search", "needle", "--context", "2")
    box.equal("every file is found", plain.out.count(": needle"), 3)
    shown = box.tty("search", "needle", "--context", "2")
    box.check("colour on a terminal", "\x1b[35m" in shown.out and "\x1b[32m" in shown.out, shown)
    box.check("the same text", stripped(shown.out).startswith(plain.out), shown)
    dull = box.tty("search", "needle", "--context", "2", env={"NO_COLOR": "1"})
    for what, text in (("a pipe", plain.out + plain.err), ("a terminal", stripped(shown.out)), ("without colour", dull.out)):
        for bad in "\x1b\r\x07\u009b\u202e\u200b":
            box.check(f"{what}: no {bad!r} of a file", bad not in text, text)
    box.equal("a name is one line", len([line for line in plain.out.splitlines() if "\\x0a" in line]), 3)
    whole = box.run("search", "needle", "--json")
    box.check("as JSON it is valid UTF-8", whole.code == FINE and "a\nb\x1b[31m.md" in whole.json()["hits"][0]["path"]
              + whole.json()["hits"][1]["path"] + whole.json()["hits"][2]["path"], whole)


def test_output_that_ends_early(box):
    box.write("a.md", "needle in a line of some length\n" * 20000)
    process = box.start("search", "needle", "--limit", "10000")
    process.stdout.read(10)
    process.stdout.close()
    box.check("nobody reads on: no word and no crash", process.wait() in (-signal.SIGPIPE, ERRORS), process.returncode)
    box.check("no word on standard error either", b"Sanitizer" not in process.stderr.read())
    process.stderr.close()
    with open("/dev/full", "wb") as full:
        for argv in (["search", "needle"], ["search", "needle", "--json"], ["search", "--queries", "-"]):
            end = subprocess.run([box.deputy, *argv], cwd=box.ws, env=box.env, stdout=full, stderr=subprocess.PIPE, input=b"needle\n" * 3)
            box.check(f"{' '.join(argv)}: a full disk is said", end.returncode == ERRORS and b"standard output" in end.stderr, end)


def test_the_budget_of_a_search(box):
    box.run("config", "set", "limits.searchMiB", "1")
    half = 1 << 19
    box.write("docs/a.md", "needle\n" + "x" * (half - 8) + "\n")
    box.write("docs/b.md", "x" * (half - 8) + "\nneedle\n")
    fits = box.run("search", "needle", "--json").json()
    box.equal("exactly so much is searched", (fits["totals"]["files"], fits["totals"]["at_least"], fits["cuts"]), (2, False, []))
    for i in range(5):
        box.write(f"docs/c{i}.md", "needle\n")
    for query, code in (("needle", FINE), ("zebra", ERRORS)):
        over = box.run("search", query)
        box.exits(f"{query}: for people", over, code, err=["not seen: not read: budget of 1 MiB: 5 (docs/c0.md", "of at least"])
        cuts = box.run("search", query, "--json").json()["cuts"]
        box.equal(f"{query}: every file that was not searched", [c["paths"] for c in cuts], [[f"docs/c{i}.md" for i in range(5)]])


def test_totals_name_every_cut(box):
    box.write("ok.md", "needle\n")
    box.write("bin.md", b"\x00\x01\x02needle" * 50)
    big = box.write("big.md", "filler line\n" * 200000 + "needle at the end\n")
    box.run("config", "set", "limits.searchFileMiB", "1")
    box.write("noread.md", "needle\n").chmod(0o200)
    answer = box.run("search", "needle")
    box.exits("for people", answer, FINE, out="ok.md:1", err=["big.md", "not seen"])
    result = box.run("search", "needle", "--json").json()
    box.check("as JSON with paths", {"reason", "count", "paths"} <= set(result["cuts"][0])
              and any("big.md" in c["paths"] for c in result["cuts"]), result["cuts"])
    box.check("totals are honest", result["totals"]["bytes"] < big.stat().st_size, result["totals"])


if __name__ == "__main__":
    main(globals())
