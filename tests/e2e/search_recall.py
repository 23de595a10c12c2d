"""Recall: term by term, every line that `rg -uuu -a -iF` finds is found, and what is found beside it is explained by folding.

Needs ripgrep, zstd and the shared corpora; skipped without them.
"""

import json
import os
import shutil
import subprocess
import sys
import unicodedata

DEPUTY = os.environ["DEPUTY"]
SHARED = os.path.join(os.environ.get("DEPUTY_SHARED", "../shared"), "search")
LIMIT = 10000  # what one search gives at most
# Rare and common, at the start, inside and at the end of words, signs, scripts without blanks, two characters and one.
TERMS = {
    "en-docs": ["dumpbin", "milvus", "Registry", "-Credential", "std::vector", "naïve", "(x64)", "nfig", "ConvertTo-Json", "é"],
    "zh-docs": ["聚簇", "事务", "TiKV", "慢查询", "，但", "备份", "region", "（", "ＴｉＤＢ", "索引"],
    "zh-cmrc": ["大学", "公司", "1998", "的人", "，", "北京"],
    "ja-squad": ["日本", "する", "カタ", "、", "2001", "政府"],
}


def skip(why):
    print(why)
    sys.exit(77)


def fold(text):
    return "".join(c for c in unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))


def lines_of(root, found):
    cache = {}
    for path, line in found:
        if path not in cache:
            with open(os.path.join(root, path), "rb") as file:
                cache[path] = file.read().split(b"\n")
        yield path, line, cache[path][line - 1].decode("utf-8", "replace")


def by_ripgrep(root, term):
    run = subprocess.run(["rg", "-uuu", "-a", "-iF", "-n", "-0", "--no-heading", "--", term, "."], cwd=root, stdout=subprocess.PIPE, check=False)
    found = set()
    for row in run.stdout.split(b"\n"):
        path, zero, rest = row.partition(b"\0")
        if zero:
            found.add((os.path.relpath(os.fsdecode(path), "."), int(rest.partition(b":")[0])))
    return found


def check(root, terms):
    rows = "".join(json.dumps({"query": f'"{term}"'}) + "\n" for term in terms)
    # Hidden files too: ripgrep is told to read everything.
    paths = [option for glob in ("**/*", "**/.*", "**/.*/**/*") for option in ("--path", glob)]
    run = subprocess.run([DEPUTY, "-C", root, "search", "--queries", "-", "--json", "--limit", str(LIMIT), *paths],
                         input=rows.encode(), stdout=subprocess.PIPE, check=False)
    compared = 0
    for term, row in zip(terms, run.stdout.decode().splitlines(), strict=True):
        answer = json.loads(row)
        unread = {path for cut in answer["cuts"] for path in cut["paths"]}
        ours = {(hit["path"], hit["line"]) for hit in answer["hits"]}
        theirs = {(path, line) for path, line in by_ripgrep(root, term) if path not in unread}
        total = answer["totals"]["matched_lines"]
        assert total >= len(theirs), f"{root}: {term}: {total} lines, ripgrep has {len(theirs)}"
        if total > LIMIT:
            continue
        assert len(ours) == total, f"{root}: {term}: {len(ours)} hits of {total}"
        assert not theirs - ours, f"{root}: {term}: not found: {sorted(theirs - ours)[:3]}"
        for path, line, text in lines_of(root, ours - theirs):
            assert fold(term) in fold(text), f"{root}: {term}: {path}:{line} does not hold it: {text[:200]}"
        compared += len(theirs)
    return compared


def main():
    if not shutil.which("rg") or not shutil.which("zstd"):
        skip("ripgrep or zstd is not installed")
    if not os.path.isdir(SHARED):
        skip(f"{SHARED} is not there")
    for name, terms in TERMS.items():
        root = os.path.join(os.environ["TMPDIR"], name)
        os.mkdir(root)
        subprocess.run(["tar", "--zstd", "-xf", os.path.abspath(os.path.join(SHARED, name + ".tar.zst"))], cwd=root, check=True)
        compared = check(root, terms)
        print(f"{name}: {compared} lines found by both")
        assert compared > 100


if __name__ == "__main__":
    main()
