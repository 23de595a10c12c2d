"""A local HTTP proxy for end-to-end tests. Python standard library only.

    fake_proxy.py RECORD.jsonl TARGET_PORT

Prints `port N` and serves 127.0.0.1 until it is ended. Whatever host a client names, the bytes go to 127.0.0.1:TARGET_PORT, so
that names that exist nowhere can be used. Both ways of HTTP are spoken: CONNECT, after which it passes bytes both ways, and
requests with an absolute address. Each is one line of RECORD: {"method", "target", "headers"}.
"""

import json
import socket
import sys
import threading


def pass_on(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def read_head(client):
    head = b""
    while b"\r\n\r\n" not in head:
        data = client.recv(65536)
        if not data:
            return None, b""
        head += data
    head, _, rest = head.partition(b"\r\n\r\n")
    return head, rest


def serve(client, target, record, lock):
    head, rest = read_head(client)
    if head is None:
        client.close()
        return
    first, *lines = head.decode("latin-1").split("\r\n")
    method, address, version = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    with lock, open(record, "a", encoding="utf-8") as f:
        f.write(json.dumps({"method": method, "target": address, "headers": headers}) + "\n")
    server = socket.create_connection(("127.0.0.1", target))
    if method == "CONNECT":
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        server.sendall(rest)
    else:
        # One request a connection: the rest of it goes on as it is.
        path = "/" + address.split("://", 1)[1].partition("/")[2]
        kept = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
        again = "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close"])
        server.sendall(again.encode("latin-1") + b"\r\n\r\n" + rest)
    back = threading.Thread(target=pass_on, args=(server, client), daemon=True)
    back.start()
    pass_on(client, server)
    back.join()
    client.close()
    server.close()


def main():
    record, target, lock = sys.argv[1], int(sys.argv[2]), threading.Lock()
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"port {listener.getsockname()[1]}", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, target, record, lock), daemon=True).start()


if __name__ == "__main__":
    main()
