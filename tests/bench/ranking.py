"""Ranking: answers the query sets of ../shared/search and says how far up the right section stands.

Rows are split by an even hash of the query: one half is for tuning, the other is held out. The difference to the run before is
paired by query; it says little below two standard errors. Queries are fed alone: the rows' paths stay here.
"""

import json
import math
import os
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor

from measuring import HELPERS

SHARED = os.path.join(os.environ.get("DEPUTY_SHARED", "../shared"), "search")
BUILD = "build/ranking"
CORPORA = {"qen": "en-docs", "qzh": "zh-docs", "qcm": "zh-cmrc", "qja": "ja-squad"}
SETS = {"en_links": "qen", "en_faq": "qen", "zh_links": "qzh", "zh_faq": "qzh", "zh_cmrc": "qcm", "ja_jsquad": "qja", "en_typo": "qen",
        "en_typo, unedited": "qen"}


def unpack():
    for root, archive in CORPORA.items():
        if os.path.isdir(f"{BUILD}/{root}"):
            continue
        whole = subprocess.run(["zstd", "-dc", f"{SHARED}/{archive}.tar.zst"], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "xC", BUILD], input=whole, check=True)


def rows_of(name):
    with open(f"{SHARED}/{name.split(',')[0]}.jsonl", encoding="utf8") as lines:
        rows = [json.loads(line) for line in lines]
    if name.endswith("unedited"):
        return [row | {"query": row["clean"], "edited": row["query"]} for row in rows]
    return rows


def place(row, hits):
    """Of the first hit within the right section; lines that quote the query are taken out. 0: not there."""
    dropped = {(path, line) for path, line in row["exclude"]}
    kept = [hit for hit in hits if (hit["path"], hit["line"]) not in dropped]
    for at, hit in enumerate(kept, 1):
        if hit["path"] == row["path"] and row["line_start"] <= hit["line"] <= row["line_end"]:
            return at
    return 0


def answer(name):
    rows = rows_of(name)
    asked = f"{BUILD}/{name.replace(', ', '_')}.queries"
    with open(asked, "w", encoding="utf8") as out:
        out.writelines(json.dumps({"query": row["query"]}, ensure_ascii=False) + "\n" for row in rows)
    run = subprocess.run(["nice", f"{HELPERS}/search_eval", f"{BUILD}/{SETS[name]}", asked, "50"], capture_output=True, check=True)
    answers = [json.loads(line) for line in run.stdout.decode("utf8").splitlines()]
    places = [(row.get("edited", row["query"]), place(row, hits["hits"])) for row, hits in zip(rows, answers, strict=True)]
    return places, run.stderr.decode().strip().splitlines()[-1]


def is_held_out(query):
    return zlib.crc32(query.encode("utf8")) % 2 == 1


def reciprocal(at):
    return 1 / at if 0 < at <= 10 else 0


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0


def paired(now, before):
    """Mean difference and how many of its standard errors that is."""
    if not before or [query for query, _ in before] != [query for query, _ in now]:
        return "-"
    by = [reciprocal(at) - reciprocal(was) for (_, at), (_, was) in zip(now, before, strict=True)]
    error = math.sqrt(mean(d * d for d in by) / len(by))
    up, down = sum(d > 0 for d in by), sum(d < 0 for d in by)
    return f"{mean(by):+.3f} ({mean(by) / error if error else 0:+.1f} se, {up} up, {down} down)"


def ranking(_space, _env):
    if not os.path.isdir(SHARED):
        print(f"ranking: {SHARED} is not there: not measured\n")
        return
    os.makedirs(BUILD, exist_ok=True)
    unpack()
    before = {}
    if os.path.exists(f"{BUILD}/last.json"):
        with open(f"{BUILD}/last.json", encoding="utf8") as file:
            before = json.load(file)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(SETS, pool.map(answer, SETS), strict=True))
    print(f"ranking: right section{'MRR@10 tune':>18}{'held':>7}{'all':>7}{'R@10':>7}{'R@50':>7}   against the run before")
    for name, (places, _) in found.items():
        halves = [mean(reciprocal(at) for query, at in places if is_held_out(query) == held) for held in (False, True)]
        whole = mean(reciprocal(at) for _, at in places)
        at10, at50 = (mean(0 < at <= n for _, at in places) for n in (10, 50))
        earlier = [tuple(pair) for pair in before.get(name, [])]
        print(f"{name:24}{halves[0]:16.3f}{halves[1]:7.3f}{whole:7.3f}{at10:7.3f}{at50:7.3f}   {paired(places, earlier)}")
    typo, clean = (mean(reciprocal(at) for _, at in found[name][0]) for name in ("en_typo", "en_typo, unedited"))
    print(f"misspelt relative to unedited: {100 * typo / clean if clean else 0:.1f} %")
    for name, (_, times) in found.items():
        print(f"  {name}: {times}")
    print()
    with open(f"{BUILD}/last.json", "w", encoding="utf8") as file:
        json.dump({name: places for name, (places, _) in found.items()}, file, ensure_ascii=False)
