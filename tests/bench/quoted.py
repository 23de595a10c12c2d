"""Compares what `run` with quote/passages quotes with what `search` finds, on an evaluation set.

  quoted.py PROGRAM CORPUS SET.jsonl [ROWS [anthropic]]

Each row's query (nothing else of the row reaches the program) goes through `run librarian` as one delegation and through `search --queries`.
Printed are MRR@10 and recall@10 of the target section for both; lines in a row's `exclude` are taken out of both rankings first. With
`anthropic` the model is a local server that speaks the Anthropic format and streams its tool calls (tests/support/fake_anthropic.py) instead of quote/passages.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

HEAD = re.compile(r"^(?:(\S.*?):(\d+): |\[\d+\] (.*?):(\d+)(?: |$))")
SERVER = os.path.join(os.path.dirname(__file__), "..", "support", "fake_anthropic.py")


def rank_of(hits, row):
    dropped = {(path, line) for path, line in row["exclude"]}
    place = 0
    for path, line in hits:
        if (path, line) in dropped:
            continue
        place += 1
        if path == row["path"] and row["line_start"] <= line <= row["line_end"]:
            return place
    return None


def summary(ranks):
    found = [rank for rank in ranks if rank and rank <= 10]
    return sum(1 / rank for rank in found) / len(ranks), len(found) / len(ranks)


def start_server(home):
    """A librarian that searches and repeats; returns the process and the settings that name it."""
    script = os.path.join(home, "script.json")
    with open(script, "w", encoding="utf8") as out:
        json.dump({"replies": [{"librarian": True}], "repeat": True}, out)
    server = subprocess.Popen([sys.executable, SERVER, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    port = int(server.stdout.readline().split()[1])
    os.makedirs(os.path.join(home, ".config", "deputy"))
    with open(os.path.join(home, ".config", "deputy", "config.yaml"), "w", encoding="utf8") as out:
        out.write(f"model: local/librarian\nproviders:\n  local: {{api: anthropic, url: 'http://127.0.0.1:{port}', key: '${{LOCAL_KEY}}'}}\n")
    return server


def quoted(program, corpus, env, query):
    run = subprocess.run([program, "-C", corpus, "run", "librarian", "-", "--json"], input=query.encode(), env=env, capture_output=True)
    if run.returncode not in (0, 1):
        sys.exit(run.stderr.decode())
    report = json.loads(run.stdout)["report"]
    matches = (HEAD.match(line) for line in report.splitlines())
    return [(match[1] or match[3], int(match[2] or match[4])) for match in matches if match]


def searched(program, corpus, env, rows):
    lines = "".join(json.dumps({"query": row["query"]}) + "\n" for row in rows)
    run = subprocess.run([program, "-C", corpus, "search", "--agent", "librarian", "--queries", "-", "--limit", "10", "--json"],
                         input=lines.encode(), env=env, capture_output=True)
    answers = [json.loads(line) for line in run.stdout.decode().splitlines()]
    return [[(hit["path"], hit["line"]) for hit in answer["hits"]] for answer in answers]


def main():
    program, corpus, rows_file = sys.argv[1:4]
    rows = [json.loads(line) for line in open(rows_file, encoding="utf8")]
    rows = rows[: int(sys.argv[4])] if len(sys.argv) > 4 else rows
    with tempfile.TemporaryDirectory(prefix="deputy-quoted-") as home:
        env = {"HOME": home, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "LOCAL_KEY": "not-a-key"}
        server = start_server(home) if "anthropic" in sys.argv[4:] else None
        by_search = searched(program, corpus, env, rows)
        by_run = [quoted(program, corpus, env, row["query"]) for row in rows]
        if server:
            server.kill()
            server.wait()
    if len(by_search) != len(rows):
        sys.exit(f"{len(rows)} queries, but {len(by_search)} answers")
    for name, hits in (("search", by_search), ("run, quoted", by_run)):
        mrr, recall = summary([rank_of(h, row) for h, row in zip(hits, rows)])
        print(f"{name:12} {len(rows)} queries  MRR@10 {mrr:.3f}  R@10 {recall:.3f}")
    same = sum(a == b for a, b in zip(by_search, by_run))
    print(f"the same ten lines in the same order: {same} of {len(rows)}")


if __name__ == "__main__":
    main()
