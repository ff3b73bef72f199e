"""A server that answers whatever has an id, and says every tenth time that it did.

    python server.py [PORT]

Without a port it talks on pipes. With one it is a server over HTTP, which answers at /mcp with event streams, and at
/json with bodies.
"""

import json
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ECHO = {"name": "echo", "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}}}
OPENING = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to a request."""
    if "id" not in message or "method" not in message:
        return None
    return {"jsonrpc": "2.0", "id": message["id"], "result": result(message)}


def result(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        return OPENING
    if message["method"] == "tools/list":
        return {"tools": [ECHO]}
    said = message.get("params", {}).get("arguments", {}).get("message", "")
    return {"content": [{"type": "text", "text": f"Echo: {said}"}]}


def on_pipes() -> None:
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        said = [answer(message)]
        if said == [None]:
            continue
        if message["method"] == "tools/call" and message["id"] and message["id"] % 10 == 0:
            said.append({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
        sys.stdout.write("".join(json.dumps(one) + "\n" for one in said))
        sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        said = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if said is None:
            self._say(202, b"")
        elif self.path == "/json":
            self._say(200, json.dumps(said).encode(), "application/json")
        else:
            event = f"event: message\r\ndata: {json.dumps(said)}\r\n\r\n".encode()
            self._head(200, "text/event-stream", ("Transfer-Encoding", "chunked"))
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(event), event))
            self.wfile.flush()

    def do_GET(self) -> None:
        self._say(405, b"")

    def do_DELETE(self) -> None:
        self._say(200, b"")

    def _say(self, status: int, body: bytes, kind: str = "") -> None:
        self._head(status, kind, ("Content-Length", str(len(body))))
        self.wfile.write(body)
        self.wfile.flush()

    def _head(self, status: int, kind: str, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Mcp-Session-Id", self.headers.get("Mcp-Session-Id") or uuid.uuid4().hex)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, *arguments: object) -> None:
        """Who breaks off a connection is not worth a word."""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    else:
        on_pipes()
