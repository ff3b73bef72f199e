"""Two sessions over HTTP with everything that a filter can ask for: docs/filter.md counts on it."""

import json

from tests.dialogue import play

FIRST, SECOND = "6f1e9a0c8f2b4f0cbd6a0e5a4d3c2b1a", "1868a90c4bd04f95a1c7e0b6f1d2c3e4"


def _said(**members: object) -> str:
    return json.dumps({"jsonrpc": "2.0", **members})


def _call(number: int, tool: str) -> str:
    return _said(id=number, method="tools/call", params={"name": tool})


def _result(number: int) -> str:
    return _said(id=number, result={"content": [{"type": "text", "text": "done"}]})


def _opening(number: int, revision: str) -> tuple[str, str]:
    client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    server = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    return _said(id=number, method="initialize", params=client), _said(id=number, result=server)


ASKED, ANSWERED = _opening(0, "2024-11-05")
BEGUN, ACCEPTED = _opening(0, "2025-11-25")
INITIALIZED = _said(method="notifications/initialized")
CHANGED = _said(method="notifications/tools/list_changed")
EXPIRED = _said(id=None, error={"code": -32001, "message": "Session not found"})

DIALOGUE = f"""\
@http
# a client of both transports, and a server of the older one
C> POST /sse {ASKED}
S> 405 Method Not Allowed
C> GET /sse
S> 200 STREAM
S> EVENT event=endpoint /messages?sessionId={FIRST}
C2> POST /messages?sessionId={FIRST} {ASKED}
S2> 202 Accepted
S> EVENT {ANSWERED}
C2> POST /messages?sessionId={FIRST} {INITIALIZED}
S2> 202 Accepted
C2> POST /messages?sessionId={FIRST} {_call(1, "echo")}
S2> 202 Accepted
S> EVENT {_result(1)}
S> COMMENT ping
C> EOF
C2> EOF
# another server, with sessions
C3> GET /.well-known/oauth-protected-resource
S3> 404 no
C3> POST /mcp {BEGUN}
S3> 200 {ACCEPTED}
    Mcp-Session-Id: {SECOND}
@session {SECOND}
@version 2025-11-25
C3> POST /mcp {INITIALIZED}
S3> 202
C4> GET /mcp
S4> 200 STREAM
C3> POST /mcp {_call(1, "echo")}
S3> 200 {_result(1)}
C3> POST /mcp {_call(2, "sleep")}
S3> 200 STREAM
S3> EVENT id=a1 retry=500
S3> END
S4> EVENT {CHANGED}
+ 600ms
C3> GET /mcp
    Last-Event-ID: a1
S3> 200 STREAM
S3> EVENT id=a2 {_result(2)}
S3> END
C3> POST /mcp {_call(3, "fail")}
S3> 500 oops
C3> POST /mcp {_call(4, "echo")}
S3> 404 {EXPIRED}
C3> DELETE /mcp
S3> 405
C4> EOF
C3> EOF
"""

SAMPLE = play(DIALOGUE).records
