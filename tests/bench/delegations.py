"""Delegations measured beside their floor: a plain libcurl program that sends requests of the same sizes to the same local server
and waits for the disk as often (curl_floor.c). The server (stub.c) plays a model: N turns with a call of read or kb_search, then
a report."""

import json
import os
import subprocess
import sys

from measuring import DEPUTY, HELPERS, ROUNDS, Stub, instructions, interleaved, syncs

TURNS = 10
SCALE = (1, 10, 100, 500)
SLOW_MS = 40  # before each event, some 13 a turn
PAGES = 200
AGENT = "manual"
SUBJECTS = ("refund", "delivery", "label", "appliance", "return", "warranty", "invoice", "repair")


def page(number, paragraphs):
    subject, other = SUBJECTS[number % len(SUBJECTS)], SUBJECTS[(number * 5 + 3) % len(SUBJECTS)]
    text = [f"# Page {number}: {subject} and {other}\n"]
    for i in range(paragraphs):
        text.append(f"## Part {i + 1}\n\nA {subject} of part {i + 1} is settled within {number % 28 + 2} days. The {other} is checked first,\n"
                    f"then form {number}-{i} is filled in and filed with the {SUBJECTS[i % len(SUBJECTS)]} desk.\n"
                    f"Exceptions are named on page {(number * 7 + i) % PAGES}.\n")
    return "\n".join(text)


def task(turns):
    return f"stub:turns={turns} A customer returns an opened appliance after three weeks. Which rule applies, and who pays the delivery?"


def workspace(folder, env):
    """A manual of PAGES small pages and one subagent that searches and reads it."""
    space = os.path.join(folder, "manual")
    for number in range(PAGES):
        path = os.path.join(space, "docs", f"part-{number % 10}", f"page-{number:03}.md")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(page(number, 5))
    with open(os.path.join(space, "docs", "manual.md"), "w", encoding="utf-8") as file:
        file.write(page(PAGES, 20))
    subprocess.run([DEPUTY, "-C", space, "new", AGENT, "--tools", "read", "--knowledge", "docs/**/*.md", "--description",
                    "Answers from the manual", "--prompt", "Search first, then read, then say what you found."],
                   env=env, check=True, stdout=subprocess.DEVNULL)
    return space


def configure(env, url, limits=""):
    path = os.path.join(env["XDG_CONFIG_HOME"], "deputy")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.yaml"), "w", encoding="utf-8") as file:
        file.write(f"model: stub/model\nproviders:\n  stub: {{api: anthropic, url: \"{url}\", key: \"${{BENCH_KEY}}\"}}\n{limits}")


def floor_command(stub, env, turns, sizes, synced, at_once=1):
    return [f"{HELPERS}/curl_floor", "--url", f"{stub.url}/v1/messages", "--turns", str(turns), "--at-once", str(at_once),
            "--sizes", ",".join(map(str, sizes)), "--syncs", str(synced or 0), "--state", env["XDG_STATE_HOME"]]


def sizes_of(stub):
    """Bytes of the request of each turn: the largest that was sent."""
    sizes = {}
    for row in stub.log():
        sizes[row["turn"]] = max(sizes.get(row["turn"], 0), row["body"])
    return [sizes[turn] for turn in sorted(sizes)]


def whole_process(space, env, stub):
    print(f"delegations: `deputy run` as a whole process beside the floor, {ROUNDS} rounds")
    commands, notes = {}, {}
    for turns in (0, TURNS):
        deputy = [DEPUTY, "-C", space, "run", AGENT, task(turns)]
        run = subprocess.run(deputy, env=env, capture_output=True, stdin=subprocess.DEVNULL)
        if run.returncode:
            sys.exit(f"bench: {run.stderr.decode()}")
        sizes = sizes_of(stub)
        if len(sizes) != turns + 1:
            sys.exit(f"bench: {turns} tool turns were asked for, {len(sizes)} requests came")
        notes[turns] = syncs(deputy, env)
        commands["deputy", turns] = deputy
        commands["floor", turns] = floor_command(stub, env, turns, sizes, notes[turns])
        print(f"  {turns} tool turns: requests of {sizes[0]} to {sizes[-1]} bytes, {notes[turns] if notes[turns] is not None else '? (no strace)'} syncs")
    rows = interleaved(commands, env)
    for key, argv in commands.items():
        rows[key].append((instructions(argv, env) or 0) / 1e6)
    print(f"{'':28}{'wall ms':>10}{'cpu ms':>9}{'peak MiB':>10}{'instr M':>10}")
    for (who, turns), (wall, peak, cpu, count) in rows.items():
        print(f"{f'{who}, {turns} tool turns':28}{wall:10.2f}{cpu:9.2f}{peak / 1024:10.2f}{count:10.2f}")
    for who in ("deputy", "floor"):
        wall, peak, cpu, count = ((b - a) / TURNS for a, b in zip(rows[who, 0], rows[who, TURNS]))
        print(f"{f'{who}, each tool turn':28}{wall:10.3f}{cpu:9.3f}{peak / 1024:10.3f}{count:10.3f}")
    for turns in (0, TURNS):
        wall, peak, cpu, count = (b / a if a else 0 for a, b in zip(rows["floor", turns], rows["deputy", turns]))
        print(f"{f'deputy / floor, {turns} turns':28}{wall:10.2f}{cpu:9.2f}{peak:10.2f}{count:10.2f}")
    print()


def in_process(argv, env, stub):
    """A program that prints its own figures as JSON; beside them the CPU that the server took meanwhile."""
    before = stub.stats()
    run = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if not run.stdout.startswith("{"):
        sys.exit(f"bench: {argv[0]} ended with {run.returncode}: {run.stderr}")
    if run.stderr:
        print(f"  {run.stderr.strip()}")
    after = stub.stats()
    return json.loads(run.stdout) | {"stub_cpu": after["cpu"] - before["cpu"], "connections": after["connections"] - before["connections"],
                                     "at_once": after["most_open"]}


def scale_row(who, count, r, synced, kib):
    done = f"{r['completed']:6}{r['lost']:6}" if who == "deputy" else f"{count:6}{0:6}"
    print(f"{f'{who}, {count}':16}{done}{synced if synced is not None else '?':>7}{r['wall']:10.1f}{r['cpu']:10.1f}"
          f"{r['cpu'] * 1000 / (count * (TURNS + 1)):13.1f}{r['peak'] / 1024:10.2f}{f'{kib:.1f}' if count > 1 else '-':>10}"
          f"{r['connections']:13}{r['at_once']:9}{r['stub_cpu']:10.1f}")


def one_scale(space, env, stub, count, known):
    """Deputy and the floor with so many at once. known: count → sizes and syncs, filled by the first."""
    deputy = [f"{HELPERS}/delegations", space, AGENT, task(TURNS), str(count)]
    if count not in known:
        synced = syncs(deputy, env)
        known[count] = sizes_of(stub), synced
    row = in_process(deputy, env, stub)
    if row["completed"] == count and (row["turns"] != count * (TURNS + 1) or row["tool_calls"] != count * TURNS):
        print(f"  {row['turns']} turns and {row['tool_calls']} calls are not those of {count} delegations")
    stub.log()
    bare = in_process(floor_command(stub, env, TURNS, *known[count], count), env, stub)
    stub.log()
    return row, bare


def scale(space, env, stub, known):
    print(f"{'':16}{'done':>6}{'lost':>6}{'syncs':>7}{'wall ms':>10}{'cpu ms':>10}{'us cpu/turn':>13}{'peak MiB':>10}{'KiB each':>10}"
          f"{'connections':>13}{'at once':>9}{'stub cpu':>10}")
    first, each = {}, {}
    for count in SCALE:
        for who, r in zip(("deputy", "floor"), one_scale(space, env, stub, count, known)):
            first.setdefault(who, r)
            kib = (r["peak"] - first[who]["peak"]) / (count - 1) if count > 1 else 0
            each.setdefault(who, {})[count] = r["cpu"] / count, kib
            scale_row(who, count, r, known[count][1], kib)
    print("growth from row to row, of the CPU and of the memory of one delegation; 1.00 is linear")
    for who, rows in each.items():
        steps = []
        for a, b in list(zip(SCALE, SCALE[1:]))[1:]:
            ratios = (y / x if x > 0 else float("nan") for x, y in zip(rows[a], rows[b]))
            steps.append(f"{a} to {b}: " + ", ".join(f"{r:.2f}" for r in ratios))
        print(f"{who:10}{'   '.join(steps)}")
    print()


def delegations(_space, env):
    env = env | {"BENCH_KEY": "bench-key-of-no-service"}
    space, known = workspace(env["HOME"], env), {}
    with Stub(env["HOME"]) as stub:
        configure(env, stub.url)
        whole_process(space, env, stub)
        if not os.path.exists(f"{HELPERS}/delegations"):
            print(f"scale: {HELPERS}/delegations is not built: not measured\n")
            return
        configure(env, stub.url, "limits: {running: 1000}\n")
        print(f"scale: N delegations at once in one process, {TURNS} tool turns each, beside the floor with N at once; a model that answers at once")
        scale(space, env, stub, known)
    with Stub(env["HOME"], "--delay-ms", str(SLOW_MS)) as stub:
        configure(env, stub.url, "limits: {running: 1000}\n")
        print(f"the same with a model that takes {SLOW_MS} ms for each event, so that all wait for it at once")
        scale(space, env, stub, known)
