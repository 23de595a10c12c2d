"""How the program reaches a server that is not on this machine: proxies of the environment, certificates of the system's and
of one's own. All of it runs offline: a proxy of the test takes names that exist nowhere to a server of the test."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
from lib.deputy import ERRORS, FINE, INTERRUPTED, ROOT, main, says  # noqa: E402

HOST, KEY = "model.example", "sk-tls-0123456789"
SUPPORT = ROOT / "tests" / "support"


@contextlib.contextmanager
def program(name, *argv):
    """A helper of tests/support; its port."""
    process = subprocess.Popen([sys.executable, str(SUPPORT / name), *map(str, argv)], stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        yield int(process.stdout.readline().split()[1])
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


class Net:
    """A server behind a proxy, and what both have seen."""

    def __init__(self, box, server, proxy):
        self.box, self.server, self.proxy = box, server, proxy

    def lines(self, name):
        file = self.box.tmp / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def asked(self):
        return self.lines("server.jsonl")

    def proxied(self):
        return [(r["method"], r["target"]) for r in self.lines("proxy.jsonl")]

    def configure(self, url, key=KEY, ca=None):
        text = f"model: far/one\nproviders:\n  far:\n    api: anthropic\n    url: {url}\n"
        text += f"    key: {key}\n" if key else ""
        text += f"    caFile: {ca}\n" if ca else ""
        self.box.write("deputy/config.yaml", text, self.box.config)

    def through(self, **more):
        proxy = f"http://127.0.0.1:{self.proxy}"
        return {"http_proxy": proxy, "https_proxy": proxy, **more}


@contextlib.contextmanager
def net(box, replies, tls=None):
    for name in ("server.jsonl", "proxy.jsonl"):
        (box.tmp / name).unlink(missing_ok=True)
    box.write("script.json", json.dumps({"replies": replies}), box.tmp)
    more = ["--tls", tls, tls.with_suffix(".key")] if tls else []
    with program("fake_anthropic.py", box.tmp / "script.json", "--record", box.tmp / "server.jsonl", *more) as server, \
            program("fake_proxy.py", box.tmp / "proxy.jsonl", server) as proxy:
        yield Net(box, server, proxy)


def openssl(box, *argv):
    subprocess.run(["openssl", *map(str, argv)], cwd=box.tmp, check=True, capture_output=True)


def authority(box, name):
    """A certificate authority of our own: NAME.pem and NAME.key."""
    openssl(box, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-addext", "keyUsage=critical,keyCertSign")
    return box.tmp / f"{name}.pem"


def certificate(box, ca, host):
    """One for a host, signed by it: HOST.pem and HOST.key."""
    openssl(box, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={host}", "-keyout",
            f"{host}.key", "-out", f"{host}.csr")
    (box.tmp / f"{host}.ext").write_text(f"subjectAltName=DNS:{host}\n")
    openssl(box, "x509", "-req", "-in", f"{host}.csr", "-CA", ca, "-CAkey", ca.with_suffix(".key"), "-CAcreateserial", "-days",
            "2", "-extfile", f"{host}.ext", "-out", f"{host}.pem")
    return box.tmp / f"{host}.pem"


def test_a_proxy_for_plain_http(box):
    box.agent("one", "tools: [glob]\n")
    with net(box, [says("far and back"), says("again"), says("direct")]) as n:
        n.configure(f"http://{HOST}:8080", key=None)
        box.exits("models test", box.run("models", "test", env=n.through()), FINE, out="far and back")
        box.exits("run", box.run("run", "one", "x", env=n.through()), FINE, out="again")
        box.equal("the proxy was asked for the whole address", n.proxied(), [("POST", f"http://{HOST}:8080/v1/messages")] * 2)
        # An address of this machine that is not one of its names: only no_proxy keeps it from the proxy.
        n.configure(f"http://0.0.0.0:{n.server}", key=None)
        direct = box.run("models", "test", env=n.through(no_proxy="other.example,0.0.0.0"))
        box.exits("no_proxy", direct, FINE, out="direct")
        box.equal("is not proxied", len(n.proxied()), 2)
        box.equal("all came to the server", len(n.asked()), 3)


def test_a_proxy_with_a_password(box):
    with net(box, [says("far and back")]) as n:
        n.configure(f"http://{HOST}:8080", key=None)
        proxy = f"http://me:word@127.0.0.1:{n.proxy}"
        answer = box.run("models", "test", env={"http_proxy": proxy})
        box.exits("it is let in", answer, FINE, out="far and back")
        box.equal("with name and password", n.lines("proxy.jsonl")[0]["headers"].get("proxy-authorization"), "Basic bWU6d29yZA==")
        box.check("which the server does not see", "proxy-authorization" not in n.asked()[0]["headers"])


def test_this_machine_is_never_proxied(box):
    with net(box, [says("near")]) as n:
        n.configure(f"http://localhost:{n.server}")
        box.exits("models test", box.run("models", "test", env=n.through(all_proxy="http://127.0.0.1:1")), FINE, out="near")
        box.equal("directly", n.proxied(), [])


def test_own_certificates(box):
    box.agent("one", "tools: [glob]\n")
    ca = authority(box, "ours")
    tls = certificate(box, ca, HOST)
    with net(box, [says("sealed"), says("again")], tls) as n:
        n.configure(f"https://{HOST}:8443", ca=ca)
        box.exits("models test", box.run("models", "test", env=n.through()), FINE, out="sealed")
        box.exits("run", box.run("run", "one", "x", env=n.through()), FINE, out="again")
        box.equal("through a tunnel", n.proxied(), [("CONNECT", f"{HOST}:8443")] * 2)
        box.equal("the key is inside it", [r["headers"].get("x-api-key") for r in n.asked()], [KEY] * 2)
        box.check("and not shown to the proxy", KEY not in (box.tmp / "proxy.jsonl").read_text())


def test_certificates_that_are_refused(box):
    box.agent("one", "tools: [glob]\n")
    ours, theirs = authority(box, "ours"), authority(box, "theirs")
    good, other = certificate(box, ours, HOST), certificate(box, ours, "other.example")
    cases = [("unknown to the system", good, None, "certificate"), ("of another authority", good, theirs, "certificate"),
             ("for another host", other, ours, HOST), ("without a file of authorities", good, box.tmp / "absent.pem", "absent.pem")]
    for what, tls, ca, said in cases:
        with net(box, [says("never")], tls) as n:
            n.configure(f"https://{HOST}:8443", ca=ca)
            for verb in (("models", "test"), ("run", "one", "x")):
                answer = box.run(*verb, env=n.through())
                box.check(f"{what}: {verb[0]} fails and says why", answer.code == ERRORS and said in answer.out + answer.err, answer)
                box.check(f"{what}: it is not tried again", "attempts" not in answer.out + answer.err, answer)
            # The system's may stand in a file and in a directory, which are asked one after the other.
            box.check(f"{what}: it was asked once a place", len(n.proxied()) <= (2 if ca else 4), n.proxied())
            box.equal(f"{what}: nothing was sent", n.asked(), [])


def test_ctrl_c_in_the_middle_of_a_handshake(box):
    box.agent("one", "tools: [glob]\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        box.write("deputy/config.yaml", "model: far/one\nproviders:\n  far:\n    api: anthropic\n    key: k-0123\n"
                  f"    url: https://127.0.0.1:{silent.getsockname()[1]}\n", box.config)
        process = box.start("run", "one", "x")
        client, _ = silent.accept()
        client.recv(1)  # it waits for an answer to its greeting now
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        box.check("the run ends", process.returncode == INTERRUPTED, (process.returncode, out, err))
        client.close()


if __name__ == "__main__":
    if not shutil.which("openssl"):
        print("the openssl command is not here: certificates cannot be made")
        sys.exit(77)
    main(globals())
