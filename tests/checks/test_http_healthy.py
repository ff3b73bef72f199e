"""A law: what healthy clients and servers do over HTTP is no finding above info, on any transport, in any revision."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Header, Record
from mcpsniff.checks import INFO
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.revisions import LEGACY, R_2025_03_26, R_2025_11_25
from tests.decoder.told import recut
from tests.dialogue import play
from tests.sessions import decode, findings

LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
LISTED = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}'
CALL = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":2}}}'
PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}'
ASKED = '{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}'
SAMPLED = '{"jsonrpc":"2.0","id":0,"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}'
CALLED = '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'
CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
CANCEL = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}'
INITIALIZE = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"c","version":"1"}}}'
)

STREAMABLE = f"""
@open {{revision}}
C2> GET /mcp
S2> 200 STREAM
S2> COMMENT keepalive
C> POST /mcp {LIST}
S> 200 {LISTED}
C> POST /mcp {CALL}
S> 200 STREAM
S> EVENT {PROGRESS}
S> COMMENT ping - 2026-01-01 00:00:00
S> EVENT event=message {ASKED}
C3> POST /mcp {SAMPLED}
S3> 202
S> EVENT {CALLED}
S> END
S2> EVENT {CHANGED}
C> DELETE /mcp
S> 200
C2> EOF
C3> EOF
C> EOF
"""

RESUMED = f"""
@open 2025-11-25
C> POST /mcp {LIST}
S> 200 {LISTED}
C> POST /mcp {CALL}
S> 200 STREAM
S> EVENT id=a_1 retry=500
S> EVENT id=a_2 {PROGRESS}
S> END
+ 600ms
C> GET /mcp
    Last-Event-ID: a_1
S> 200 STREAM
S> EVENT id=a_2 {PROGRESS}
S> EVENT id=a_3 {ASKED}
C2> POST /mcp {SAMPLED}
S2> 202
S> EVENT id=a_4 {CALLED}
S> END
C> DELETE /mcp
S> 405
"""

BROKEN_OFF = f"""
@open 2025-11-25
C> POST /mcp {CALL}
S> 200 STREAM
S> EVENT id=a_1
S> EVENT id=a_2 {PROGRESS}
C> RESET
+ 1s
C> GET /mcp
    Last-Event-ID: a_2
S> 200 STREAM
S> EVENT id=a_3 {CALLED}
S> END
"""

WITHOUT_SESSION = f"""
@open 2025-11-25 none
C2> GET /mcp
S2> 405
C> POST /mcp {LIST}
S> 200 STREAM
S> EVENT {LISTED}
S> END
C> EOF
C3> POST /mcp {CALL}
S3> 200 {CALLED}
C3> EOF
"""

WITH_SSE = f"""
@sse
C> POST /messages?sessionId=1 {LIST}
S> 202 Accepted
S9> EVENT {LISTED}
S9> COMMENT ping
C> POST /messages?sessionId=1 {CALL}
S> 202 Accepted
S9> EVENT event=message {PROGRESS}
S9> EVENT event=message {ASKED}
C2> POST /messages?sessionId=1 {SAMPLED}
S2> 202 Accepted
S9> EVENT {CALLED}
S9> EVENT {CHANGED}
C9> EOF
C> EOF
C2> EOF
"""

AUTHORIZE = (
    "response_type=code&client_id=x&redirect_uri=http%3A%2F%2Flocalhost%3A3000%2Fback&state=7"
    "&code_challenge=c&code_challenge_method=S256&resource=http%3A%2F%2F127.0.0.1%3A9000%2Fmcp"
)
TOKEN = "grant_type=authorization_code&client_id=x&code=*&code_verifier=*&resource=http%3A%2F%2F127.0.0.1%3A9000%2Fmcp"
REGION = '{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}'
FILTER = '"notifications":{"toolsListChanged":true}'
MODERN = f"""
@modern
C> POST /mcp {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":$ENVELOPE}}}}
S> 200 {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","tools":[{{"name":"t","inputSchema":{REGION}}}]}}}}
C> POST /mcp
    Mcp-Method: tools/call
    Mcp-Name: t
    Mcp-Param-R: eu
    {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t","arguments":{{"r":"eu"}},"_meta":$ENVELOPE}}}}
S> 200
    {{"jsonrpc":"2.0","id":2,"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"roots/list"}}}}}}}}
C> POST /mcp
    Mcp-Method: tools/call
    Mcp-Name: t
    {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"t","inputResponses":{{}},"_meta":$ENVELOPE}}}}
S> 200 STREAM
    X-Accel-Buffering: no
S> EVENT {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"x"}}}}
S> EVENT {{"jsonrpc":"2.0","id":3,"result":{{"resultType":"complete","content":[]}}}}
S> END
C2> POST /mcp {{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{{{FILTER},"_meta":$ENVELOPE}}}}
S2> 200 STREAM
S2> EVENT {{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{{FILTER}}}}}
S2> COMMENT ping
C> POST /mcp {{"jsonrpc":"2.0","id":4,"method":"prompts/list","params":{{"_meta":$ENVELOPE}}}}
S> 404 {{"jsonrpc":"2.0","id":4,"error":{{"code":-32601,"message":"Method not found"}}}}
C2> EOF
"""

PROBES = {
    "a POST before the GET of HTTP+SSE": f"C> POST /sse {INITIALIZE}\nS> 405\n{WITH_SSE}",
    "a POST that is not found before the GET of HTTP+SSE": f"C> POST /sse {INITIALIZE}\nS> 404 Not Found\n{WITH_SSE}",
    "server/discover before initialize": (
        '@version 2026-07-28\nC> POST /mcp {"jsonrpc":"2.0","id":1,"method":"server/discover",'
        '"params":{"_meta":$ENVELOPE}}\n'
        'S> 400 {"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Missing session ID"}}\n'
        "    Mcp-Session-Id: 0c9b3c5f7d1e4f0aa7e4d2b6c8f01234\n@version\n"
        + STREAMABLE.replace("{revision}", "2025-11-25")
    ),
    "server/discover at a server that answers everything": (
        '@version 2026-07-28\nC> POST /mcp {"jsonrpc":"2.0","id":1,"method":"server/discover",'
        '"params":{"_meta":$ENVELOPE}}\n'
        'S> 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}\n@version\n'
        + WITHOUT_SESSION
    ),
    "authorization": (
        f"C> POST /mcp {INITIALIZE}\nS> 401\n    WWW-Authenticate: Bearer\n"
        "C> GET /.well-known/oauth-protected-resource/mcp\n    Accept: */*\nS> 404\n"
        "C> GET /.well-known/oauth-protected-resource\n    Accept: */*\n"
        'S> 200 {"resource":"http://127.0.0.1:9000/mcp","authorization_servers":["https://as.example"]}\n'
        "C> GET /.well-known/oauth-authorization-server\n    Accept: */*\n"
        'S> 200 {"issuer":"http://127.0.0.1:9000","token_endpoint":"http://127.0.0.1:9000/token"}\n'
        "C> POST /register\n    Accept: */*\n"
        '    {"redirect_uris":["http://localhost:3000/back"],"client_name":"c"}\n'
        'S> 201 {"client_id":"x","redirect_uris":["http://localhost:3000/back"]}\n'
        f"C> GET /authorize?{AUTHORIZE}\n    Accept: text/html\nS> 302\n    Location: http://localhost:3000/back?code=*&state=7\n"
        f"C> POST /token {TOKEN}\n    Accept: */*\n    Content-Type: application/x-www-form-urlencoded\n"
        'S> 200 {"access_token":"***","token_type":"Bearer"}\n' + STREAMABLE.replace("{revision}", "2025-06-18")
    ),
    "a port probe": "C8> EOF\n" + WITHOUT_SESSION,
}

SESSIONS = {
    **{f"Streamable HTTP {revision}": STREAMABLE.replace("{revision}", revision) for revision in LEGACY[1:]},
    "resumed": RESUMED,
    "broken off": BROKEN_OFF,
    "without a session": WITHOUT_SESSION,
    "without a session, without a header": WITHOUT_SESSION.replace(R_2025_11_25, R_2025_03_26),
    "HTTP+SSE": WITH_SSE,
    "2026-07-28": MODERN,
    **PROBES,
}


@pytest.mark.parametrize("dialogue", SESSIONS.values(), ids=SESSIONS)
def test_a_healthy_session_has_no_finding_above_info(dialogue: str) -> None:
    played = play("@http\n" + dialogue)
    assert [one for one in played.findings if one.severity != INFO] == [], str(played)


def blamed(events: Iterable[Event]) -> list[str]:
    """What is said of the peers, but for milestones."""
    said = [one for one in findings(events) if one.severity != INFO and one.blame in ("client", "server")]
    return [f"{one.code} {one.text}" for one in said]


def later_part(records: Sequence[Record], first: int) -> Header:
    """The header of a part that begins with record ``first``: what was open then, and how far it had come."""
    channels: dict[str, Any] = {}
    for record in records[:first]:
        number = str(record.channel)
        if record.kind == "open":
            channels[number] = {**record.body, "offset": 0}
        elif record.kind == "chunk":
            channels[number]["offset"] += len(record.body)
        elif record.kind == "close":
            del channels[number]
    return Header("01J00000000000000000000000", 2, "2026-11-29T10:00:00.000000Z", "http", channels=channels)


@pytest.fixture(scope="module")
def said() -> dict[str, list[Record]]:
    """What is recorded of each session."""
    return {name: play("@http\n" + dialogue, checks=[]).records for name, dialogue in SESSIONS.items()}


def without(records: Sequence[Record], first: int, most: int) -> list[Record]:
    """The records without up to ``most`` reads of one channel, beginning with record ``first``; gaps in their place."""
    lost = [
        number
        for number in range(first, len(records))
        if records[number].kind == "chunk" and records[number].channel == records[first].channel
    ][:most]
    gaps = {
        number: records[number]._replace(kind="gap", body={"bytes": len(records[number].body), "why": "queue"})
        for number in lost
    }
    return [gaps.get(number, record) for number, record in enumerate(records)]


@pytest.mark.parametrize("name", SESSIONS)
def test_nothing_is_concluded_from_what_was_said_before_the_capture(name: str, said: dict[str, list[Record]]) -> None:
    for first in range(1, len(said[name])):
        decoder = Decoder(later_part(said[name], first), joined_late=True)
        assert blamed(decode(said[name][first:], decoder=decoder)) == [], f"from record {first} on: {said[name][first]}"


@pytest.mark.parametrize("name", SESSIONS)
def test_nothing_is_concluded_from_what_the_recorder_lost(name: str, said: dict[str, list[Record]]) -> None:
    for first, record in enumerate(said[name]):
        if record.kind == "chunk":
            assert blamed(decode(without(said[name], first, 1))) == [], f"without {record}"


@given(st.sampled_from(list(SESSIONS)), st.sampled_from([1, 3, 7, 20, 60]), st.data())
def test_nothing_is_concluded_from_any_bytes_that_are_missing(
    said: dict[str, list[Record]], name: str, size: int, data: st.DataObject
) -> None:
    """The reads are short, so that a loss, or the beginning of the capture, falls anywhere into heads and bodies."""
    records = list(recut(said[name], size))
    first = data.draw(st.integers(1, len(records) - 1))
    decoder = Decoder(later_part(records, first), joined_late=True)
    assert blamed(decode(records[first:], decoder=decoder)) == []
    if records[first].kind == "chunk":
        assert blamed(decode(without(records, first, data.draw(st.integers(1, 9))))) == []
