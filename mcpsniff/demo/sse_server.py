"""The demo's server on the legacy transport (MCP 2024-11-05, HTTP with SSE): it tells the weather, with two faults.

    python -m mcpsniff.demo.sse_server

It prints its URL. Its faults are seen in the field, too: its heartbeat is an event where a comment was meant; and a
forecast of several days is an event named `result`, so that clients, who listen for `message`, wait in vain. That its
endpoint is an absolute URL is no fault, but would lead a client past any proxy.
"""

import json
import queue
import select
import uuid
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

REVISION = "2024-11-05"

type Json = dict[str, Any]

DAYS: Json = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS: list[Json] = [{"name": "forecast", "description": "Tell the weather.", "inputSchema": DAYS}]

STREAMS: dict[str, queue.Queue[str]] = {}
"""What is still to be sent on the stream of each session."""


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server_version = "weather/1.0"
    sys_version = ""
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Open the stream of a session, and send what there is until the client goes."""
        if self.path != "/sse":
            self._reply(404)
            return
        session = uuid.uuid4().hex
        events = STREAMS[session] = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        host, port = self.connection.getsockname()
        try:
            self._chunk(f"event: endpoint\ndata: http://{host}:{port}/messages?sessionId={session}\n\n")
            while not select.select([self.connection], [], [], 0)[0]:  # readable: the client has gone
                with suppress(queue.Empty):
                    self._chunk(events.get(timeout=0.05))
        except OSError:
            pass
        self.close_connection = True
        del STREAMS[session]

    def do_POST(self) -> None:
        """Take a message; what it leads to goes to the stream of its session."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        events = STREAMS.get(parse_qs(url.query).get("sessionId", [""])[0])
        if url.path != "/messages":
            self._reply(405 if url.path == "/sse" else 404)
        elif events is None:
            self._reply(404)
        else:
            self._reply(202)
            message = json.loads(body)
            if "id" in message:
                _answer(message, events)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the names are those of the base class
        """Say nothing."""

    def _reply(self, status: int) -> None:
        self.send_response(status)
        if status == 405:
            self.send_header("Allow", "GET")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


def _answer(request: Json, events: "queue.Queue[str]") -> None:
    method, params, request_id = request["method"], request.get("params", {}), request["id"]
    if method == "initialize":
        info = {"name": "weather", "version": "1.0.0"}
        events.put(
            _result(request_id, {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info})
        )
    elif method == "tools/list":
        events.put("data: heartbeat\n\n")  # the first fault: ": heartbeat" would be a comment
        events.put(_result(request_id, {"tools": TOOLS}))
    elif method == "tools/call" and params["name"] == "forecast":
        arguments, token = params["arguments"], params["_meta"]["progressToken"]
        progress = {"progressToken": token, "progress": 1, "total": 2}
        events.put(_event({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}))
        days = arguments["days"]
        weather = "sunny, 21 degrees" if days == 1 else "sunny until Thursday, then rain"
        result = {"content": [{"type": "text", "text": f"{arguments['city']}: {weather}."}]}
        events.put(_result(request_id, result, name="message" if days == 1 else "result"))  # the second fault
    elif method == "ping":
        events.put(_result(request_id, {}))
    else:
        error = {"code": -32601, "message": f"Method not found: {method}"}
        events.put(_event({"jsonrpc": "2.0", "id": request_id, "error": error}))


def _result(request_id: object, result: Json, name: str = "message") -> str:
    return _event({"jsonrpc": "2.0", "id": request_id, "result": result}, name)


def _event(message: Json, name: str = "message") -> str:
    return f"event: {name}\ndata: {json.dumps(message, separators=(',', ':'))}\n\n"


def main() -> None:
    """Serve on a free port of loopback until the process is ended."""
    ThreadingTCPServer.daemon_threads = True
    server = ThreadingTCPServer(("127.0.0.1", 0), Handler)  # an HTTPServer would look up a name
    print(f"http://127.0.0.1:{server.server_address[1]}/sse", flush=True)  # noqa: T201  for whoever started it
    server.serve_forever()


if __name__ == "__main__":
    main()
