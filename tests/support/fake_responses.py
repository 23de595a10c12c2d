"""A local server that speaks OpenAI Responses from a script, for end-to-end tests. Python standard library only.

    fake_responses.py SCRIPT.json [--record FILE.jsonl] [--port N]

Prints `port N` and serves 127.0.0.1 until it is ended. SCRIPT, --record and the replies "status", "body", "hang" and "close" are
those of fake_anthropic.py; each POST of /v1/responses takes the next REPLY. A request that the API would refuse gets its 400:
reasoning that nothing follows, a call without an output, an output without a call, a tool that is none. `"plain": true` in SCRIPT
plays a model that does not reason, and refuses the wish for encrypted reasoning.

A REPLY is one of those or
  {"items": [ITEM, …], …}   a streamed response
  {"events": [[NAME, DATA], …], …}   these events as they are (DATA: JSON, or a string taken as raw text)

ITEM: {"type": "message", "text"} (or "refusal") · {"type": "reasoning", "summary", "encrypted_content"} ·
{"type": "function_call", "call_id", "name", "arguments"} (an object becomes text) · any other object, sent whole.

Beside "items":
  form: "full" (default), "items" (created, whole items and completed), "output" (everything in the last event), "deltas"
    (no output_item events), "parallel" (the deltas of all items interleaved), "no_ids", "no_index",
    "document" (no stream; also what a request without `stream` gets)
  status (completed, incomplete, failed), reason (of incomplete), error (of failed), usage or null, model, piece
Beside "items" and "events": line_end, bom, comments, write_bytes, delay_ms, error_after, end_after, cut_after, hang_after and
hold_open, as in fake_anthropic.py.
"""

import argparse
import json
import sys

sys.dont_write_bytecode = True
from fake_anthropic import Handler, Script, Server, pieces  # noqa: E402

USAGE = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 20,
         "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 30}


def fault_of(request):
    """What the API would refuse, or None."""
    for tool in request.get("tools", []):
        if tool.get("type") != "function" or not {"name", "parameters"} <= tool.keys():
            return f"Invalid tool: {json.dumps(tool)[:100]}"
    if request.get("store") is not False:
        return "this server stores nothing"
    calls, items = {}, request.get("input", [])
    for i, item in enumerate(items):
        kind = item.get("type")
        if kind == "reasoning":
            if not item.get("encrypted_content"):
                return f"Item with id '{item.get('id')}' not found."
            if i + 1 == len(items) or items[i + 1].get("type") == "function_call_output" or items[i + 1].get("role") == "user":
                return f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        elif kind == "function_call":
            if not isinstance(item.get("arguments"), str):
                return f"Invalid type for 'input[{i}].arguments'."
            calls[item["call_id"]] = False
        elif kind == "function_call_output":
            if calls.get(item["call_id"]) is not False:
                return f"No tool call found for function call output with call_id {item['call_id']}."
            calls[item["call_id"]] = True
    missing = [c for c, answered in calls.items() if not answered]
    return f"No tool output found for function call {missing[0]}." if missing else None


def whole_item(number, item):
    """The item as output_item.done shows it."""
    kind = item["type"]
    if kind == "message":
        refused = "refusal" in item
        part = {"type": "refusal", "refusal": item["refusal"]} if refused else \
            {"type": "output_text", "text": item["text"], "annotations": [], "logprobs": []}
        return {"id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    if kind == "reasoning":
        whole = {"id": f"rs_{number}", "type": "reasoning", "summary": [{"type": "summary_text", "text": item.get("summary", "")}]}
        return {**whole, "encrypted_content": item["encrypted_content"]} if "encrypted_content" in item else whole
    if kind == "function_call":
        arguments = item.get("arguments", {})
        return {"id": f"fc_{number}", "status": "completed", **item,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)}
    return item


def item_events(index, whole, size):
    """added, the deltas, done."""
    keys, kind = {"output_index": index, "item_id": whole.get("id")}, whole["type"]
    begun, events = dict(whole, status="in_progress"), []
    if kind == "message":
        part, begun["content"] = whole["content"][0], []
        name, text = ("refusal", part["refusal"]) if part["type"] == "refusal" else ("output_text", part["text"])
        keys["content_index"] = 0
        events = [(f"{name}.delta", {**keys, "delta": p}) for p in pieces(text, size)]
        events.append((f"{name}.done", {**keys, "refusal" if name == "refusal" else "text": text}))
        events = [("content_part.added", {**keys, "part": {"type": part["type"]}}), *events,
                  ("content_part.done", {**keys, "part": part})]
    elif kind == "reasoning":
        begun.update(summary=[])
        begun.pop("encrypted_content", None)
        keys["summary_index"] = 0
        events = [("reasoning_summary_text.delta", {**keys, "delta": p}) for p in pieces(whole["summary"][0]["text"], size)]
    elif kind == "function_call":
        begun["arguments"] = ""
        events = [("function_call_arguments.delta", {**keys, "delta": p}) for p in pieces(whole["arguments"], size)]
        events.append(("function_call_arguments.done", {**keys, "arguments": whole["arguments"]}))
    return [("output_item.added", {"output_index": index, "item": begun}), *events,
            ("output_item.done", {"output_index": index, "item": whole})]


def interleaved(lists):
    """One event of each list in turn."""
    out = []
    for i in range(max(map(len, lists), default=0)):
        out += [events[i] for events in lists if i < len(events)]
    return out


def without(value, names):
    if isinstance(value, dict):
        return {k: without(v, names) for k, v in value.items() if k not in names}
    return [without(v, names) for v in value] if isinstance(value, list) else value


def response_events(reply, request, turn):
    form, status = reply.get("form", "full"), reply.get("status", "completed")
    wholes = [whole_item(f"{turn}_{i}", item) for i, item in enumerate(reply["items"])]
    response = {"id": f"resp_{turn}", "object": "response", "status": "in_progress", "output": [], "error": None,
                "incomplete_details": None, "model": reply.get("model", request.get("model", "fake"))}
    lists = [item_events(i, whole, reply.get("piece", 7)) for i, whole in enumerate(wholes)]
    if form == "items":
        lists = [events[-1:] for events in lists]
    elif form == "output":
        lists = []
    elif form == "deltas":
        lists = [events[1:-1] for events in lists]
    events = interleaved(lists) if form == "parallel" else [e for events in lists for e in events]
    hidden = {"no_ids": ("id", "item_id"), "no_index": ("output_index",)}.get(form, ())
    events = [(name, without(data, hidden)) for name, data in events]
    end = {**response, "status": status, "output": wholes if form not in ("items", "deltas") else []}
    if status == "incomplete":
        end["incomplete_details"] = {"reason": reply.get("reason", "max_output_tokens")}
    if status == "failed":
        end.update(output=[], error=reply["error"])
    if reply.get("usage", USAGE) is not None:
        end["usage"] = reply.get("usage", USAGE)
    events = [("created", {"response": response}), ("in_progress", {"response": response}), *events, (status, {"response": end})]
    return [(f"response.{name}", {"type": f"response.{name}", "sequence_number": i, **data})
            for i, (name, data) in enumerate(events)]


class ResponsesHandler(Handler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = json.loads(body)
        headers = {k.lower(): v for k, v in self.headers.items()}
        script = self.server.script
        if script.script.get("plain") and "include" in request:
            self.answer({"status": 400, "error": {"type": "invalid_request_error", "param": "include", "code": None,
                                                  "message": "Encrypted content is not supported with this model."}})
            return
        reply = script.next(self.number, "POST", self.path, headers, request)
        fault = fault_of(request)
        if self.path != "/v1/responses":
            reply = {"status": 404, "error": {"type": "invalid_request_error", "message": f"Invalid URL (POST {self.path})"}}
        elif fault:
            reply = {"status": 400, "error": {"type": "invalid_request_error", "message": fault}}
        if reply.get("hang"):
            self.silence()
        elif reply.get("close"):
            self.cut()
        elif "items" in reply and (reply.get("form") == "document" or not request["stream"]):
            document = response_events(reply, request, script.served)[-1][1]["response"]
            self.answer({"body": json.dumps(document), "headers": {"content-type": "application/json"}})
        elif "items" in reply or "events" in reply:
            events = reply["events"] if "events" in reply else response_events(reply, request, script.served)
            if "error_after" in reply:
                error = {"type": "error", "sequence_number": reply["error_after"], "param": None, **reply["error"]}
                events = [*events[:reply["error_after"]], ("error", error)]
            self.stream({k: v for k, v in reply.items() if k != "error_after"} | {"events": events}, request)
        else:
            self.answer(reply)


def main():
    parser = argparse.ArgumentParser(description="A scripted OpenAI Responses server for tests.")
    parser.add_argument("script")
    parser.add_argument("--record")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    with open(arguments.script, encoding="utf-8") as f:
        script = Script(f.read(), arguments.record)
    server = Server(("127.0.0.1", arguments.port), ResponsesHandler)
    server.script = script
    print(f"port {server.server_address[1]}", flush=True)
    try:
        server.serve_forever(poll_interval=0.05)
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
