"""A local server that speaks Chat Completions from a script, for tests. Python standard library only.

    fake_openai.py SCRIPT.json [--record FILE.jsonl] [--port N]

Prints `port N` and serves 127.0.0.1 until it is ended. SCRIPT is {"replies": [REPLY, …], "repeat": false, "gets": {PATH: JSON, …}}:
each POST to a path that a speaker knows takes the next REPLY (see fake_anthropic.py for `repeat`, `--record`, and for the answers
"status"/"error"/"body", "hang" and "close"); a GET is answered from "gets" (JSON, or an answer
with a "status"), else with 404.

A REPLY of a conversation is one of
  {"text": …, "thinking": …, "calls": [CALL, …], …}   a message, in pieces
  {"chunks": [CHUNK, …], …}    these chunks as they are (JSON, or a string taken as raw text), then [DONE]
  {"events": [[NAME, DATA], …], …}   these events as they are
  {"librarian": true, …}   plays a model: calls kb_search with the task's text, then repeats the results as its text

CALL: {"id", "name", "arguments"}: arguments as a JSON value or as text that need not be JSON; other members are sent with its head.
Beside them: finish (default: tool_calls or stop), usage {prompt_tokens, completion_tokens, …} or null, model, piece (characters a
delta, default 7), thinking_key (default reasoning_content), no_index, no_done, document (answers with one JSON document, as it does
anyway when no stream was asked for), error_after N / "error", end_after N, cut_after N, hang_after N, hold_open, and what
fake_anthropic.py says about bytes: line_end, bom, comments, write_bytes, delay_ms.

Another API is added as a class like Chat in a file of its own, which calls serve() with it.
"""

import argparse
import json
import sys

from fake_anthropic import DATE_PREFIX, Handler as BaseHandler, Script as BaseScript, Server, pieces


class Chat:
    """Chat Completions: what a speaker has to have."""

    path = "/chat/completions"  # the end of it

    @staticmethod
    def events(reply, request):
        """The events of a streamed reply, (name or None, data) each."""
        if "chunks" in reply:
            chunks = list(reply["chunks"])
        else:
            chunks = list(message_chunks(reply, request))
        return [(None, c) for c in chunks] + ([] if reply.get("no_done") else [(None, "[DONE]")])

    @staticmethod
    def document(reply, request):
        """The same as one JSON document."""
        message = {"role": "assistant", "content": reply.get("text")}
        if reply.get("thinking"):
            message[reply.get("thinking_key", "reasoning_content")] = reply["thinking"]
        if reply.get("calls"):
            message["tool_calls"] = [head_of(c, arguments_of(c)) for c in reply["calls"]]
        whole = {"id": "chatcmpl-fake", "object": "chat.completion", "model": model_of(reply, request),
                 "choices": [{"index": 0, "message": message, "finish_reason": finish_of(reply)}]}
        if usage_of(reply) is not None:
            whole["usage"] = usage_of(reply)
        return whole

    @staticmethod
    def error(error):
        """An error within a stream."""
        return None, {"error": error}

    @staticmethod
    def librarian(request):
        """The reply of a model that looks a question up and repeats what it found."""
        last = request["messages"][-1]
        if last["role"] == "tool":
            return {"text": last["content"]}
        lines = last["content"].strip().split("\n")
        if lines[-1].startswith(DATE_PREFIX):
            lines.pop()
        query = {"query": "\n".join(lines).strip(), "limit": 10}
        return {"text": "I look that up.", "calls": [{"id": "call_1", "name": "kb_search", "arguments": query}]}


def model_of(reply, request):
    return reply.get("model", request.get("model", "fake"))


def finish_of(reply):
    return reply.get("finish", "tool_calls" if reply.get("calls") else "stop")


def usage_of(reply):
    return reply.get("usage", {"prompt_tokens": 10, "completion_tokens": 20})


def arguments_of(call):
    arguments = call.get("arguments", "")
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def head_of(call, arguments):
    more = {k: v for k, v in call.items() if k not in ("id", "name", "arguments")}
    return {"id": call.get("id", ""), "type": "function", **more,
            "function": {"name": call.get("name", ""), "arguments": arguments}}


def deltas_of(reply):
    size = reply.get("piece", 7)
    yield {"role": "assistant", "content": ""}
    for part in pieces(reply.get("thinking") or "", size):
        yield {reply.get("thinking_key", "reasoning_content"): part}
    for part in pieces(reply.get("text") or "", size):
        yield {"content": part}
    for index, call in enumerate(reply.get("calls", [])):
        at = {} if reply.get("no_index") else {"index": index}
        yield {"tool_calls": [{**at, **head_of(call, "")}]}
        for part in pieces(arguments_of(call), size):
            yield {"tool_calls": [{**at, "function": {"arguments": part}}]}


def message_chunks(reply, request):
    base = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "model": model_of(reply, request)}
    wants_usage = (request.get("stream_options") or {}).get("include_usage") and usage_of(reply) is not None
    for delta in deltas_of(reply):
        yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if finish_of(reply) is not None:
        yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish_of(reply)}]}
    if wants_usage:
        yield {**base, "choices": [], "usage": usage_of(reply)}


class Script(BaseScript):
    def note(self, connection, path, headers):
        """Records a GET, which takes no reply."""
        with self.lock:
            if self.record:
                entry = {"n": None, "connection": connection, "method": "GET", "path": path, "headers": headers, "body": None}
                self.record.write(json.dumps(entry, ensure_ascii=False) + "\n")
                self.record.flush()


class Handler(BaseHandler):
    def do_GET(self):
        known = self.server.gets
        headers = {k.lower(): v for k, v in self.headers.items()}
        self.server.script.note(self.number, self.path, headers)
        if self.path in known and "status" in known[self.path]:
            self.answer(known[self.path])
        elif self.path in known:
            self.answer({"status": 200, "body": json.dumps(known[self.path]), "headers": {"content-type": "application/json"}})
        else:
            self.answer({"status": 404, "error": {"message": f"no such path: {self.path}"}})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = json.loads(body)
        headers = {k.lower(): v for k, v in self.headers.items()}
        speaker = next((s for s in self.server.speakers if self.path.endswith(s.path)), None)
        reply = self.server.script.next(self.number, "POST", self.path, headers, request)
        if not speaker:
            self.answer({"status": 404, "error": {"message": f"no such path: {self.path}"}})
        elif reply.get("hang"):
            self.silence()
        elif reply.get("close"):
            self.cut()
        elif "status" in reply:
            self.answer(reply)
        else:
            self.converse(speaker, reply, request)

    def converse(self, speaker, reply, request):
        if reply.get("librarian"):
            reply = {**reply, **speaker.librarian(request)}
        if "events" not in reply and (reply.get("document") or not request.get("stream")):
            body = json.dumps(speaker.document(reply, request), ensure_ascii=False)
            self.answer({"status": 200, "body": body, "headers": {"content-type": "application/json"}})
            return
        events = reply.get("events") or speaker.events(reply, request)
        if "error_after" in reply:
            events = [*events[:reply["error_after"]], speaker.error(reply["error"])]
        kept = {k: v for k, v in reply.items() if k not in ("error_after", "librarian")}
        self.stream({**kept, "events": events}, request)


def serve(speakers):
    parser = argparse.ArgumentParser(description="A scripted model server for tests.")
    parser.add_argument("script")
    parser.add_argument("--record")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    with open(arguments.script, encoding="utf-8") as f:
        text = f.read()
    server = Server(("127.0.0.1", arguments.port), Handler)
    server.script = Script(text, arguments.record)
    server.gets = json.loads(text).get("gets", {})
    server.speakers = speakers
    print(f"port {server.server_address[1]}", flush=True)
    try:
        server.serve_forever(poll_interval=0.05)
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(serve([Chat]))
