"""The lane `search` of ./dev bench: ranked search beside what else reads lines, on the shared corpora.

Every figure is the median of interleaved rounds: one round asks each program once, so that what else the machine does meets
all of them. In-process times are of a program that keeps what it has read; whole requests go through a running
`deputy search --queries -`, JSON in and out; whole processes start, read and end. What cannot be measured here says so.
"""

import json
import os
import shutil
import statistics
import subprocess
import time

from measuring import DEPUTY, HELPERS

ROUNDS = 9
QUERIES = {
    "en-docs": {"1 rare": "dumpbin", "4 terms": "install powershell windows update",
                "5-term question": "how do I create a collection with an index in milvus",
                "no hit": "zxqjvwk", '"the"': "the"},
    "zh-docs": {"1 rare": "聚簇索引", "4 terms": "备份 恢复 集群 日志",
                "5-term question": "如何 查看 慢查询 日志 位置 配置", "no hit": "犇骉羴", '"the"': "the"},
}
STOPPED = {"how", "do", "i", "a", "with", "an", "in", "如何"}


def shared(name):
    return os.path.join(os.environ.get("DEPUTY_SHARED", "../shared"), "search", name)


def extract(name):
    """The corpus below build/, where it stays for the next time."""
    folder = os.path.join("build", "search-corpora", name)
    archive = shared(name + ".tar.zst")
    if not os.path.isdir(folder):
        if not os.path.exists(archive) or not shutil.which("zstd"):
            return None
        os.makedirs(folder + ".new", exist_ok=True)
        subprocess.run(["tar", "--zstd", "-xf", os.path.abspath(archive)], cwd=folder + ".new", check=True)
        os.rename(folder + ".new", folder)
    return folder


class Asked:
    """A program that answers one line for each line."""

    def __init__(self, argv, env):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, line):
        start = time.perf_counter()
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode("utf-8", "replace")
        return answer, (time.perf_counter() - start) * 1e3

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def timed(argv, env):
    start = time.perf_counter()
    run = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return (time.perf_counter() - start) * 1e3, run.stdout.count(b"\n")


def programs():
    """Greps that are here: name → arguments before the pattern."""
    found = {}
    if shutil.which("rg"):
        found["ripgrep"] = ["rg", "-n", "-i", "--no-messages"]
    npm = os.path.join("build", "search-peers", "node_modules", "@vscode", "ripgrep", "bin", "rg")
    if os.path.exists(npm):
        found["ripgrep (npm)"] = [npm, "-n", "-i", "--no-messages"]
    if shutil.which("ugrep"):
        found["ugrep"] = ["ugrep", "-r", "-n", "-i", "-E"]
    found["GNU grep"] = ["grep", "-r", "-n", "-i", "-E"]
    return found


def words(query):
    return [word for word in query.split() if word not in STOPPED] or query.split()


def ratio(peer, ours):
    return f"{peer / ours:.1f}x" if ours else "-"


def measure(folder, queries, env):
    """One median per query and program; the programs take turns."""
    greps = programs()
    kept = Asked([f"{HELPERS}/search_speed", folder], env)
    served = Asked([DEPUTY, "-C", folder, "search", "--queries", "-", "--json", "--limit", "50", "--path", "**/*"], env)
    index = Asked([f"{HELPERS}/fts_lines", folder], env)
    built = float(index.process.stdout.readline())
    kept.ask("Q warm"), served.ask(json.dumps({"query": "warm"}))
    resident = int(kept.ask("M")[0])
    rows = {}
    for label, query in queries.items():
        times = {name: [] for name in ["in process", "processor", "request", "FTS5", *greps]}
        for _ in range(ROUNDS):
            answer = kept.ask("Q " + query)[0].split()
            times["in process"].append(float(answer[0]))
            times["processor"].append(float(answer[1]))
            size, lines = int(answer[5]), int(answer[4])
            times["request"].append(served.ask(json.dumps({"query": query}))[1])
            times["FTS5"].append(float(index.ask(" ".join(words(query)))[0].split()[0]))
            for name, argv in greps.items():
                times[name].append(timed([*argv, "|".join(words(query)), folder], env)[0])
        rows[label] = {name: statistics.median(all_of) for name, all_of in times.items()} | {"lines": lines}
    return kept, served, index, rows, size, resident, built


def print_rows(name, rows, built):
    peers = [peer for peer in next(iter(rows.values())) if peer not in ("in process", "processor", "request", "lines")]
    print(f"search: {name}, 50 best lines, milliseconds; FTS5 index built in {built:.0f} ms")
    print(f"{'':18}{'lines':>8}{'in process':>12}{'processor':>11}{'request':>9}" + "".join(f"{peer:>15}" for peer in peers) + "   ripgrep / in process, / request")
    for label, row in rows.items():
        grep = min(row[peer] for peer in peers if peer.startswith("ripgrep")) if any(p.startswith("ripgrep") for p in peers) else None
        shown = f"{ratio(grep, row['in process']):>12}{ratio(grep, row['request']):>12}" if grep else "   no ripgrep here"
        print(f"{label:18}{row['lines']:8}{row['in process']:12.2f}{row['processor']:11.2f}{row['request']:9.2f}" + "".join(f"{row[peer]:15.1f}" for peer in peers) + shown)
    print(f'"the" / no hit: {rows[chr(34) + "the" + chr(34)]["in process"] / rows["no hit"]["in process"]:.1f}')


def bandwidth(kept, size, query):
    """Share of what one core reads at most, both by turns: the selective scan's bytes a second."""
    shares = []
    for _ in range(ROUNDS):
        best = float(kept.ask(f"R {size}")[0])
        took = float(kept.ask("Q " + query)[0].split()[1])
        shares.append((size / took / 1e6 / best, size / took / 1e6, best))
    share, scan, best = sorted(shares)[len(shares) // 2]
    print(f"no hit: {scan:.1f} GB/s of {best:.1f} that one core reads: {share * 100:.0f} %")


def first_search(folder, env, query):
    argv = [DEPUTY, "-C", folder, "search", query, "--path", "**/*", "--limit", "50", "--json"]
    grep = ["rg", "-n", "-i", "|".join(words(query)), folder]
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(timed(argv, env)[0])
        if shutil.which("rg"):
            theirs.append(timed(grep, env)[0])
    mine = statistics.median(ours)
    shown = f", ripgrep {statistics.median(theirs):.0f} ms, {mine / statistics.median(theirs):.2f} of its time" if theirs else ""
    print(f"first search, whole process, nothing kept, page cache warm: {mine:.0f} ms{shown}")


def edits(kept, folder, query):
    """One file changes before a search: what that adds, and whether the answer is right."""
    victim = os.path.join(folder, "zz-edited.md")
    with open(victim, "w", encoding="utf-8") as file:
        file.write("before\n")
    kept.ask("Q " + query)
    added, plain = [], []
    for turn in range(ROUNDS):
        plain.append(float(kept.ask("Q qqedit")[0].split()[0]))
        with open(victim, "w", encoding="utf-8") as file:
            file.write(f"qqedit number {turn}\n" * (turn + 1))
        answer = kept.ask("Q qqedit")[0].split()
        if int(answer[4]) != turn + 1:
            print(f"WRONG after an edit: {answer[4]} lines, not {turn + 1}")
        added.append(float(answer[0]))
    os.remove(victim)
    print(f"one file of all edited: {statistics.median(added):.2f} ms, without an edit {statistics.median(plain):.2f} ms: {statistics.median(added) - statistics.median(plain):.2f} ms more")


def cold(folder, env, query):
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            subprocess.run(["sync"], check=True)
            file.write("1\n")
    except OSError:
        print("cold cache: not measured (it cannot be dropped here)")
        return
    ours, theirs = [], []
    for _ in range(3):
        for argv, to in (([DEPUTY, "-C", folder, "search", query, "--path", "**/*"], ours), (["rg", "-n", "-i", "|".join(words(query)), folder], theirs)):
            with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
                file.write("1\n")
            to.append(timed(argv, env)[0])
    print(f"cold cache: {statistics.median(ours):.0f} ms, ripgrep {statistics.median(theirs):.0f} ms")


def search_lane(_space, env):
    for name, queries in QUERIES.items():
        folder = extract(name)
        if not folder:
            print(f"search: {name} is not in {shared('')}: not measured\n")
            continue
        kept, served, index, rows, size, resident, built = measure(folder, queries, env)
        print_rows(name, rows, built)
        bandwidth(kept, size, queries["no hit"])
        edits(kept, folder, queries["1 rare"])
        print(f"resident: {resident / 1e6:.0f} MB for {size / 1e6:.1f} MB of files: {resident / size:.2f}")
        for process in (kept, served, index):
            process.end()
        first_search(folder, env, queries["4 terms"])
        if os.environ.get("DEPUTY_BENCH_COLD"):
            cold(folder, env, queries["4 terms"])
        else:
            print("cold cache: not measured (DEPUTY_BENCH_COLD=1 drops the page cache of the whole machine)")
        print()
