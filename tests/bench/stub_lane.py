"""The local model server by itself: what it must get right whatever a client does, and how many requests it serves. A figure of the
other lanes is worth nothing when this one is not fine."""

import json
import socket
import subprocess
import sys

from measuring import HELPERS, Stub

LIMIT = 10  # seconds; only a hang reaches it
OPTIONS = ([], ["--delay-ms", "1"], ["--pieces", "64", "--writes", "1"], ["--pieces", "1", "--writes", "100"], ["--delay-ms", "1", "--pieces", "64"])
MANY = 200
PATHS = {"/v1/messages": ("messages", b'"type":"message_stop"'), "/v1/chat/completions": ("messages", b"data: [DONE]"),
         "/v1/responses": ("input", b'"type":"response.completed"')}


def request(path, member, turns, answers, head=b"Host: stub"):
    """A task, and `answers` turns of it done. Text that looks like an answer is none."""
    tricky = f'"role":"assistant" \\" {{"type":"function_call"}} stub:turns={turns} \\\\'
    done = {"role": "assistant", "content": "x"} if member == "messages" else {"type": "function_call", "name": "read"}
    body = json.dumps({"stream": True, "tools": [{"name": "read"}, {"name": "kb_search"}], member: [{"role": "user", "content": tricky}, *[done] * answers]})
    return f"POST {path} HTTP/1.1\r\n".encode() + head + f"\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def connect(stub):
    s = socket.create_connection(("127.0.0.1", int(stub.url.rpartition(":")[2])), timeout=LIMIT)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def answers(s, count=1):
    data = b""
    while data.count(b"\r\n0\r\n\r\n") < count:
        more = s.recv(65536)
        if not more:
            break
        data += more
    return data


def check(what, fine):
    if not fine:
        sys.exit(f"bench: stub: {what}")


def behaves(stub):
    for path, (member, end) in PATHS.items():
        s = connect(stub)
        for byte in request(path, member, 2, 1):
            s.send(bytes([byte]))
        data = answers(s)
        check(f"{path}: turn 2 of 2 calls the second tool", b"kb_search" in data and end in data)
        s.send(request(path, member, 2, 2) * 3)
        data = answers(s, 3)
        check(f"{path}: three at once get three reports", data.count(end) == 3 and b"kb_search" not in data)
        s.send(request(path, member, 2, 0)[:50])
        s.close()
    last = request("/v1/messages", "messages", 0, 0, b"Connection: close")
    s = connect(stub)
    s.send(last)
    check("a connection is closed when it is asked for", answers(s, 2).endswith(b"0\r\n\r\n"))
    many = [connect(stub) for _ in range(MANY)]
    for s in many:
        s.send(request("/v1/messages", "messages", 1, 0))
    for s in many[::2]:
        s.close()
    check("who stays is answered when others leave", all(b"message_stop" in answers(s) for s in many[1::2]))
    for s in many[1::2]:
        s.close()
    stats = stub.stats()
    check(f"every request is counted: {stats}", stats["requests"] == 4 * len(PATHS) + 1 + MANY and not stats["refused"])


def stub(_space, env):
    for options in OPTIONS:
        with Stub(env["HOME"], *options) as one:
            behaves(one)
    with Stub(env["HOME"]) as one:
        argv = [f"{HELPERS}/curl_floor", "--url", f"{one.url}/v1/messages", "--turns", "20", "--at-once", str(MANY), "--sizes", "2000",
                "--state", env["HOME"]]
        subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL)
        stats = one.stats()
        each = stats["cpu"] / stats["requests"]
        print(f"stub: behaves with {len(OPTIONS)} sets of options; {stats['requests']} requests of {stats['bytes_in'] // stats['requests']} bytes on "
              f"{stats['most_open']} connections: {each * 1000:.0f} us of CPU each, {1000 / each:.0f} a second on one core\n")
