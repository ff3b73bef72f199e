"""Sessions over HTTP for the tests of transcripts: healthy ones, and one with everything that may go wrong."""

from mcpsniff.capture.records import Record
from tests.dialogue import play

SESSION_ID = "1868a90c4bd04f95a1c7e0b6f1d2c3e4"
OPEN_ONE = f"@http\n@open 2025-11-25 {SESSION_ID}\n"


def records(dialogue: str) -> list[Record]:
    """The records of a dialogue over HTTP, whatever is found in it."""
    return play(dialogue if dialogue.startswith("@http") else f"@http\n{dialogue}").records


def call(number: int, tool: str = "echo") -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{tool}"}}}}'


def result(number: int) -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":[]}}}}'


TROUBLE = f"""\
@http
C> GET /.well-known/oauth-protected-resource/mcp
S> 404 not found
C> POST /mcp {{"jsonrpc":"2.0","id":9,"method":"initialize","params":{{}}}}
S> 401
    WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:8000/x"
@open 2025-11-25 {SESSION_ID}
C2> GET /mcp
S2> 405
C> POST /mcp {call(2)}
S> 500 oops
C> POST /mcp/ {call(3)}
S> 307
    Location: /mcp
C> POST /mcp {call(4)}
M> 502 {{"error":"cannot reach the upstream (refused)","by":"mcpsniff"}}
C> EOF
C> POST /mcp {call(5, "slow")}
+ 3s
S> RESET
C> POST /mcp {call(6, "slow")}
S> 200 STREAM
S> EVENT id=1 {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"x"}}}}
S> COMMENT still here
S> EVENT event=ping 2026
S> EVENT event=ping 2027
S> RESET
C3> GET /mcp
    Last-Event-ID: 1
S3> 200 STREAM
S3> EVENT id=1 {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"x"}}}}
S3> EVENT id=2 {result(6)}
S3> END
C> POST /mcp {{"jsonrpc":"2.0","id":7,"method":"ping"}}
S> 404 {{"jsonrpc":"2.0","id":null,"error":{{"code":-32001,"message":"Session not found"}}}}
C> DELETE /mcp
S> 405
@session
@version
C4> POST /mcp {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{{"name":"d","version":"1"}}}}}}
S4> 200 {{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"2025-06-18","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}
C5> GET /ws
    Upgrade: websocket
    Connection: Upgrade
S5> 101
    Upgrade: websocket
S5| b"hello"
C6| b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"
C7> GET /
M7> 403 mcpsniff: the request's Host names evil
C8> POST /mcp {call(8, "patience")}
"""  # noqa: E501


def hostile(text: str) -> list[Record]:
    """Exchanges with ``text`` wherever HTTP lets a peer say something: targets, headers, comments, event names, ids."""
    evil = text.encode()
    said = records("C> GET /\nS> 200")[:2]
    heads = (
        (
            0,
            b"GET /"
            + "\u202eevil\x9b<script>`[x](y)".encode()
            + b" HTTP/1.1\r\nHost: x\r\nLast-Event-ID: "
            + evil
            + b"\r\n\r\n",
        ),
        (
            1,
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: "
            + evil
            + b"\n\nevent: "
            + evil
            + b"\nid: "
            + evil
            + b"\ndata: "
            + evil
            + b"\n\nevent: endpoint\ndata: /"
            + evil
            + b"\n\n"
            + b"id: "
            + evil
            + b'\ndata: {"jsonrpc":"2.0","method":"x"}\n\n',
        ),
    )
    said += [Record(number * 1000, "chunk", channel, data) for number, (channel, data) in enumerate(heads)]
    more = records(
        "C> GET /\nS> 401\nC> GET /\nS> 302\nC> GET /\nM> 502 " + text.replace("\x1b", "").replace("\n", " ")
    )
    for record in more:
        body = record.body
        if isinstance(body, bytes):
            body = body.replace(b"Unauthorized\r\n", b"no\r\nWWW-Authenticate: " + evil + b"\r\n")
            body = body.replace(b"HTTP/1.1 302 \r\n", b"HTTP/1.1 302 \r\nLocation: " + evil + b"\r\n")
        elif "conn" in body:
            body = {**body, "conn": 1}
        said.append(record._replace(t=record.t + 5000, channel=(record.channel or 0) + 2, body=body))
    return said


def with_other_reads(said: list[Record], cuts: list[int]) -> list[Record]:
    """The records with other reads: chunks are cut in two, and each record has a moment of its own."""
    out: list[Record] = []
    for number, record in enumerate(said):
        cut = cuts[number % len(cuts)]
        pieces = [record.body[:cut], record.body[cut:]] if record.kind == "chunk" else [record.body]
        out += [record._replace(body=piece) for piece in pieces if piece]
    return [record._replace(t=record.t + number) for number, record in enumerate(out)]
