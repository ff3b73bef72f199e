"""A short session of MCP over HTTP, as mitmproxy would have kept it, and what a capture of it says."""

import json
from io import BytesIO
from typing import Any

from mitmproxy import connection, http
from mitmproxy.flow import Error
from mitmproxy.io import FlowWriter

from mcpsniff.capture.reader import open_capture
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.message import Message

BEGAN = 1_790_000_000.0
SECRET = "s3cr3t-of-a-client"
SESSION = "5c1e0b7f93a2d4e6"
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
RESULT = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}


def said(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def event(**members: Any) -> bytes:
    return b"event: message\ndata: " + said(**members) + b"\n\n"


def flow(
    at: float,
    body: bytes,
    answer: bytes | None,
    *,
    kind: str = "application/json",
    method: str = "POST",
    url: str = "https://mcp.example/mcp",
    status: int = 200,
    lasts: float = 0.2,
    **headers: str,
) -> http.HTTPFlow:
    """An exchange that began ``at`` seconds after BEGAN; without an answer it has no response."""
    t = BEGAN + at
    client = connection.Client(peername=("127.0.0.1", 50001), sockname=("127.0.0.1", 8080), timestamp_start=t)
    made = http.HTTPFlow(client, connection.Server(address=("mcp.example", 443)))
    usual = {"Authorization": f"Bearer {SECRET}", "Accept": "application/json, text/event-stream"}
    usual |= {"Content-Type": "application/json"} if body else {}
    usual |= {name.replace("_", "-"): value for name, value in headers.items()}
    made.request = http.Request.make(method, url, body, usual)
    made.request.timestamp_start, made.request.timestamp_end = t, t + 0.01
    if answer is not None:
        made.response = http.Response.make(status, answer, {"Content-Type": kind} if answer else {})
        made.response.timestamp_start, made.response.timestamp_end = t + 0.05, t + lasts
    return made


def session() -> list[http.HTTPFlow]:
    """initialize, initialized, a GET stream with a question and an answer of the client, a call over a stream."""
    opened = {"Mcp_Session_Id": SESSION, "MCP_Protocol_Version": "2025-11-25"}
    first = flow(0, said(id=0, method="initialize", params=INITIALIZE), said(id=0, result=RESULT))
    assert first.response is not None
    first.response.headers["Mcp-Session-Id"] = SESSION
    asks = event(id=7, method="ping") + b": still there\n\n"
    listens = flow(2, b"", asks, kind="text/event-stream", method="GET", lasts=6, **opened)
    return [
        first,
        flow(1, said(method="notifications/initialized"), b"", status=202, **opened),
        flow(3, said(id=7, result={}), b"", status=202, **opened),
        flow(
            4,
            said(id=1, method="tools/list"),
            event(id=1, result={"tools": []}),
            kind="text/event-stream",
            **opened,
        ),
        listens,  # mitmproxy writes exchanges down in the order in which they end
    ]


def page() -> http.HTTPFlow:
    """Something that is not MCP."""
    return flow(0.5, b"", b"<p>hello", kind="text/html", method="GET", url="https://other.example/index.html")


def flow_file(flows: list[Any]) -> bytes:
    out = BytesIO()
    writer = FlowWriter(out)
    for one in flows:
        writer.add(one)
    return out.getvalue()


def broken_by(made: http.HTTPFlow, words: str) -> http.HTTPFlow:
    assert made.response is not None
    made.error = Error(words, BEGAN + 9)
    made.response.timestamp_end = None
    return made


def decoded(path: str) -> tuple[list[Message], list[Exchange], list[Finding]]:
    capture = open_capture(path)
    decoder = Decoder(capture.header)
    events = [event for record in capture.records() for event in decoder.feed(record)] + decoder.finish()
    assert not capture.damage
    return (
        [one for one in events if isinstance(one, Message)],
        [one for one in events if isinstance(one, Exchange)],
        [one for one in events if isinstance(one, Finding)],
    )
