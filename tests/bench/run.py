"""Measures the program and prints each figure beside a peer measured in the same run.

  ./dev bench [startup|definitions|search|ranking|store|stub|delegations|hosts]...   all but ranking and hosts when none is named

Wall times are medians of interleaved rounds (program, peer, program, peer …) on a warm page cache. Instructions come from
callgrind, where valgrind is installed. Peers: an empty C program for start-up, greps and an FTS5 index for search, a plain libcurl program for
delegations, other agent programs (hosts, which npm installs below build/hosts). Nothing here passes or fails.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from delegations import delegations
from hosts import hosts
from measuring import DEPUTY, HELPERS, ROUNDS, instructions, interleaved
from ranking import ranking
from search_lane import search_lane
from stub_lane import stub


def shared_objects(argv, env):
    """Libraries that the loader maps, counted while the program runs."""
    run = subprocess.run(argv, env=env | {"LD_DEBUG": "files"}, stdin=subprocess.DEVNULL, capture_output=True)
    needed = [line for line in run.stderr.decode("utf-8", "replace").splitlines() if "calling init:" in line]
    return len({line.split("calling init:")[1].strip() for line in needed})


def table(rows, env, commands):
    print(f"{'':28}{'wall ms':>10}{'cpu ms':>9}{'peak MiB':>10}{'instr M':>10}{'objects':>9}")
    for name, (wall, peak, cpu) in rows.items():
        count = instructions(commands[name], env)
        shown = f"{count / 1e6:10.2f}" if count else f"{'-':>10}"
        print(f"{name:28}{wall:10.2f}{cpu:9.2f}{peak / 1024:10.2f}{shown}{shared_objects(commands[name], env):9}")
    print()


def startup(space, env):
    print("start-up: one verb as a whole process, beside an empty C program")
    deputy = [DEPUTY, "-C", space]
    commands = {
        "empty C program": [f"{HELPERS}/floor"],
        "version": [DEPUTY, "version"],
        "prompt customer-service": [*deputy, "prompt", "customer-service"],
        "prompt explorer": [*deputy, "prompt", "explorer"],
        "check": [*deputy, "check"],
        "search refund": [*deputy, "search", "refund"],
        "run (quote/passages)": [*deputy, "run", "customer-service", "refund for a used appliance"],
    }
    table(interleaved(commands, env), env, commands)


def definitions(_space, env):
    print("definitions: 1,000 loaded, resolved and assembled in one process")
    rows = [json.loads(subprocess.run([f"{HELPERS}/definitions", "1000"], env=env, capture_output=True, check=True).stdout) for _ in range(ROUNDS)]
    ms = statistics.median(row["ms"] for row in rows)
    print(f"{ms:.1f} ms, {ms:.1f} us each, {rows[0]['peak_kib'] / 1024:.1f} MiB peak\n")


def store(space, env):
    print("store: one connection shared by the threads of a process, on the disk of the temporary folder")
    print(subprocess.run([f"{HELPERS}/store", os.path.dirname(space)], env=env, capture_output=True, text=True, check=True).stdout)


def main():
    wanted = sys.argv[1:] or ["startup", "definitions", "search", "store", "stub", "delegations"]
    known = {"startup": startup, "definitions": definitions, "search": search_lane, "ranking": ranking, "store": store,
             "stub": stub, "delegations": delegations, "hosts": hosts}
    for word in wanted:
        if word not in known:
            sys.exit(f"bench: there are {', '.join(known)}, not {word}")
    with tempfile.TemporaryDirectory(prefix="deputy-bench-") as folder:
        env = {"HOME": folder, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": f"{folder}/state", "XDG_CONFIG_HOME": f"{folder}/config"}
        space = os.path.join(folder, "sample")
        subprocess.run([DEPUTY, "init", "--sample", space], env=env, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([DEPUTY, "-C", space, "run", "customer-service", "refund"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        print(f"{os.cpu_count()} cores, {ROUNDS} rounds, medians; {time.strftime('%Y-%m-%d')}\n")
        for word in wanted:
            known[word](space, env)


if __name__ == "__main__":
    main()
