"""The five-minute tour of README.md: every command of it is taken from there and typed, in a home of its own. The language
model is the scripted server; everything else is as a new user has it."""

import re
import shlex
import sys

sys.dont_write_bytecode = True
from lib.deputy import FINE, ROOT, calls, main, says  # noqa: E402


FENCE = re.compile(r"```text\n(.*?)```", re.S)  # what a command prints


def tour():
    return (ROOT / "README.md").read_text(encoding="utf-8").split("## Five minutes")[1].split("\n## ")[0]


def commands():
    """The indented lines of the section, without their remarks."""
    return [re.sub(r"\s+# .*", "", line.strip()) for line in re.findall(r"^    (\S.*)$", FENCE.sub("", tour()), re.M)]


def test_tour(box):
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):  # the README speaks of ~/.config and ~/.local
        del box.env[name]
    box.config = box.home / ".config"
    project = box.home / "my-project"
    box.write("docs/keys.md", "# Signing keys\n\n## Rotation\nRotate the signing keys every ninety days.\n", project)
    where, env, seen = box.home, {}, []
    reply = [calls("kb_search", {"query": "days"}), says("You get the price back.")]
    typed = commands()
    box.check("the section has its commands", len(typed) >= 15, typed)
    with box.server([says("ready"), *reply, *reply], repeat=True) as server:
        (box.home / ".config/deputy/config.yaml").unlink()
        for command in typed:
            words = [w.replace("~", str(box.home)) for w in shlex.split(command)]
            if words[0] == "cd":
                where = box.home / words[1]
            elif words[0] == "export":
                name, _, value = words[1].partition("=")
                env[name] = value if value != "..." else "sk-test"
            elif words[0] == "deputy":
                words = words[1:]
                answer = box.run(*words, cwd=where, env=env)
                box.exits(command, answer, FINE)
                seen.append((command, answer))
                if words[:2] == ["models", "add"]:
                    box.run("config", "set", "providers.anthropic.url", f"http://127.0.0.1:{server.port}", cwd=where, env=env)
            else:
                box.check(f"a command that this test knows: {command}", False)
        requests = server.requests()
    by_command = dict(seen)
    offline = by_command['deputy run customer-service "refund for a used appliance"']
    box.check("the first answer quotes the manual, with path:line", re.search(r"docs/\S+\.md:\d+", offline.out), offline)
    printed = FENCE.findall(tour())
    box.check("and is what the page prints of it", printed and all(p in offline.out for p in printed), offline)
    box.check("what is not yet there is said by show", "crm" in by_command["deputy show customer-service"].out)
    drafted = [a for c, a in seen if c.startswith("deputy run customer-service") and "price back" in a.out]
    box.check("the connected model drafts an answer", drafted and len(requests) >= 3, requests[-1:] if requests else seen[-1])
    box.check("the last question finds the project's page", any("docs/keys.md" in a.out or "price back" in a.out
              for c, a in seen if c.startswith("deputy run handbook")))
    listed = by_command["deputy agents"].out
    named = re.findall(r"^\| `([a-z-]+)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    box.check("the page names the bundled definitions", named and all(n in listed for n in named), listed)


def test_dev_run_and_page_agree(box):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```yaml\n(.*?)```", page, re.S)[1]
    box.write("example.yaml", example)
    check = box.run("check", "example.yaml", "--json")
    errors = [d for d in check.json()["diagnostics"] if d["severity"] == "error"]
    box.check("the definition on the page is sound", not errors, check)


if __name__ == "__main__":
    main(globals())
