"""A local server that speaks Anthropic Messages from a script, for end-to-end tests. Python standard library only.

    fake_anthropic.py SCRIPT.json [--record FILE.jsonl] [--port N] [--tls CERTIFICATE.pem KEY.pem]

Prints `port N` and serves 127.0.0.1 until it is ended. SCRIPT is {"replies": [REPLY, …], "repeat": false, "gets": {PATH:
REPLY, …}}; each POST of /v1/messages takes the next REPLY, and so does each GET of /v1/models/… where there is no "gets"; `repeat`
starts again after the last, without it further requests get a 500. With --record every request is one line of FILE: {"n",
"connection", "method", "path", "headers", "body"}; `connection` numbers TCP connections.

With "when": TEXT a reply is only for a request in whose body this text stands; others take the next one that fits. With "newest":
TEXT it is for a request in whose newest message the text stands, and goes before all that have no "newest": several may then ask
at the same time.

A REPLY is one of
  {"blocks": [BLOCK, …], …}   a streamed message
  {"events": [[NAME, DATA], …], …}   these events as they are (DATA: JSON, or a string taken as raw text)
  {"status": 429, "error": {"type": …, "message": …}, "headers": {"retry-after": "1"}}   an HTTP error as the API sends it
  {"status": 502, "body": "<html>…", "headers": {…}}   any other answer
  {"hang": true}    the request is read and never answered
  {"close": true}   the connection is closed without an answer
  {"librarian": true, …}   plays a model: calls kb_search with the task's text, then repeats the results as its text

BLOCK: {"type": "text", "text"} · {"type": "thinking", "thinking", "signature"} · {"type": "redacted_thinking", "data"} ·
{"type": "tool_use", "id", "name", "input"} (or "input_raw": text that need not be JSON) · any other object, sent whole.

Any REPLY may also have "until": PATH (it is sent when that file is there) and "together": N (it is sent when N requests wait
so at the same time; 500 when the others do not come).

Beside "blocks" and "events":
  stop_reason (default: tool_use when there is such a block, else end_turn), usage {input_tokens, output_tokens, …} or null,
  model, piece (characters a delta, default 7), ping (a ping before each block and each delta), line_end ("\\n", "\\r", "\\r\\n"),
  bom, comments (": x" lines between events), write_bytes (bytes a write; odd ones split characters), delay_ms (between writes),
  error_after N / {"error": …} (an error event in place of event N), end_after N (the stream ends properly after N events),
  cut_after N (the connection breaks after N events), hang_after N (silence after N events), no_stop (no message_stop),
  hold_open (the stream stays open after its last event)
"""

import argparse
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DATE_PREFIX = "Date: "


class Script:
    NO_MORE = {"status": 500, "error": {"type": "script_error", "message": "the script has no more replies"}}

    def __init__(self, text, record):
        self.script = json.loads(text)
        self.record = open(record, "a", encoding="utf-8") if record else None
        self.lock = threading.Lock()
        self.served = 0
        self.barriers = {}
        self.connections = 0

    def connection(self):
        with self.lock:
            self.connections += 1
            return self.connections

    def next(self, connection, method, path, headers, body):
        with self.lock:
            n, replies, gets = self.served, self.script["replies"], self.script.get("gets")
            self.served += method == "POST" or gets is None
            if self.record:
                entry = {"n": n, "connection": connection, "method": method, "path": path, "headers": headers, "body": body}
                self.record.write(json.dumps(entry, ensure_ascii=False) + "\n")
                self.record.flush()
            if method == "GET" and gets is not None:
                return gets.get(path) or {"status": 404, "error": {"type": "not_found_error", "message": path}}
            if self.script.get("repeat"):
                return replies[n % len(replies)]
            return self.choose(body or {})

    def hold(self, reply):
        """Waits as the reply says; the reply to send."""
        while "until" in reply and not os.path.exists(reply["until"]):
            time.sleep(0.02)
        if "together" in reply:
            with self.lock:
                barrier = self.barriers.setdefault(reply["together"], threading.Barrier(reply["together"]))
            try:
                barrier.wait(30)
            except threading.BrokenBarrierError:
                return {"status": 500, "error": {"type": "script_error", "message": "the other requests did not come"}}
        return reply

    def choose(self, body):
        """Takes the reply that is for this request, as the head of this file says."""
        replies = self.script["replies"]
        text, newest = (json.dumps(v, ensure_ascii=False) for v in (body, (body.get("messages") or [None])[-1]))
        for reply in sorted(replies, key=lambda r: "newest" not in r):
            if reply.get("when", "") in text and reply.get("newest", "") in newest:
                replies.remove(reply)
                return reply
        return self.NO_MORE


def pieces(text, size):
    return [text[i:i + size] for i in range(0, len(text), size)]


def block_events(index, block, size, ping):
    """content_block_start, the deltas, content_block_stop."""
    kind = block.get("type")
    start, deltas = dict(block), []
    if kind == "text":
        start["text"] = ""
        deltas = [{"type": "text_delta", "text": p} for p in pieces(block["text"], size)]
    elif kind == "thinking":
        start["thinking"] = start["signature"] = ""
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"], size)]
        deltas.append({"type": "signature_delta", "signature": block.get("signature", "")})
    elif kind == "tool_use":
        raw = start.pop("input_raw", None)
        if raw is None:
            raw = json.dumps(block.get("input", {}), ensure_ascii=False)
        start["input"] = {}
        deltas = [{"type": "input_json_delta", "partial_json": p} for p in ["", *pieces(raw, size)]]
    ping_event = [("ping", {"type": "ping"})] if ping else []
    events = [*ping_event, ("content_block_start", {"type": "content_block_start", "index": index, "content_block": start})]
    for delta in deltas:
        events += ping_event
        events.append(("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}))
    events.append(("content_block_stop", {"type": "content_block_stop", "index": index}))
    return events


def message_events(reply, request):
    blocks = reply["blocks"]
    calls = any(b.get("type") == "tool_use" for b in blocks)
    usage = reply.get("usage", {"input_tokens": 10, "output_tokens": 20})
    message = {"id": "msg_fake", "type": "message", "role": "assistant", "content": [], "stop_reason": None,
               "model": reply.get("model", request.get("model", "fake"))}
    delta = {"type": "message_delta", "delta": {"stop_reason": reply.get("stop_reason", "tool_use" if calls else "end_turn"),
                                                "stop_sequence": None}}
    if usage is not None:
        message["usage"] = {**usage, "output_tokens": 1}
        delta["usage"] = {"output_tokens": usage.get("output_tokens", 0)}
    events = [("message_start", {"type": "message_start", "message": message})]
    for index, block in enumerate(blocks):
        events += block_events(index, block, reply.get("piece", 7), reply.get("ping"))
    events.append(("message_delta", delta))
    if not reply.get("no_stop"):
        events.append(("message_stop", {"type": "message_stop"}))
    return events


def librarian_blocks(request):
    last = request["messages"][-1]["content"]
    results = [b for b in last if b.get("type") == "tool_result"] if isinstance(last, list) else []
    if results:
        return [{"type": "text", "text": "\n".join(b["content"] for b in results)}]
    text = last if isinstance(last, str) else "\n".join(b["text"] for b in last if b.get("type") == "text")
    lines = text.strip().split("\n")
    if lines[-1].startswith(DATE_PREFIX):
        lines.pop()
    query = {"query": "\n".join(lines).strip(), "limit": 10}
    return [{"type": "text", "text": "I look that up."},
            {"type": "tool_use", "id": f"toolu_{len(request['messages'])}", "name": "kb_search", "input": query}]


def event_bytes(event, line_end):
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    lines = ([f"event: {name}"] if name else []) + [f"data: {line}" for line in text.split("\n")]
    return (line_end.join(lines) + line_end * 2).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        # Small writes must leave as such.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self.server.script.connection()

    def log_message(self, *_):
        pass

    def do_GET(self):
        headers = {k.lower(): v for k, v in self.headers.items()}
        reply = self.server.script.next(self.number, "GET", self.path, headers, None)
        if not self.path.startswith("/v1/models/"):
            reply = {"status": 404, "error": {"type": "not_found_error", "message": f"no such path: {self.path}"}}
        if reply.get("hang"):
            self.silence()
        elif reply.get("close"):
            self.cut()
        else:
            self.answer(reply)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            request = json.loads(body)
        except ValueError:
            request = {"invalid": body.decode("utf-8", "replace")}
        headers = {k.lower(): v for k, v in self.headers.items()}
        headers = {k.lower(): v for k, v in self.headers.items()}
        script = self.server.script
        reply = script.hold(script.next(self.number, "POST", self.path, headers, request))
        if self.path != "/v1/messages":
            reply = {"status": 404, "error": {"type": "not_found_error", "message": f"no such path: {self.path}"}}
        if reply.get("hang"):
            self.silence()
        elif reply.get("close"):
            self.cut()
        elif "blocks" in reply or "events" in reply or reply.get("librarian"):
            self.stream(reply, request)
        else:
            self.answer(reply)

    def answer(self, reply):
        if "body" in reply:
            body, kind = reply["body"].encode(), "text/html"
        else:
            body, kind = json.dumps({"type": "error", "error": reply.get("error", {})}).encode(), "application/json"
        self.send_response(reply.get("status", 200))
        headers = {"content-type": kind, **reply.get("headers", {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, reply, request):
        if reply.get("librarian"):
            reply = {**reply, "blocks": librarian_blocks(request)}
        events = [tuple(e) for e in reply["events"]] if "events" in reply else message_events(reply, request)
        if "error_after" in reply:
            events[reply["error_after"]:] = [("error", {"type": "error", "error": reply["error"]})]
        for key in ("end_after", "cut_after", "hang_after"):
            if key in reply:
                events = events[:reply[key]]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        line_end = reply.get("line_end", "\n")
        data = b"\xef\xbb\xbf" if reply.get("bom") else b""
        for event in events:
            if reply.get("comments"):
                data += f": a comment{line_end}".encode()
            data += event_bytes(event, line_end)
        try:
            self.write_slowly(data, reply.get("write_bytes", len(data) or 1), reply.get("delay_ms", 0))
            if "hang_after" in reply or reply.get("hold_open"):
                self.silence()
            elif "cut_after" in reply:
                self.cut()
            else:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True  # the client gave up

    def write_slowly(self, data, size, delay_ms):
        for i in range(0, len(data), size):
            piece = data[i:i + size]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            if delay_ms:
                time.sleep(delay_ms / 1000)

    def silence(self):
        """Nothing more, until the client closes."""
        self.close_connection = True
        try:
            while self.connection.recv(4096):
                pass
        except OSError:
            pass

    def cut(self):
        """An abrupt end: a reset instead of a proper close."""
        self.close_connection = True
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that goes away is a normal thing here


def main():
    parser = argparse.ArgumentParser(description="A scripted Anthropic Messages server for tests.")
    parser.add_argument("script")
    parser.add_argument("--record")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tls", nargs=2)
    arguments = parser.parse_args()
    with open(arguments.script, encoding="utf-8") as f:
        script = Script(f.read(), arguments.record)
    server = Server(("127.0.0.1", arguments.port), Handler)
    server.script = script
    if arguments.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*arguments.tls)
        # The handshake is made by the connection's thread, at its first read.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(f"port {server.server_address[1]}", flush=True)
    try:
        server.serve_forever(poll_interval=0.05)
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
