"""A small MCP server for requests that are sent again: Streamable HTTP at /mcp, HTTP+SSE at /sse, or on pipes.

The tool ``add`` adds; ``ask`` first asks the client (elicitation/create), and says what it answered. Over Streamable
HTTP there are sessions; requests without one get 400, without ``Authorization: Bearer EX-secret`` at /guarded 401.

    python little_server.py        on pipes
"""

import json
import queue
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
SECRET = "EX-secret"


def answer(message: Json, ask: Callable[[Json], Json], say: Callable[[Json], None]) -> Json:
    """The answer to a request; ``ask`` asks the client, ``say`` notifies it."""
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        info = {"name": "little", "version": "1"}
        result: Json = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    elif method == "tools/list":
        schema = {"type": "object"}
        hints = {"add": {"readOnlyHint": True}, "ask": {"readOnlyHint": True}, "drop": {"destructiveHint": True}}
        result = {"tools": [{"name": name, "inputSchema": schema, "annotations": hint} for name, hint in hints.items()]}
    elif method == "tools/call" and params["name"] == "add":
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "adding"}})
        total = params["arguments"]["a"] + params["arguments"]["b"]
        result = {"content": [{"type": "text", "text": str(total)}]}
    elif method == "tools/call" and params["name"] == "ask":
        question = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
        said = ask({"jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create", "params": question})
        result = {"content": [{"type": "text", "text": json.dumps(said.get("result", said.get("error")))}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(params.get("arguments"), ensure_ascii=False)}]}
    else:
        error = {"code": -32601, "message": f"no {method} here"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions: dict[str, "queue.Queue[Json]"]
    asked: list[Json]
    heads: list[dict[str, str]]
    twice: set[str]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path != "/sse":
            self.reply(405)
            return
        session = uuid.uuid4().hex
        said = self.sessions[session] = queue.Queue()
        self.begin_stream()
        self.event(f"/messages?sessionId={session}", "endpoint")
        try:
            while (message := said.get(timeout=20)) is not None:
                self.event(json.dumps(message))
        except (OSError, queue.Empty):
            pass
        self.close_connection = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        message = json.loads(body)
        self.asked.append(message)
        self.heads.append({name.lower(): value for name, value in self.headers.items()})
        self.twice |= {name for name in self.heads[-1] if len(self.headers.get_all(name)) > 1}
        path, _, query = self.path.partition("?")
        if path == "/messages":
            self.legacy(message, self.sessions[query.partition("=")[2]])
        elif path == "/guarded" and self.headers.get("Authorization") != f"Bearer {SECRET}":
            self.reply(401, b'{"error":"unauthorized"}')
        elif message.get("method") != "initialize" and self.headers.get("Mcp-Session-Id") not in self.sessions:
            self.reply(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}')
        else:
            self.streamable(message)

    def legacy(self, message: Json, stream: "queue.Queue[Json]") -> None:
        self.reply(202)
        if "method" not in message:
            self.sessions["answers"].put(message)
        elif "id" in message:

            def ask(question: Json) -> Json:
                stream.put(question)
                return self.sessions["answers"].get(timeout=20)

            threading.Thread(target=lambda: stream.put(answer(message, ask, stream.put)), daemon=True).start()

    def streamable(self, message: Json) -> None:
        if "method" not in message:
            self.sessions["answers"].put(message)
        if "method" not in message or "id" not in message:
            self.reply(202)
        elif message["method"] == "initialize":
            session = uuid.uuid4().hex
            self.sessions[session] = queue.Queue()
            said = json.dumps(answer(message, dict, print)).encode()
            self.reply(200, said, {"Mcp-Session-Id": session})
        else:
            self.begin_stream()

            def ask(question: Json) -> Json:
                self.event(json.dumps(question))
                return self.sessions["answers"].get(timeout=20)

            self.event(json.dumps(answer(message, ask, lambda said: self.event(json.dumps(said)))))
            self.wfile.write(b"0\r\n\r\n")

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def event(self, data: str, name: str = "message") -> None:
        block = f"event: {name}\ndata: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block))
        self.wfile.flush()

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Served:
    """A running server: what it was asked, and with which headers."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.asked: list[Json] = []
        self.heads: list[dict[str, str]] = []
        self.twice: set[str] = set()
        """Headers that came more than once in one request."""


@contextmanager
def serving() -> Iterator[Served]:
    """Serve on a free port of this machine."""
    state = type(
        "State", (Handler,), {"sessions": {"answers": queue.Queue()}, "asked": [], "heads": [], "twice": set()}
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), state)
    server.daemon_threads = True
    server.block_on_close = False
    served = Served(server.server_address[1])
    served.asked, served.heads, served.twice = state.asked, state.heads, state.twice  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def on_pipes() -> None:
    """Serve one client on stdin and stdout."""

    def say(message: Json) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def ask(question: Json) -> Json:
        say(question)
        return dict(json.loads(sys.stdin.readline()))

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            say(answer(message, ask, say))


if __name__ == "__main__":
    on_pipes()
