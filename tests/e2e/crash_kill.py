"""The program is killed at random moments, and nothing that it had handed over is gone.

Each round starts one process or several that run delegations against a scripted server (text and thinking in small pieces, calls
of several tools, main agents that delegate, workers in the background where there are such), kills some or all of them with
SIGKILL, and looks from other processes. What must hold, and what exactly may be missing, stands at `judge_stream`.

DEPUTY_CRASH_ROUNDS (40 here, 500 for the whole) says how many are killed, DEPUTY_SEED at which moments; both are printed, and so
are the figures of what was seen.
"""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
from lib.deputy import FINE, calls, main, says  # noqa: E402

KILLS = int(os.environ.get("DEPUTY_CRASH_ROUNDS") or 40)
SEED = int(os.environ.get("DEPUTY_SEED") or 20261130)
ROUNDS_A_STATE = 20  # a state directory that grows on and on would be slow to look through
LONGEST = 0.3  # seconds until the kill
BATCH_ITEMS = 64  # DELEGATE_BATCH_ITEMS
GATHERED = 3  # text and thinking that streamed become items with the batch, and a note of the loop waits for the next
PATIENCE = 60
OPEN = ("queued", "running", "waiting")


# --- What the server says

def task(agent, text, **more):
    return {"agent": agent, "task": text, "description": "d", **more}


def some_reply(rng, n):
    """An answer that keeps a delegation busy for a moment; several ask at the same time, so each may get any of them."""
    words = "".join(f"{n}.{i} " for i in range(rng.randrange(2, 60)))
    pace = {"piece": rng.choice([3, 9, 40]), "write_bytes": rng.choice([90, 200, 900]), "delay_ms": rng.choice([0, 0, 1, 4, 12])}
    thinking = [{"type": "thinking", "thinking": f"I think {words}", "signature": "s"}] if rng.random() < 0.4 else []
    kind = rng.randrange(14)
    if kind < 3:
        return {"blocks": [*thinking, {"type": "text", "text": words}], **pace}
    if kind < 7:
        return {**calls("read", {"path": "big.txt", "offset": n + 1, "limit": rng.choice([1, 20, 1500])}, text=words), **pace}
    if kind == 7:
        return {**calls("memory_write", {"content": f"note {words}"}, text=words), **pace}
    if kind == 8:
        globs = [{"type": "tool_use", "id": f"t{i}", "name": "glob", "input": {"pattern": f"{n}-{i}*"}} for i in range(40)]
        return {"blocks": [*thinking, *globs], **pace}
    if kind in (9, 12):
        return {**calls("Task", task("one", f"sub {n}", background=True), text=words), **pace}
    if kind in (10, 13):
        both = [{"type": "tool_use", "id": f"t{i}", "name": "Task", "input": task("two", f"sub {n} {i}")} for i in range(2)]
        return {"blocks": [*thinking, *both], **pace}
    return {**calls("TaskWait", {"timeoutSeconds": 1}, text=words), **pace}


# --- Processes

class Run:
    """A process that was started, with what it has streamed to a file."""

    def __init__(self, box, where, n, argv):
        self.word, self.out = f"crash-{n}", where / f"{n}.out"
        self.is_background = "--background" in argv
        with self.out.open("wb") as out:
            self.process = subprocess.Popen([box.deputy, *argv, self.word], cwd=box.ws, env=box.environment({}), stdout=out,
                                            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.killed = False

    def lines(self):
        """Whole lines only: the last may be half written."""
        return self.out.read_bytes().split(b"\n")[:-1]

    def stream(self):
        """The activity items in order, and the report as it was printed, or None."""
        items, report = [], None
        for line in self.lines():
            value = json.loads(line)
            if "kind" in value:
                items.append(value)
            else:
                report = line
        return items, report

    def kill(self):
        self.killed = self.process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def processes_of(box):
    """Every living process that was given the state of this box: also workers that have left their group."""
    mark, found = f"XDG_STATE_HOME={box.env['XDG_STATE_HOME']}".encode(), []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def kill_the_rest(box):
    """Those that processes of this box have started for themselves; how many there were."""
    deadline, all = time.monotonic() + PATIENCE, set()
    while (left := processes_of(box)) and time.monotonic() < deadline:
        all |= set(left)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    return len(all)


# --- The loop

class Loop:
    def __init__(self, box, rng):
        self.box, self.rng, self.n = box, rng, 0
        self.delivered = {}  # id: the report object as it was printed; of this state directory
        self.bad = []
        self.figures = dict.fromkeys(("killed", "survived", "rows", "interrupted", "ended", "delivered", "items", "missing",
                                      "most missing", "to main agents", "never begun", "untaken"), 0)

    def must(self, what, condition, detail=""):
        if not condition:
            self.bad.append(f"{what}: {detail}")
        return condition

    def new_state(self):
        self.box.env["XDG_STATE_HOME"] = str(self.box.top / f"state{self.n}")
        self.state = Path(self.box.env["XDG_STATE_HOME"]) / "deputy"
        self.delivered = {}

    def start(self, *argv):
        self.n += 1
        return Run(self.box, self.box.tmp, self.n, list(argv))

    def sql(self, text, *values):
        if not (self.state / "deputy.db").exists():
            return []
        with contextlib.closing(sqlite3.connect(self.state / "deputy.db", timeout=30)) as db:
            made = db.execute("PRAGMA user_version").fetchone()[0]  # else killed while it was being made
            return db.execute(text, values).fetchall() if made else []

    def round(self, has_background, fresh):
        """Starts some, waits a random moment, kills all or some; fresh: while the state is being made."""
        rng = self.rng
        kind = rng.choice(["one", "one", "several", "several", "main", "main", "background" if has_background else "main"])
        if kind == "one":
            runs = [self.start("run", "one", "--events")]
        elif kind == "several":
            runs = [self.start("run", rng.choice(["one", "two"]), "--events") for _ in range(rng.randrange(2, 5))]
        elif kind == "main":
            runs = [self.start("run", "main", "--events")]
        else:
            runs = [self.start("run", "one", "--background"), self.start("run", "one", "--events")]
        if fresh:
            time.sleep(rng.random() * 0.05)
        else:
            self.wait(runs)
        survivors = runs[1:] if kind == "several" and rng.random() < 0.5 else []
        for run in runs:
            if run not in survivors:
                run.kill()
        if survivors:
            self.judge_living(runs, survivors)
        if kind == "background":
            self.figures["killed"] += kill_the_rest(self.box)
        self.judge(runs, kind)

    def wait(self, runs):
        """A random time, mostly after something was streamed: the beginning is short, and the rest is what this is about."""
        bytes = self.rng.choice([0, 1, 1, 900, 4000, 12000, 40000])
        deadline = time.monotonic() + PATIENCE
        while sum(r.out.stat().st_size for r in runs) < bytes and time.monotonic() < deadline:
            if all(r.process.poll() is not None for r in runs):
                return
            time.sleep(0.001)
        time.sleep(self.rng.random() ** 2 * LONGEST)

    def judge_living(self, runs, survivors):
        """While others run on: what the dead ones left is ended, and nothing of the living ones is touched."""
        looked = self.box.run("tasks", "--json")
        self.must("looking works, and for writing", looked.code == FINE and not looked.err, looked)
        left = [row for r in runs if r not in survivors
                for row in self.sql("SELECT id, status FROM delegations WHERE task = ? AND ended_ms = 0", r.word)]
        self.must("a dead one is ended", not left, left)
        for run in survivors:
            for status, reason, run_id in self.sql("SELECT status, end_reason, run_id FROM delegations WHERE task = ?", run.word):
                self.must("a living one is never marked", status != "interrupted", (run.word, reason))
                living = run.process.poll() is None
                self.must("its lock stays", not living or status not in OPEN or (self.state / "run" / run_id).exists(), run.word)
        for run in survivors:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.process.wait(self.rng.random() * 1.5)
            self.figures["survived"] += run.process.poll() is not None
            run.kill()

    def judge(self, runs, kind):
        """Everything is dead now."""
        listed = self.box.run("tasks", "--json", "--limit", "10000")
        self.must("tasks", listed.code == FINE, listed)
        self.figures["killed"] += sum(r.killed for r in runs)
        if kind == "background":
            self.untaken()
        left = self.sql("SELECT id, status, task FROM delegations WHERE ended_ms = 0")
        self.must("nothing stays queued or running", not left, left)
        self.must("nothing listed does", all(r["status"] not in OPEN for r in listed.json()) or kind == "background", listed)
        self.must("nothing is left of the dead", [p.name for p in self.state.glob("run/*")] == [], list(self.state.glob("run/*")))
        self.must("no command is left", self.sql("SELECT * FROM commands") == [])
        self.must("the database is whole", self.sql("PRAGMA integrity_check") in ([("ok",)], []))
        for run in runs:
            self.judge_run(run)
        self.judge_deliveries()
        for id, report in self.sql("SELECT id, report FROM delegations"):
            wanted = self.delivered.get(id)
            self.must("a report that was handed over", wanted is None or report.encode() == wanted, id)
        known = {id for id, in self.sql("SELECT id FROM delegations")}
        self.must("every row that was handed over", set(self.delivered) <= known, set(self.delivered) - known)

    def untaken(self):
        """Whoever ordered it was killed before a worker took it: it waits its time, and ends."""
        waiting = self.sql("SELECT id FROM delegations WHERE ended_ms = 0 AND run_id = '' AND status = 'queued'")
        if not waiting:
            return
        with contextlib.closing(sqlite3.connect(self.state / "deputy.db")) as db, db:
            db.execute("UPDATE delegations SET created_ms = created_ms - 60001 WHERE ended_ms = 0 AND run_id = ''")
        self.box.run("tasks")
        for id, in waiting:
            self.must("its end says so", self.sql("SELECT status, end_reason FROM delegations WHERE id = ?", id)
                      == [("interrupted", "no process took it")], id)
        self.figures["untaken"] += len(waiting)

    def judge_run(self, run):
        rows = self.sql("SELECT id, status, end_reason FROM delegations WHERE task = ?", run.word)
        streamed, printed = ([], None) if run.is_background else run.stream()
        self.must("one row each", len(rows) <= 1, rows)
        if not rows:
            self.must("what was streamed has a row", not streamed and not printed, run.word)
            self.figures["never begun"] += 1
            return
        id, status, reason = rows[0]
        shown = self.box.run("replay", id, "--json")
        if not self.must("replay", shown.code == FINE, shown):
            return
        replay = shown.json()
        self.figures["rows"] += 1
        self.figures["interrupted" if status == "interrupted" else "ended"] += 1
        self.must("it has a report", isinstance(replay["report"], dict) and replay["report"]["status"] == status, replay)
        reasons = ["process died", "no process took it"] if run.is_background else ["process died"]
        self.must("and says why it ended", status != "interrupted" or reason in reasons, reason)
        self.judge_words(replay)
        if printed:
            self.delivered[id] = printed
            self.figures["delivered"] += 1
            self.must("the report is byte for byte what was printed", b'"report":' + printed in shown.raw.replace(b"\n", b""), id)
        if not run.is_background:
            self.judge_stream(id, status, streamed, replay["activity"])

    def judge_stream(self, id, status, streamed, stored):
        """The items that were streamed and those that are stored. A kill of the process takes nothing that the kernel has, so:
        what is stored is the beginning of what was streamed, and at most the one batch that was not written yet is missing;
        an item is streamed when it is made, a batch is written when it has 64 items or its first one is 250 ms old. The two
        items of a status are the other way round: stored, then streamed, so that one of them may be stored and not streamed."""
        n = min(len(streamed), len(stored))
        self.must("what is stored was streamed", streamed[:n] == stored[:n], (id, streamed[:n], stored[:n]))
        extra, missing = stored[n:], streamed[n:]
        self.must("only a status is stored and not streamed", [i["kind"] for i in extra] in ([], ["status"]), (id, extra))
        self.must("what has ended has all of it", status == "interrupted" or not missing, (id, missing))
        self.must("at most a batch is missing", len(missing) <= BATCH_ITEMS + GATHERED, (id, len(missing)))
        # The times of items are whole seconds: two of one batch differ by one at most.
        times = [time.mktime(time.strptime(i["at"], "%Y-%m-%dT%H:%M:%SZ")) for i in missing[:-GATHERED]]
        self.must("and of one moment", not times or times[-1] - times[0] <= 1, (id, times))
        self.figures["items"] += len(streamed)
        self.figures["missing"] += len(missing)
        self.figures["most missing"] = max(self.figures["most missing"], len(missing))

    def judge_words(self, replay):
        """The report of an interrupted one holds the text of the last turn that had any, as far as it is stored."""
        if replay["status"] != "interrupted":
            return
        text, fresh = "", False
        for item in replay["activity"]:
            if item["kind"] == "turn":
                fresh = True
            elif item["kind"] == "text":
                text, fresh = ("" if fresh else text) + item["text"], False
        self.must("its report has the text that is stored", replay["report"]["report"] == text, (replay["report"], text))

    def judge_deliveries(self):
        """A report is marked as delivered exactly when a message of the main agent that got it is stored."""
        for id, thread, at in self.sql("SELECT id, thread, delivered_ms FROM delegations WHERE main = 0 AND thread <> ''"):
            carried = self.sql("SELECT count(*) FROM messages AS m JOIN delegations AS d ON d.id = m.delegation_id WHERE "
                               "d.thread = ? AND d.main = 1 AND m.data LIKE ?", thread, f'%<delegation id=\\"{id}%')[0][0]
            self.must("delivered with its message, or not at all", (at > 0) == (carried > 0), (id, at, carried))
            self.figures["to main agents"] += at > 0


def prepared(box):
    box.write("big.txt", ("needle " * 12 + "\n") * 1600)
    for name in ("one", "two"):
        box.agent(name, "tools: [read, glob, grep]\nmemory: private\nmaxTurns: 12\n", layer="system")


def background_is_there(box):
    """The verb may be of a later version; a task that cannot be run tells."""
    return "not yet" not in box.run("run", "nobody", "x", "--background").err


def test_kills_at_random_moments(box):
    rng = random.Random(SEED)
    prepared(box)
    loop = Loop(box, rng)
    has_background = background_is_there(box)
    began = time.monotonic()
    with box.server([some_reply(rng, n) for n in range(400)], repeat=True):
        rounds = 0
        while loop.figures["killed"] < KILLS and not loop.bad:
            fresh = rounds % ROUNDS_A_STATE == 0 or rng.random() < 0.1
            if fresh:
                loop.new_state()
            loop.round(has_background, fresh)
            rounds += 1
    kill_the_rest(box)
    box.check(f"{loop.figures['killed']} kills of DEPUTY_SEED={SEED}", not loop.bad, "\n".join(loop.bad))
    print(f"        {rounds} rounds in {time.monotonic() - began:.1f} s: {', '.join(f'{v} {k}' for k, v in loop.figures.items())}")
    temporary = [p for p in box.ws.rglob("*") if p.name.endswith(".tmp")]
    notes = [p for p in box.ws.rglob("*.md")]
    box.check("notes are whole", all(p.read_text().startswith("<!-- deputy:") and p.read_bytes().endswith(b"\n") for p in notes), notes)
    print(f"        {len(notes)} files of notes, {len(temporary)} half-written ones beside them")


def test_looking_disturbs_nobody(box):
    """Whoever looks marks what the dead left, at the very moment when others begin and end: none of these is taken for dead."""
    box.agent("one", "tools: [glob]\n", layer="system")
    begun, ended, codes, stale = [], [], set(), []
    with box.server([calls("glob", {"pattern": "*"}), {**says("the end"), "piece": 1, "write_bytes": 60, "delay_ms": 2}], repeat=True):
        while len(ended) < 24:
            while len(begun) - len(ended) < 6:
                begun.append(box.start("run", "one", f"x{len(begun)}", "--json"))
            killed = box.start("run", "one", "killed", "--events")
            while b'"turn"' not in killed.stdout.readline():
                pass
            os.killpg(killed.pid, signal.SIGKILL)
            killed.communicate()
            lookers = [box.start("tasks", "--json") for _ in range(3)]
            for looker in lookers:
                seen = json.loads(looker.communicate(timeout=PATIENCE)[0])
                codes.add(looker.returncode)
                stale += [r for r in seen if r["task"] == "killed" and r["status"] != "interrupted"]
            ended += [(p, *p.communicate()) for p in begun if p.poll() is not None and not any(p is e[0] for e in ended)]
        ended += [(p, *p.communicate(timeout=PATIENCE)) for p in begun if not any(p is e[0] for e in ended)]
    reports = [json.loads(out) for _, out, _ in ended]
    box.equal("looking always works", codes, {FINE})
    box.equal("and nobody sees a dead one as running", stale, [])
    box.equal("each completed", {(p.returncode, r["status"]) for (p, _, _), r in zip(ended, reports)}, {(FINE, "completed")})
    box.check("and could record everything", not any("stored" in w for r in reports for w in r["warnings"]), reports)
    rows = {r["id"]: r["status"] for r in box.run("tasks", "--json", "--limit", "1000").json()
            if r["task"] != "killed"}
    box.equal("as the others see it", rows, {r["id"]: "completed" for r in reports})
    box.equal("nothing is left of them", list((box.state / "deputy/run").iterdir()), [])


if __name__ == "__main__":
    main(globals())
