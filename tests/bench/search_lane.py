"""The lane `search` of ./dev bench: ranked search beside what else reads lines, on the shared corpora.

Every figure is the median of interleaved rounds: one round asks each program once, so that what else the machine does meets
all of them. In-process times are of a program that keeps what it has read; whole requests go through a running
`deputy search --queries -`, JSON in and out; a whole process starts, finds nothing kept, reads, answers and ends. Ratios are to the
faster ripgrep, a whole process as well. What cannot be measured here says so.
"""

import contextlib
import ctypes
import glob
import json
import mmap
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
NO_NEAR = "zx9qjvwk"  # nothing like it is looked for
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


NPM = os.path.join("build", "search-peers")


def npm_ripgrep():
    """ripgrep as npm delivers it; installed below build/ where npm is."""
    def found():
        return glob.glob(os.path.join(NPM, "node_modules", "@vscode", "ripgrep*", "bin", "rg"))
    if not found() and shutil.which("npm"):
        os.makedirs(NPM, exist_ok=True)
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            subprocess.run(["npm", "install", "--prefix", NPM, "--no-audit", "--no-fund", "@vscode/ripgrep"], timeout=120,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return found()[0] if found() else None


def programs():
    """Greps that are here: name → arguments before the pattern."""
    found = {}
    if shutil.which("rg"):
        found["ripgrep"] = ["rg", "-n", "-i", "--no-messages"]
    npm = npm_ripgrep()
    if npm:
        found["ripgrep npm"] = [npm, "-n", "-i", "--no-messages"]
    if shutil.which("ugrep"):
        found["ugrep"] = ["ugrep", "-r", "-n", "-i", "-E"]
    found["GNU grep"] = ["grep", "-r", "-n", "-i", "-E"]
    return found


def words(query):
    return [word for word in query.split() if word not in STOPPED] or query.split()


def ratio(peer, ours):
    return f"{peer / ours:.1f}x" if ours else "-"


OURS = ["in process", "processor", "request", "process"]


def whole_process(folder, query):
    return [DEPUTY, "-C", folder, "search", query, "--path", "**/*", "--limit", "50", "--json"]


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
        times = {name: [] for name in [*OURS, "FTS5", *greps]}
        for _ in range(ROUNDS):
            answer = kept.ask("Q " + query)[0].split()
            times["in process"].append(float(answer[0]))
            times["processor"].append(float(answer[1]))
            size, lines = int(answer[5]), int(answer[4])
            times["request"].append(served.ask(json.dumps({"query": query}))[1])
            times["process"].append(timed(whole_process(folder, query), env)[0])
            times["FTS5"].append(float(index.ask(" ".join(words(query)))[0].split()[0]))
            for name, argv in greps.items():
                times[name].append(timed([*argv, "|".join(words(query)), folder], env)[0])
        rows[label] = {name: statistics.median(all_of) for name, all_of in times.items()} | {"lines": lines}
    return kept, served, index, rows, size, resident, built


def ripgrep(row):
    """The faster one of this row, or None."""
    return min((took for name, took in row.items() if name.startswith("ripgrep")), default=None)


def print_rows(name, rows, built):
    peers = [peer for peer in next(iter(rows.values())) if peer not in (*OURS, "lines")]
    print(f"search: {name}, 50 best lines, milliseconds; FTS5 index built in {built:.0f} ms")
    print(f"{'':18}{'lines':>8}" + "".join(f"{ours:>12}" for ours in OURS) + "".join(f"{peer:>13}" for peer in peers)
          + f"{'ripgrep / in process':>22}{'/ request':>11}{'/ process':>11}")
    for label, row in rows.items():
        grep = ripgrep(row)
        shown = f"{ratio(grep, row['in process']):>22}{ratio(grep, row['request']):>11}{ratio(grep, row['process']):>11}" if grep else "   no ripgrep here"
        print(f"{label:18}{row['lines']:8}" + "".join(f"{row[ours]:12.2f}" for ours in OURS) + "".join(f"{row[peer]:13.1f}" for peer in peers) + shown)
    the, none = rows['"the"']["in process"], rows["no hit"]["in process"]
    print(f'"the" / no hit: {the / none:.2f} (floor 3, aim 2)')
    if ripgrep(next(iter(rows.values()))):
        asked = [rows[label] for label in ("4 terms", "5-term question")]
        print(f"warm, in process: {min(ripgrep(row) / row['in process'] for row in asked):.1f}x (floor 12, aim 20); "
              f"request: {min(ripgrep(row) / row['request'] for row in asked):.1f}x (floor 8, aim 15)")
        first = rows["4 terms"]
        print(f"first search, whole process, nothing kept, page cache warm: {first['process']:.0f} ms, {first['process'] / ripgrep(first):.2f} of ripgrep's time "
              "(floor 1.5, aim 1)")


def bandwidth(folder, size, query, env):
    """Share of what one core reads at most, both on that core by turns, the best of five in a row: the selective scan's bytes a second."""
    kept = Asked(["taskset", "-c", str(min(os.sched_getaffinity(0))), f"{HELPERS}/search_speed", folder], env)
    for _ in range(5):  # until its files are no longer as good as new
        kept.ask("Q " + query)
    shares = []
    for _ in range(ROUNDS):
        best = float(kept.ask(f"R {size}")[0])
        took = min(float(kept.ask("Q " + query)[0].split()[1]) for _ in range(5))
        shares.append((size / took / 1e6 / best, size / took / 1e6, best))
    share, scan, best = sorted(shares)[len(shares) // 2]
    print(f"selective scan (no hit), on one core: {scan:.1f} GB/s of {best:.1f} that it reads: {share * 100:.0f} % (floor 40, aim 75)")
    kept.end()


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
    print(f"one file of all edited: {statistics.median(added):.2f} ms, without an edit {statistics.median(plain):.2f} ms: {statistics.median(added) - statistics.median(plain):.2f} ms more (floor 3, aim 1)")


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def in_memory(fd):
    """Whether the first page is, without asking for it: reading without waiting would have it read."""
    vector = ctypes.create_string_buffer(1)
    place = LIBC.mmap(None, 1, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    if place in (None, ctypes.c_void_p(-1).value):
        return False
    known = LIBC.mincore(place, 1, vector) == 0
    LIBC.munmap(place, 1)
    return not known or bool(vector.raw[0] & 1)


def drop(folder):
    """Takes the corpus out of the page cache; the share that stays there."""
    files = [os.path.join(base, name) for base, _, names in os.walk(folder) for name in names]
    stays = 0
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        stays += in_memory(fd)
        os.close(fd)
    return stays / max(len(files), 1)


def cold(folder, env, query):
    """Without the files' pages; names and inodes stay known."""
    os.sync()
    programs_here = {"deputy": whole_process(folder, query)}
    if shutil.which("rg"):
        programs_here["ripgrep"] = ["rg", "-n", "-i", "--no-messages", "|".join(words(query)), folder]
    times = {name: [] for name in programs_here}
    for _ in range(5):
        for name, argv in programs_here.items():
            if drop(folder) > 0.05:
                print("cold cache: not measured (the files' pages cannot be dropped here)")
                return
            times[name].append(timed(argv, env)[0])
    took = {name: statistics.median(all_of) for name, all_of in times.items()}
    shown = f", ripgrep {took['ripgrep']:.0f} ms: {ratio(took['ripgrep'], took['deputy'])} (floor 1.5, aim 2.5)" if "ripgrep" in took else ""
    print(f"cold cache (pages of the files dropped): {took['deputy']:.0f} ms{shown}")


def search_lane(_space, env):
    for name, queries in QUERIES.items():
        folder = extract(name)
        if not folder:
            print(f"search: {name} is not in {shared('')}: not measured\n")
            continue
        kept, served, index, rows, size, resident, built = measure(folder, queries, env)
        print_rows(name, rows, built)
        edits(kept, folder, queries["1 rare"])
        after = int(kept.ask("M")[0])
        bandwidth(folder, size, NO_NEAR, env)
        print(f"resident: {resident / 1e6:.0f} MB for {size / 1e6:.1f} MB of files: {resident / size:.2f}; after all searches {after / 1e6:.0f} MB: "
              f"{after / size:.2f} (floor 2.5, aim 1.6)")
        for process in (kept, served, index):
            process.end()
        cold(folder, env, queries["4 terms"])
        print()
