"""The same job by other agent programs: a task whose model calls N tools that read a file, against the local model server (stub.c),
with nothing reachable but that server. Each is taken from PATH, else installed from npm below build/hosts, in the version named here;
one that cannot run is skipped with its reason. Settings, home and keys are made for the run and say nothing real."""

import json
import os
import shutil
import statistics
import subprocess
import threading
import time

from delegations import configure, floor_command, task, workspace
from measuring import DEPUTY, HELPERS, Stub

TURNS = 10
ROUNDS = 5
LIMIT = 120  # seconds; only a hang reaches it
FOLDER = "build/hosts"
AGENT = "reader"
# What asks for anything but the local server is refused at once.
OFFLINE = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def claude(_home, url):
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}


def codex(home, url):
    write(home, ".codex/config.toml", f'model = "stub-model"\nmodel_provider = "stub"\n[model_providers.stub]\nname = "stub"\n'
                                      f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "BENCH_KEY"\n')
    return {"CODEX_HOME": f"{home}/.codex"}


def gemini(home, url):
    write(home, ".gemini/settings.json", json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}},
                                                     "general": {"disableAutoUpdate": True}, "telemetry": {"enabled": False}}))
    return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}


def opencode(home, url):
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    write(home, ".config/opencode/opencode.json", json.dumps({"autoupdate": False, "share": "disabled", "provider": {
        "anthropic": {"options": options, "models": {"stub-model": {"name": "stub"}}}}}))
    return {"OPENCODE_DISABLE_MODELS_FETCH": "1"}


# Name, npm package, version, settings, arguments before the task.
HOSTS = (
    ("claude", "@anthropic-ai/claude-code", "2.1.332", claude, ["--model", "stub-model", "--allowedTools", "Read", "-p"]),
    ("codex", "@openai/codex", "0.171.0", codex, ["exec", "--skip-git-repo-check", "-s", "danger-full-access"]),
    ("gemini", "@google/gemini-cli", "0.61.0", gemini, ["--skip-trust", "-m", "stub-model", "-p"]),
    ("opencode", "opencode-ai", "1.18.33", opencode, ["run", "-m", "anthropic/stub-model"]),
)


def find(name, package, version):
    """The program, or None and why not."""
    if shutil.which(name):
        return shutil.which(name), ""
    prefix = os.path.abspath(os.path.join(FOLDER, f"{name}-{version}"))
    program = os.path.join(prefix, "node_modules", ".bin", name)
    if os.path.exists(program):
        return program, ""
    if not shutil.which("npm"):
        return None, "not on PATH, and npm is not there to install it"
    os.makedirs(prefix, exist_ok=True)
    run = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", prefix, f"{package}@{version}"], capture_output=True, text=True)
    if run.returncode or not os.path.exists(program):
        return None, f"npm cannot install {package}@{version}: {(run.stderr.strip().splitlines() or ['?'])[-1]}"
    return program, ""


def tree_kib(root):
    """Memory of a process and all below it: shared pages are divided among those that share them."""
    parents, total = {}, 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    family = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        if not more:
            break
        family |= more
    for pid in family:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except (OSError, ProcessLookupError):
            pass
    return total, len(family)


def family_peak(argv, env, cwd):
    """Peak MiB of the whole family of processes, and how many there were at most, looked at every 10 ms: a short one is missed."""
    peak = most = 0
    process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    timer = threading.Timer(LIMIT, process.kill)
    timer.start()
    while process.poll() is None:
        kib, count = tree_kib(process.pid)
        peak, most = max(peak, kib), max(most, count)
        time.sleep(0.01)
    timer.cancel()
    return peak / 1024, most


def measured(argv, env, cwd):
    run = subprocess.run([f"{HELPERS}/measure", *argv], env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
    return json.loads(run.stdout)


def rehearse(argv, env, cwd, stub, turns):
    """Runs it once; why it cannot be compared, or empty. Also the bytes of the requests that it sent."""
    try:
        run = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
    except (OSError, subprocess.TimeoutExpired) as fault:
        return str(fault), []
    rows = stub.log()
    if run.returncode:
        said = (run.stderr + run.stdout).decode("utf-8", "replace").strip().splitlines()
        return f"exit {run.returncode}: {(said or ['nothing said'])[-1][:160]}", rows
    if sum(bool(row["tool"]) for row in rows) != turns:
        return f"{turns} tool turns were asked for, it made {sum(bool(row['tool']) for row in rows)}", rows
    return "", rows


def candidates(folder, env, space, stub):
    """Name → (environment, command of a number of turns)."""
    ret = {"deputy": (env, lambda turns: [DEPUTY, "-C", space, "run", AGENT, task(turns)])}
    for name, package, version, settings, before in HOSTS:
        program, why = find(name, package, version)
        if not program:
            print(f"{name}: skipped: {why}")
            continue
        home = os.path.join(folder, f"home-{name}")
        os.makedirs(home)
        own = {"HOME": home, "PATH": env["PATH"], "LC_ALL": "C.UTF-8", "BENCH_KEY": "none", "TERM": "dumb"} | OFFLINE | settings(home, stub.url)
        ret[name] = own, lambda turns, argv=(program, *before): [*argv, task(turns)]
    return ret


def hosts(_space, env):
    env = env | {"BENCH_KEY": "bench-key-of-no-service"}
    space = workspace(env["HOME"], env)
    subprocess.run([DEPUTY, "-C", space, "new", AGENT, "--tools", "read", "--description", "Reads the manual", "--prompt", "Read, then answer."],
                   env=env, check=True, stdout=subprocess.DEVNULL)
    print(f"hosts: the same job by other programs, 0 and {TURNS} turns that read a file, {ROUNDS} interleaved rounds, medians")
    with Stub(env["HOME"], "--file", os.path.join(space, "docs", "manual.md")) as stub:
        configure(env, stub.url)
        commands, sent = {}, {}
        for name, (own, command) in candidates(env["HOME"], env, space, stub).items():
            for turns in (0, TURNS):
                why, rows = rehearse(command(turns), own, space, stub, turns)
                if why:
                    print(f"{name}: skipped: {why}")
                    commands = {key: value for key, value in commands.items() if key[0] != name}
                    break
                commands[name, turns] = command(turns), own
                sent[name, turns] = len(rows), sum(row["body"] for row in rows)
                if name == "deputy":
                    sizes = [row["body"] for row in rows]
                    commands["floor", turns] = floor_command(stub, env, turns, sizes, 0), env
                    sent["floor", turns] = sent[name, turns]
        report(commands, sent, space)


def report(commands, sent, space):
    samples = {key: [] for key in commands}
    ours = [key for key in commands if key[0] in ("deputy", "floor")]
    # In two groups: what a large program leaves to be written would be in the way of the syncs of a small one.
    for group in (ours, [key for key in commands if key not in ours]):
        for _ in range(ROUNDS):
            for key in group:
                row = measured(*commands[key], space)
                samples[key].append((row["wall"], row["cpu"], row["peak"]))
    print(f"{'':14}{'turns':>6}{'wall ms':>10}{'cpu ms':>10}{'largest':>10}{'family':>9}{'processes':>11}{'requests':>10}{'KiB sent':>10}{'wall / deputy':>15}")
    medians = {key: [statistics.median(column) for column in zip(*rows)] for key, rows in samples.items()}
    for (name, turns), (wall, cpu, largest) in medians.items():
        family, most = family_peak(*commands[name, turns], space)
        requests, size = sent[name, turns]
        ratio = wall / medians["deputy", turns][0]
        print(f"{name:14}{turns:6}{wall:10.1f}{cpu:10.1f}{largest / 1024:10.1f}{family:9.1f}{most:11}{requests:10}{size / 1024:10.1f}{ratio:15.1f}")
    for name in dict.fromkeys(name for name, _ in medians):
        wall, cpu, _ = ((b - a) / TURNS for a, b in zip(medians[name, 0], medians[name, TURNS]))
        print(f"{name:14}  each tool turn: {wall:.2f} ms wall, {cpu:.2f} ms CPU")
    print("largest: MiB resident of the largest process; family: of all its processes at once, what they share counted once\n")
