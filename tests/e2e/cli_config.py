"""Settings and providers: config get/set/path, models add/use/test, doctor. Keys stay in the environment."""

import stat
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, REFUSED, USAGE, main, says  # noqa: E402

KEY = "sk-canary-0123456789"


def file_of(box):
    return box.config / "deputy/config.yaml"


def test_config(box):
    path = box.run("config", "path")
    box.exits("path", path, FINE, out=str(file_of(box)))
    box.equal("path --json", box.run("config", "path", "--json").json(), str(file_of(box)))
    everything = box.run("config", "get", "--json").json()
    box.equal("get --json", (set(everything), everything["limits"]["turns"]), ({"model", "providers", "limits", "retention", "prices"}, 60))
    plain = box.run("config", "get")
    box.exits("get says where each value comes from", plain, FINE, out=["model = quote/passages  (default)",
              "limits.turns = 60  (default)", "limits.running = 16  (default)", "limits.cost = none  (default)",
              "retention.days = 180  (default)"])
    box.equal("config alone is get", box.run("config").out, plain.out)
    box.check("looking writes nothing", not box.config.exists() and not box.state.exists())
    box.exits("set", box.run("config", "set", "limits.turns", "50"), FINE, err=str(file_of(box)))
    box.equal("the file is private", stat.S_IMODE(file_of(box).stat().st_mode), 0o600)
    box.equal("get KEY", box.run("config", "get", "limits.turns").out, "50\n")
    box.exits("get a part", box.run("config", "get", "limits"), FINE, out=f"limits.turns = 50  ({file_of(box)}:2)")
    file_of(box).write_text("# mine\nlimits:   # budgets\n  turns: 50\n")
    box.exits("set again", box.run("config", "set", "limits.minutes", "7"), FINE)
    box.equal("all else stays", file_of(box).read_text(), "# mine\nlimits:   # budgets\n  turns: 50\n  minutes: 7\n")
    file_of(box).write_text("# only this\n")
    box.exits("set in a file of comments", box.run("config", "set", "model", "quote/passages"), FINE)
    box.check("the comment stays", file_of(box).read_text().startswith("# only this\n"), file_of(box).read_text())


def test_config_amounts(box):
    box.exits("unlimited", box.run("config", "set", "limits.tokens", "unlimited"), FINE)
    box.exits("is shown as that", box.run("config", "get", "limits"), FINE, out=f"limits.tokens = unlimited  ({file_of(box)}:2)")
    box.equal("and in JSON", box.run("config", "get", "limits", "--json").json()["tokens"], "unlimited")
    box.equal("no cost", box.run("config", "get", "limits", "--json").json()["cost"], None)
    box.exits("a cost", box.run("config", "set", "limits.cost", "2.5"), FINE)
    box.equal("two digits at least", box.run("config", "get", "limits.cost").out, "2.50\n")
    box.exits("it has a place", box.run("config", "get", "limits"), FINE, out=f"limits.cost = 2.50  ({file_of(box)}:3)")
    box.exits("a price", box.run("config", "set", 'prices."lab/big-1.5"', "{input: 3.00, output: 15}"), FINE)
    box.exits("its parts", box.run("config", "get", "prices"), FINE, out=[f'prices."lab/big-1.5".input = 3  ({file_of(box)}:',
              'prices."lab/big-1.5".cacheRead = 3  (default)'])
    box.equal("one of them", box.run("config", "get", 'prices."lab/big-1.5".output').out, "15\n")
    box.exits("half a price", box.run("config", "set", "prices.a/b.input", "1"), ERRORS, err="output")
    box.exits("params", box.run("config", "set", "providers.lab", "{api: openai, window: 4096, params: {temperature: 0.2}}"), FINE)
    box.exits("are shown", box.run("config", "get", "providers"), FINE, out=["providers.lab.window = 4096  (",
              "providers.lab.params.temperature = 0.2  ("])
    box.exits("not those of Deputy", box.run("config", "set", "providers.lab.params.stream", "false"), ERRORS, err="max_tokens")


def test_config_unset(box):
    file_of(box).parent.mkdir(parents=True)
    file_of(box).write_text("# mine\nlimits: # budgets\n  turns: 50 # few\n  minutes: 7\nmodel: quote/passages\n")
    box.exits("one value", box.run("config", "unset", "limits.turns"), FINE, err=str(file_of(box)))
    box.equal("goes with its line", file_of(box).read_text(), "# mine\nlimits: # budgets\n  minutes: 7\nmodel: quote/passages\n")
    box.equal("the default holds again", box.run("config", "get", "limits.turns").out, "60\n")
    before = file_of(box).read_bytes()
    box.exits("one that is not there", box.run("config", "unset", "limits.turns"), ERRORS, err=["turns", "not set"])
    box.exits("nothing to unset", box.run("config", "unset"), USAGE, err="unset KEY")
    box.exits("too much", box.run("config", "unset", "model", "x"), USAGE)
    box.equal("not one byte was written", file_of(box).read_bytes(), before)
    box.exits("a whole part", box.run("config", "unset", "limits"), FINE)
    box.exits("the last one", box.run("config", "unset", "model"), FINE)
    box.equal("comments stay", file_of(box).read_text(), "# mine\n")
    box.exits("an empty file is fine", box.run("config", "get", "model"), FINE, out="quote/passages")
    box.exits("and has nothing to remove", box.run("config", "unset", "model"), ERRORS, err="not set")
    box.exits("but can be filled", box.run("config", "set", "limits.turns", "5"), FINE)
    file_of(box).write_text("limits: {turnss: 5}\nlevle: 1\nprices: {a: {input: 1, output: 1}}\n")
    box.exits("what is wrong can go, one by one", box.run("config", "unset", "prices"), FINE, err="turnss")
    box.exits("and the next", box.run("config", "unset", "limits.turnss"), FINE)
    box.check("then nothing hides", "nothing runs" not in box.run("doctor").out)
    file_of(box).write_text("providers: {a: {api: anthropic}}\n")
    box.exits("an emptied mapping goes too", box.run("config", "unset", "providers.a.api"), FINE)
    file_of(box).write_text("providers: {a: {api: anthropic, url: 'https://x'}}\n")
    box.exits("and what would be an error", box.run("config", "unset", "providers.a.api"), ERRORS, err="nothing was written")
    file_of(box).unlink()
    box.exits("without a file", box.run("config", "unset", "model"), ERRORS, err="not set")
    box.check("none is made", not file_of(box).exists())


def test_config_is_refused(box):
    box.run("config", "set", "limits.turns", "50")
    before = file_of(box).read_bytes()
    for key, value, says_ in (("limits.turns", "0", "limits.turns"), ("limits.turnss", "5", "turns"), ("limit", "x", "limits"),
                              ("nope", "1", "no setting"), ("model", "foo", "provider/model"), ("limits", "[", "YAML"),
                              ("providers.x.api", "smtp", "api"), ("providers.quote.api", "anthropic", "quote")):
        box.exits(f"set {key} {value}", box.run("config", "set", key, value), ERRORS, err=says_)
    box.exits("get of nothing", box.run("config", "get", "nope"), ERRORS, err="--reference")
    box.exits("get of too much", box.run("config", "get", "a", "b"), USAGE)
    box.exits("set without a value", box.run("config", "set", "model"), USAGE)
    box.equal("not one byte was written", file_of(box).read_bytes(), before)
    file_of(box).write_text("limits: [\n")
    box.exits("a broken file is not written over", box.run("config", "set", "limits.turns", "5"), ERRORS, err="mend")
    box.exits("and the defaults hold, with a word", box.run("config", "get", "limits.turns"), FINE, out="60", err="config.yaml:")


def test_the_workspaces_file(box):
    box.run("config", "set", "limits.turns", "50")
    box.write(".deputy/config.yaml", "limits: {turns: 40, minutes: 99}\nproviders: {x: {api: anthropic, key: K}}\nmodel: x/y\n")
    answer = box.run("config", "get")
    box.exits("it is not read before it is trusted", answer, FINE, out="turns = 50", err="not trusted")
    box.trust()
    answer = box.run("config", "get")
    box.exits("then it may lower", answer, FINE, out="limits.turns = 40  (.deputy/config.yaml:1)")
    box.check("but not raise, and name no provider", "limits.minutes = 30  (default)" in answer.out and "x.api" not in answer.out
              and "CFG001" in answer.err and "CFG002" in answer.err, answer)
    box.check("a model without a provider is said", "not configured" in answer.err, answer)


def test_models(box):
    plain = box.run("models")
    box.exits("nothing configured", plain, FINE, out=["quote", "default: quote/passages", "deputy models add anthropic"])
    shape = box.run("models", "--json").json()
    box.equal("shape", (set(shape), set(shape["providers"][0])), ({"default", "providers"}, {"name", "api", "url", "state"}))
    added = box.run("models", "add", "anthropic")
    box.exits("add", added, FINE, err=["ANTHROPIC_API_KEY is not set", "deputy models use anthropic/MODEL"])
    box.check("the file names the variable", "key: ${ANTHROPIC_API_KEY}\n" in file_of(box).read_text(), file_of(box).read_text())
    box.equal("it is private", stat.S_IMODE(file_of(box).stat().st_mode), 0o600)
    box.exits("its state", box.run("models"), FINE, out="ANTHROPIC_API_KEY is not set")
    box.exits("with the variable", box.run("models", env={"ANTHROPIC_API_KEY": KEY}), FINE, out="ready")
    box.exits("test without a model", box.run("models", "test"), USAGE, err="models use")
    box.exits("use", box.run("models", "use", "anthropic/claude"), FINE, err="anthropic/claude")
    box.equal("is the default", box.run("models", "--json").json()["default"], "anthropic/claude")
    box.exits("test without the key", box.run("models", "test"), ERRORS, err="ANTHROPIC_API_KEY")
    box.exits("quote needs no test", box.run("models", "test", "quote/passages"), FINE, err="built in")
    file_of(box).write_text(file_of(box).read_text().replace("    api: ", "    maxTokens: 99 # short\n    api: "))
    box.exits("add again, with a model", box.run("models", "add", "anthropic", "--key-env", "OTHER", "--model", "new"), FINE,
              err="anthropic/new")
    text = file_of(box).read_text()
    box.check("what stood beside it stays", "maxTokens: 99 # short" in text and "${OTHER}" in text and "anthropic/new" in text, text)


def test_models_is_refused(box):
    box.run("models", "add", "anthropic")
    before = file_of(box).read_bytes()
    box.exits("a key in place of a variable", r := box.run("models", "add", "x", "--api", "anthropic", "--key-env", KEY), USAGE)
    box.check("is not repeated", KEY not in r.out + r.err, r)
    box.exits("an API nobody knows", box.run("models", "add", "x", "--api", "smtp"), USAGE,
              err=["smtp", "anthropic, openai, openai-responses"])
    box.exits("no API", box.run("models", "add", "x"), USAGE, err=["--api", "openai-responses", "ollama"])
    for name in ("a/b", "a b", 'a"b', "a\nb", "\x1b[2J", "-x", "", "1"):
        box.exits(f"the name {name!r}", box.run("models", "add", "--api", "anthropic", "--", name), USAGE)
    box.exits("quote is taken", box.run("models", "add", "quote", "--api", "anthropic"), ERRORS, err="built in")
    for url in ("ftp://x", "http://example.org/", "https://user@example.org/", "https://example.org/?a=b", "x"):
        bad = box.run("models", "add", "x", "--api", "anthropic", "--key-env", "K", "--url", url)
        box.check(f"the url {url}", bad.code in (ERRORS, REFUSED) and bad.err, bad)
    box.exits("use of nobody", box.run("models", "use", "nobody/x"), ERRORS, err="deputy models add nobody")
    for model in ("x", "/x", "x/", ""):
        box.exits(f"use {model!r}", box.run("models", "use", model), USAGE)
    box.equal("not one byte was written", file_of(box).read_bytes(), before)


KNOWN = [("anthropic", "anthropic", "ANTHROPIC_API_KEY", None), ("openai", "openai", "OPENAI_API_KEY", None),
         ("openai-responses", "openai-responses", "OPENAI_API_KEY", None),
         ("openrouter", "openai", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
         ("gemini", "openai", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
         ("deepseek", "openai", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
         ("groq", "openai", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
         ("mistral", "openai", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
         ("xai", "openai", "XAI_API_KEY", "https://api.x.ai/v1"),
         ("ollama", "openai", None, "http://127.0.0.1:11434/v1"), ("llama.cpp", "openai", None, "http://127.0.0.1:8080/v1"),
         ("lmstudio", "openai", None, "http://127.0.0.1:1234/v1"), ("vllm", "openai", None, "http://127.0.0.1:8000/v1")]


def test_models_known_by_name(box):
    listed = box.run("models").out
    for name, api, key, url in KNOWN:
        box.check(f"{name} is named by the list", f" {name}" in listed, listed)
        added = box.run("models", "add", name, "--model", "m")
        box.exits(f"add {name}", added, FINE, err=[f"{name}/m", key or "no key is sent"])
        row = next(p for p in box.run("models", "--json").json()["providers"] if p["name"] == name)
        box.equal("its API and address", (row["api"], row["url"]), (api, url or ""))
        box.equal("its state", row["state"] == "ready", key is None)
        box.check("its default model", f"model: {name}/m\n" in file_of(box).read_text(), file_of(box).read_text())
        file_of(box).unlink()
    for api in ("anthropic", "openai", "openai-responses"):
        box.exits(f"any name with --api {api}", box.run("models", "add", "mine", "--api", api, "--url", "http://127.0.0.1:9/v1",
                  "--key-env", "MINE"), FINE)
        text = file_of(box).read_text()
        box.check("is written", f"api: {api}\n" in text and "http://127.0.0.1:9/v1" in text and "${MINE}" in text, text)
        file_of(box).unlink()
    other = box.run("models", "add", "openai", "--url", "https://proxy.example.org/v1", env={"OPENAI_API_KEY": KEY})
    box.exits("another address gets no key unasked", other, FINE, err="no key is sent; --key-env")
    box.check("and none is written", "key:" not in file_of(box).read_text(), file_of(box).read_text())
    file_of(box).unlink()
    for var, name in (("OPENAI_API_KEY", "openai"), ("XAI_API_KEY", "xai")):
        box.exits(f"{var} waits", box.run("doctor", env={var: KEY}), FINE, out=f"deputy models add {name}")
    box.run("models", "add", "openai-responses")
    box.check("a key in use does not", "models add openai" not in box.run("doctor", env={"OPENAI_API_KEY": KEY}).out)


def test_models_test(box):
    with box.server([says("ready"), {"status": 401, "error": {"type": "authentication_error", "message": f"bad key {KEY}"}},
                     {"close": True}], key="${FAKE_KEY}") as server:
        good = box.run("models", "test", env={"FAKE_KEY": KEY})
        box.exits("it answers", good, FINE, out=["fake/one answered", "ready", "10 tokens in"])
        box.equal("the key travels in the header", server.requests()[0]["headers"]["x-api-key"], KEY)
        bad = box.run("models", "test", "fake/other", env={"FAKE_KEY": KEY})
        box.exits("an error of the provider", bad, ERRORS, err="bad key ***")
        box.equal("the named model was asked", server.bodies()[1]["model"], "other")
        box.check("never the key", KEY not in bad.out + bad.err, bad)
        box.exits("--model", box.run("models", "test", "fake", "--model", "m3", env={"FAKE_KEY": KEY}), ERRORS)
        box.equal("was asked", server.bodies()[2]["model"], "m3")
    gone = box.run("models", "test", env={"FAKE_KEY": KEY})
    box.exits("nobody is there", gone, ERRORS, err="127.0.0.1")


def test_doctor(box):
    plain = box.run("doctor")
    box.exits("a new machine", plain, FINE, out=["version", str(box.ws), "not made yet", "quote/passages", "sandbox"])
    rows = box.run("doctor", "--json").json()
    box.check("shape", all(set(r) == {"check", "verdict", "detail"} and r["verdict"] in ("ok", "note", "broken") for r in rows), rows)
    box.exits("a key that waits", box.run("doctor", env={"ANTHROPIC_API_KEY": KEY}), FINE, out="deputy models add anthropic")
    box.check("is not shown", KEY not in box.run("doctor", env={"ANTHROPIC_API_KEY": KEY}).out)
    box.write("a.md", "word\n")
    box.agent("one", "tools: [read]\nknowledge: [{name: M, path: '*.md'}]\n")
    box.run("run", "one", "word")
    box.exits("after a run", box.run("doctor"), FINE, out="integrity check")
    box.equal("state is private", {oct(stat.S_IMODE(p.stat().st_mode)) for p in [box.state / "deputy", *box.state.rglob("*")]},
              {"0o700", "0o600"})
    database = box.state / "deputy/deputy.db"
    for extra in box.state.glob("deputy/deputy.db-*"):
        extra.unlink()
    database.write_bytes(b"this is no database" * 200)
    broken = box.run("doctor")
    box.exits("a broken database", broken, ERRORS, out="broken")
    box.exits("agents still lists", box.run("agents"), FINE, out="one", err="switches are not read")


def test_a_config_that_may_hide_a_restriction(box):
    """Rule B10: what is there and cannot be read whole may be a gate or a limit."""
    box.write("a.md", "word\n")
    box.agent("one", "tools: [read]\nknowledge: [{name: M, path: '*.md'}]\n")
    system = box.config / "deputy/config.yaml"
    own = box.write(".deputy/config.yaml", "limits: {turns: 9}\n")
    box.exits("one that nobody accepted", box.run("run", "one", "word"), FINE, out="a.md:1")
    box.trust()
    for what, text in (("a gate", "approval: {confrim: [fs]}\n"), ("a limit", "limits: {turns: x}\n"),
                       ("its YAML", "approval: {confirm: [fs]}\nlimits: [\n")):
        box.write("deputy/config.yaml", text, box.config)
        answer = box.run("run", "one", "word")
        box.exits(f"an error in {what}: nothing runs", answer, ERRORS, err=["config.yaml", "nothing runs"])
        box.exits("and show says so", box.run("show", "one"), FINE, out="does not start")
        box.exits("doctor too", box.run("doctor"), ERRORS, out="nothing runs")
    system.unlink()
    system.mkdir()
    box.exits("a system config that cannot be read", box.run("run", "one", "word"), ERRORS, err="nothing runs")
    system.rmdir()
    own.unlink()
    own.symlink_to("elsewhere.yaml")
    box.exits("a trusted one that cannot be read", box.run("run", "one", "word"), ERRORS, err="nothing runs")
    own.unlink()
    box.exits("without them it runs", box.run("run", "one", "word"), FINE, out="a.md:1")


def verdict(result, check):
    return next((r["verdict"], r["detail"]) for r in result.json() if r["check"] == check)


def test_doctor_without_libraries(box):
    for name in ("libcurl", "uchardet"):
        box.equal(f"{name} is there", verdict(box.run("doctor", "--json"), name)[0], "ok")
    for soname in ("libcurl.so.4", "libuchardet.so.0"):
        box.write(soname, "no library", box.tmp / "lib")
    without = {"LD_LIBRARY_PATH": str(box.tmp / "lib")}
    answer = box.run("doctor", "--json", env=without)
    box.equal("nothing is broken while nobody is to be reached", answer.code, FINE)
    for name, package in (("libcurl", "libcurl4"), ("uchardet", "libuchardet0")):
        word, detail = verdict(answer, name)
        box.check(f"without {name}: a note with the package", word == "note" and package in detail, answer)
    box.run("models", "add", "anthropic")
    answer = box.run("doctor", "--json", env=without)
    box.check("a provider that cannot be reached is broken",
              answer.code == ERRORS and verdict(answer, "libcurl")[0] == "broken", answer)


if __name__ == "__main__":
    main(globals())
