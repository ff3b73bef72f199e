"""What a transcript says about HTTP besides the messages, case by case."""

import re

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.transcript.payload import NONE
from tests.transcript.http_sessions import OPEN_ONE, TROUBLE, call, hostile, records, result
from tests.transcript.rendering import markdown, text

_ROW = re.compile(r" *[\d.:]+ +(?P<number>#\d+|)  (?P<lanes>.{3}) (?P<rest>.*)$")


def rows(said: str | list[Record], width: int = 160) -> list[str]:
    """The rows at this width without times, lanes, figures and findings; what stands below a row belongs to it."""
    shown = text(records(said) if isinstance(said, str) else said, width=width, style=NONE, transport="http")
    found: list[str] = []
    in_finding = False
    for line in shown.split("\n\n")[2].splitlines():
        match = _ROW.match(line)
        if match is None:
            in_finding = in_finding or line.strip().startswith(("✗", "▲", "•", "·"))
            found[-1] += "" if in_finding else f" {line.strip()}"
            continue
        in_finding = False
        rest = re.sub(r"(  +[\d.,]+ [KM]?B)?(  +[\d.]+ (µs|ms|s))?$", "", match["rest"])
        found.append(re.sub("  +", "  ", f"{match['number']} {rest.strip()}"))
    return found


def http(said: str | list[Record], width: int = 160) -> list[str]:
    """Those in the lane of HTTP."""
    return [row.partition("http │ ")[2] for row in rows(said, width) if "http │ " in row]


def test_an_answer_in_the_body_needs_no_row_of_http() -> None:
    said = rows(OPEN_ONE + f"C> POST /mcp {call(1)}\nS> 200 {result(1)}")
    assert said[-2:] == ["#11 → tools/call echo  id 1", "#13 ← tools/call echo  answered #11 · HTTP 200 · id 1"]
    assert http(OPEN_ONE + f"C> POST /mcp {call(1)}\nS> 200 {result(1)}") == ["202 POST /mcp  for #8  conn 0"]


def test_an_answer_on_the_stream_of_its_post_needs_none_either() -> None:
    asked = call(1).replace('"name"', '"_meta":{"progressToken":1},"name"')
    step = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    said = rows(OPEN_ONE + f"C> POST /mcp {asked}\nS> 200 STREAM\nS> EVENT {step}\nS> EVENT {result(1)}\nS> END")
    assert said[-2] == "#14 ← notifications/progress 1  1 · of #11"
    assert said[-1] == "#16 ← tools/call echo  answered #11 · POST stream · id 1"


@pytest.mark.parametrize(
    ("said", "row"),
    [
        ("C> GET /mcp\nS> 405", "405 GET /mcp  offers no GET stream  conn 0"),
        ("C> DELETE /mcp\nS> 200", "200 DELETE /mcp  ends the session  conn 0"),
        ("C> DELETE /mcp\nS> 204", "204 DELETE /mcp  ends the session  conn 0"),
        ("C> DELETE /mcp\nS> 405", "405 DELETE /mcp  lets no client end a session  conn 0"),
        ("C> GET /robots.txt\nS> 404 no", "404 GET /robots.txt  no  conn 0"),
        (
            "C> GET /.well-known/oauth-protected-resource\nS> 404 Not Found",
            "404 GET /.well-known/oauth-protected-resource  looks for resource metadata, finds none  conn 0",
        ),
        (
            "C> GET /.well-known/oauth-protected-resource\nS> 307\n    Location: /m",
            "307 GET /.well-known/oauth-protected-resource  looks for resource metadata, finds none · to /m  conn 0",
        ),
        (
            (
                f"C> POST /mcp {call(1)}\n    Authorization: Bearer ***\nS> 403\n"
                '    WWW-Authenticate: Bearer error="insufficient_scope", scope="a b"'
            ),
            (
                "403 POST /mcp  refuses #2 · asks for more scope · begins authorization 1 · error insufficient_scope, "
                "scope a b  conn 0"
            ),
        ),
        (
            "C> GET /.well-known/oauth-authorization-server\nS> 200 {}",
            (
                "200 GET /.well-known/oauth-authorization-server  authorization server metadata · "
                "begins authorization 1  conn 0"
            ),
        ),
        ("C> POST /token a=b\n    Content-Type: text/x\nS> 200 {}", "200 POST /token  conn 0"),
        ("C> GET /mcp/\nS> 308\n    Location: /mcp", "308 GET /mcp/  to /mcp  conn 0"),
        ("C> GET /mcp\nM> 403 mcpsniff: no", "403 GET /mcp  said by mcpsniff, not by the server · no  conn 0"),
        ('C> GET /mcp\nM> 502 {"error":"no"}', "502 GET /mcp  said by mcpsniff, not by the server · no  conn 0"),
        ("C> GET /mcp\n+ 2s\nC> EOF", "--- GET /mcp  the client hung up before the response  conn 0"),
        ("C> GET /mcp\n+ 2s", "--- GET /mcp  no response yet  conn 0"),
        (
            'C> GET /mcp\nS| b"HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\nab"\nS> EOF',
            "200 GET /mcp  the server hung up before it was whole  conn 0",
        ),
        (
            'C> GET /mcp\nS| b"HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\nab"\nG> S 3 queue\nS> EOF',
            "200 GET /mcp  bytes of it are not in this capture  conn 0",
        ),
        (
            "C> GET /mcp\n    Upgrade: websocket\nS> 101\n    Upgrade: websocket",
            "101 GET /mcp  another protocol from here on · websocket  conn 0",
        ),
        ('C| b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"', "---  HTTP/2 without TLS (RFC 9113 section 3.3)  conn 0"),
    ],
)
def test_a_request_without_a_message(said: str, row: str) -> None:
    assert http(said)[0] == row


def test_a_refused_attempt_to_open_is_a_probe_and_the_stream_after_it_says_so() -> None:
    said = 'C> POST /sse {"jsonrpc":"2.0","id":0,"method":"initialize"}\nS> 404 no\nC> GET /sse\nS> 200 STREAM'
    assert http(said) == [
        "404 POST /sse  refuses #2 · tried Streamable HTTP · no  conn 0",
        "200 GET /sse  event stream · after the probe #3  conn 0",
    ]
    discover = '@version 2026-07-28\nC> POST /mcp {"jsonrpc":"2.0","id":0,"method":"server/discover"}\nS> 404 no'
    assert http(discover) == ["404 POST /mcp  refuses #2 · a probe for a revision · no  conn 0"]


def test_whoever_is_not_let_in_has_probed_nothing() -> None:
    said = (
        'C> POST /mcp {"jsonrpc":"2.0","id":0,"method":"initialize"}\nS> 401\n    WWW-Authenticate: Bearer\n'
        "C> GET /mcp\nS> 200 STREAM"
    )
    assert http(said) == [
        "401 POST /mcp  refuses #2 · asks for authorization · begins authorization 1 · Bearer  conn 0",
        "200 GET /mcp  event stream  conn 0",
    ]


def test_streams_tell_how_they_end() -> None:
    opened = "C> GET /mcp\nS> 200 STREAM\nS> EVENT id=1 retry=3000\n"
    spoken = 'S> EVENT id=2 {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\nS> COMMENT\nS> COMMENT x\n'
    assert (
        http(opened + spoken + "S> END")[-1] == "end stream #1  1 event · 2 keep-alives · retry 3.0 s · by the server"
    )
    assert http(opened + "S> RESET")[-1] == "end stream #1  0 events · retry 3.0 s · cut off by the server"
    assert http(opened + "C> EOF")[-1] == "end stream #1  0 events · retry 3.0 s · by the client"


def test_a_stream_that_ends_before_its_answer_is_told_with_the_ways_left() -> None:
    asked = OPEN_ONE + f"C> POST /mcp {call(1)}\nS> 200 STREAM\n"
    ends = "C> DELETE /mcp\nS> 200"
    assert http(f"{asked}S> EVENT id=a\nS> END\n{ends}")[1:] == [
        "end stream of #11  before its answer · can be resumed · 0 events · by the server",
        "200 DELETE /mcp  ends the session  conn 0",
    ]
    assert rows(f"{asked}S> EVENT id=a\nS> END\n{ends}")[-1] == "#16 ✗ tools/call echo  abandoned #11 · id 1"
    assert http(f"{asked}S> END")[1:] == ["end stream of #11  before its answer · 0 events · by the server"]


def test_events_on_other_streams_name_them() -> None:
    said = rows(
        OPEN_ONE
        + f"C2> GET /mcp\nS2> 200 STREAM\nC> POST /mcp {call(1)}\nS> 200 STREAM\n"
        + 'S2> EVENT {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        + 'S> EVENT id=x {"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        + f"S2> EVENT {result(1)}\n"
    )
    assert [row for row in said if "stream" in row] == [
        "#10 http │ 200 GET /mcp  event stream  conn 1",
        "#15 ← notifications/tools/list_changed  GET stream #10",
        "#17 ← ping  stream of #12 · event x · id 1",
        "#19 ← tools/call echo  answered #12 · GET stream #10 · not on a stream for answers · id 1",
    ]


def test_events_without_messages_are_counted_and_the_first_of_a_kind_is_told() -> None:
    said = "C> GET /sse\nS> 200 STREAM\n" + "S> EVENT event=ping 1\nS> EVENT event=ping 2\nS> EVENT event=tick 3\n"
    assert http(said) == [
        "200 GET /sse  event stream  conn 0",
        "event ping 1  others like it are counted",
        "event tick 3  others like it are counted",
    ]
    assert "event streams: 1 (1 open), with 3 events" in text(records(said), transport="http")


def test_what_mcpsniff_changes_in_every_request_is_told_once() -> None:
    said = records("C> GET /a\nS> 200\nC> GET /b\nS> 200")
    host = {"length": 14, "data": b"api.test", "by": "mcpsniff"}
    said.insert(3, Record(1500, "rewrite", 0, {"start": 22, **host}))
    said.append(Record(9000, "rewrite", 0, {"start": 90, **host}))
    said.append(Record(9500, "mask", 0, {"start": 5, "length": 3, "what": "authorization", "fp": "00"}))
    said.append(Record(9600, "mask", 0, {"start": 9, "length": 3, "what": "authorization", "fp": "00"}))
    shown = rows(said)
    assert [row for row in shown if "http │" not in row] == [
        "#1 mcpsniff puts the upstream's own name into Host, as the upstream expects it (told once): api.test",
    ], "what was masked is counted in the summary, and shows as stars"
    assert "mcpsniff: changed 2 places on the way, masked 2 secrets in the capture (authorization)" in text(
        said, transport="http"
    )


def test_a_rewritten_endpoint_is_told_with_what_left_and_why() -> None:
    said = records("C> GET /sse\nS> 200 STREAM\nS> EVENT event=endpoint http://localhost:8000/messages?s=1")
    left = b"/messages?s=1\n:                    "
    said.append(Record(9000, "rewrite", 1, {"start": 140, "length": len(left), "data": left, "by": "mcpsniff"}))
    assert rows(said)[-2:] == [
        "#2 http │ endpoint http://localhost:8000/messages?s=1",
        "#3 mcpsniff made the endpoint relative, so that the client does not go past it: /messages?s=1",
    ]


def test_an_answer_of_ours_to_what_was_no_request_is_not_lost() -> None:
    said = records("C> GET /\nS> 200")
    data = b'HTTP/1.1 400 Bad Request\r\n\r\n{"error":"this is not HTTP"}'
    said.append(Record(9000, "rewrite", 1, {"start": 40, "length": 0, "data": data, "by": "mcpsniff"}))
    assert rows(said)[-1] == "#2 mcpsniff answered in the server's place: this is not HTTP"


def test_rows_are_marked_once_there_are_several_conversations() -> None:
    other = "@session\n@version\n@open 2025-06-18 0123456789abcdef0123456789abcdef\n"
    said = rows(f"{OPEN_ONE}{other}C2> POST /mcp {call(1)}\nS2> 200 {result(1)}")
    marks = [match[1] if (match := re.search(r"\[(\d)\]", row)) else "" for row in said]
    assert marks == [*[""] * 4, *["2"] * 6]


def test_several_conversations_have_a_line_each_in_the_head_and_in_the_summary() -> None:
    shown = text(records(TROUBLE), width=160, style=NONE, transport="http")
    for line in (
        r"  conversation  1: c 1 → s 1, 2025-11-25 · session 1868a90c\S*…, ended · server can tools\n",
        r"  conversation  2: d 1 → s 1, 2025-06-18 · no session id, not initialized yet\n",
        r"  \[1\] c 1 → s 1, .*: 14 messages, 8 requests, 4 failed, 2 without an answer",
        r"  \[2\] d 1 → s 1, .*: 3 messages, 2 requests, 1 without an answer",
    ):
        assert re.search(f"^{line}", shown, re.MULTILINE)


def test_requests_of_2026_07_28_are_named_together_by_client() -> None:
    asked = '{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"_meta":$ENVELOPE}}'
    other = asked.replace(
        "$ENVELOPE",
        '{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        '"io.modelcontextprotocol/clientInfo":{"name":"z","version":"9"}}',
    )
    lines = [
        f"C> POST /mcp {asked % 1}",
        "S> 404 no",
        f"C> POST /mcp {asked % 2}",
        "S> 404 no",
        f"C> POST /mcp {other % 3}",
    ]
    said = "\n".join(["@http", "@modern", *lines, "S> 404 no", OPEN_ONE.replace("@http\n", "@version\n")])
    shown = text(records(said), width=160, style=NONE, transport="http")
    assert "  conversation  1: c 1 → ?, 2026-07-28, 3 requests · server can tools\n" in shown
    assert "  conversation  1: z 9 → ?, 2026-07-28, 1 request\n" in shown


def test_the_summary_counts_by_status_connection_and_stream() -> None:
    shown = text(records(TROUBLE), width=160, style=NONE, transport="http")
    assert (
        "  HTTP: 17 exchanges on 10 connections: 1 × 1xx, 5 × 2xx, 1 × 3xx (307), 6 × 4xx (401, 403, 2 × 404, "
        "2 × 405), 2 × 5xx (500, 502), 1 open, 1 without a response,\n"
    ) in shown
    assert "  event streams: 2 (1 resumed), with 5 events and 1 keep-alive\n" in shown
    assert "  mcpsniff: gave 2 answers itself\n" in shown
    assert "3 requests refused with an HTTP status\n  #3 initialize  id 9, HTTP 401 after 1.0 ms\n" in shown


@pytest.mark.parametrize("width", [20, 36, 60, 66, 80, 200])
def test_every_width_will_do(width: int) -> None:
    from mcpsniff.transcript.safe import cells

    assert max(map(cells, text(records(TROUBLE), width=width, transport="http").splitlines())) <= width


HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202eevil\u2066\u200b\x7f<script>`[x](y)"


def test_nothing_hostile_in_http_reaches_a_terminal_or_a_page() -> None:
    said = hostile(HOSTILE)
    header = {"transport": "http", "listen": f"http://{HOSTILE}", "upstream": HOSTILE}
    for shown in (text(said, width=300, **header), markdown(said, **header), text(said, width=50, **header)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066]", shown)
        assert re.sub(r"\s", "", shown).count("evil") >= 6
    shown = markdown(said, **header)
    outside = re.sub(
        r"(`+)(?!`).*?(?<!`)\1(?!`)", "", re.sub(r"^(`{3,}).*?^\1$", "", shown, flags=re.DOTALL | re.MULTILINE)
    )
    assert "<script>" not in outside
    assert "[x](y)" not in outside


def test_markdown_puts_what_was_captured_into_code() -> None:
    said = (
        "C> GET /a`b<i>?[x](y)\nS> 302\n    Location: //evil`\nC> GET /s\nS> 200 STREAM\n"
        "S> EVENT event=<b>x id=`7 hello\nS> EVENT event=endpoint /m?<script>"
    )
    shown = [line for line in markdown(records(said), transport="http").splitlines() if line.startswith("<a id=")]
    assert [line.split(" · ", 2)[2] for line in shown] == [
        "HTTP · 302 ``GET /a`b<i>?[x](y)`` · `` to //evil` `` · conn 0 · 1.0 ms",
        "HTTP · 200 `GET /s` · event stream · conn 0 · 1.0 ms",
        "HTTP · event `<b>x hello` · others like it are counted · event `` `7 ``",
        "HTTP · endpoint `/m?<script>`",
    ]


def stopped(said: str) -> list[Record]:
    """The records of a dialogue at whose end mcpsniff is stopped: its connections are cut off."""
    made = records(said)
    last = made[-1].t + 2000
    opened = [record.channel for record in made if record.kind == "open"]
    return [*made, *(Record(last, "close", n, {"how": "aborted", "error": "mcpsniff was stopped"}) for n in opened)]


def test_what_mcpsniff_cuts_off_when_it_is_stopped_is_blamed_on_nobody_else() -> None:
    said = stopped(
        f"{OPEN_ONE}C2> GET /mcp\nS2> 200 STREAM\nC> POST /mcp {call(1)}\nC3> POST /mcp {call(2)}\nS3> 200 STREAM"
    )
    found = rows(said)
    assert "http │ end stream #10  0 events · mcpsniff ended the connection" in "\n".join(found)
    assert "http │ --- POST /mcp  for #12 · mcpsniff ended the connection before the response  conn 0" in "\n".join(
        found
    )
    given_up = [row for row in found if "✗ tools/call" in row]
    assert [row.partition(" · id")[0].partition("abandoned ")[2] for row in given_up] == [
        "#12 · mcpsniff ended the connection",
        "#14 · mcpsniff ended the connection",
    ]
    assert sum("■ mcpsniff was stopped" in row for row in found) == 1
    assert "cut off" not in "\n".join(found)


def test_a_request_refused_at_once_is_not_called_abandoned() -> None:
    said = [record._replace(t=0) for record in records(f"{OPEN_ONE}C> POST /mcp {call(2)}\nS> 404 no")]
    for shown in (text(said, transport="http"), markdown(said, transport="http")):
        assert "id 2, HTTP 404 after 0 µs\n" in shown
        assert "abandoned" not in shown


def test_one_latency_of_a_refusal() -> None:
    """From the last byte of the request to the last byte of the answer, wherever it is told."""
    body = call(2).encode()
    made = records(OPEN_ONE)
    conn, t = max(record.channel or 0 for record in made) + 1, made[-1].t
    meta = {"kind": "tcp", "conn": 7}
    head = b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    said = [
        *made,
        Record(t, "open", conn, {**meta, "dir": "c2s"}),
        Record(t, "open", conn + 1, {**meta, "dir": "s2c", "of": conn}),
        Record(t + 1000, "chunk", conn, head),
        Record(t + 5000, "chunk", conn, body),
        Record(t + 12_000, "chunk", conn + 1, b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\n"),
        Record(t + 15_000, "chunk", conn + 1, b"no"),
    ]
    shown = text(said, transport="http")
    row = next(line for line in shown.splitlines() if "502 POST" in line)
    assert row.endswith(" 10.0 ms")
    assert "HTTP 502 after 10.0 ms" in shown


BOTH = """\
@http
C> GET /sse
S> 200 STREAM
S> EVENT event=endpoint /messages?s=1
C2> POST /messages?s=1 {"jsonrpc":"2.0","id":1,"method":"initialize"}
S2> 202
S> EVENT {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}
C3> POST /mcp {"jsonrpc":"2.0","id":1,"method":"initialize"}
S3> 200 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
"""


@pytest.mark.parametrize(
    ("said", "flavour"),
    [
        (BOTH, "http  HTTP+SSE and Streamable HTTP"),
        ('C> POST /sse {"jsonrpc":"2.0","id":0,"method":"initialize"}', "http"),
        ('C> POST /sse {"jsonrpc":"2.0","id":0,"method":"initialize"}\nS> 405', "http"),
        (OPEN_ONE, "http  Streamable HTTP"),
    ],
)
def test_the_head_names_the_transports_that_were_seen(said: str, flavour: str) -> None:
    assert f"  transport     {flavour}\n" in text(records(said), transport="http")


def test_authorizations_are_counted_in_the_summary() -> None:
    form = "    Content-Type: application/x-www-form-urlencoded\n    Accept: */*\n"
    asked = f"C> POST /token grant_type=authorization_code&client_id=x\n{form}"
    look = "C> GET /.well-known/oauth-protected-resource\n    Accept: */*\nS> 404\n"
    granted = f'{asked}S> 200 {{"token_type":"Bearer"}}\n'
    refused = f"C> POST /mcp {call(1)}\nS> 401\n    WWW-Authenticate: Bearer\n"
    used = f"C> POST /mcp {call(2)}\n    Authorization: Bearer ***\nS> 200 {result(2)}\n"
    shown = text(records(look + refused + granted + used + refused + asked + "S> 400"), style=NONE, transport="http")
    assert "  OAuth: 2 authorizations, 1 with a token that was accepted, 1 without a token; 5 steps\n" in shown
    assert "  OAuth: 1 look for metadata found none\n" in shown
    assert "OAuth" not in text(records(OPEN_ONE), style=NONE, transport="http")


def test_the_endpoint_of_another_conversation_is_marked_as_its_other_rows_are() -> None:
    said = "".join(
        f"C{n}> GET /sse\nS{n}> 200 STREAM\nS{n}> EVENT event=endpoint /m?s={n}\n"
        f"C{n + 4}> POST /m?s={n} {call(n)}\nS{n + 4}> 202\n"
        for n in (1, 2)
    )
    shown = rows(records(said))
    assert [row for row in shown if "endpoint" in row and "/m?s=2" in row and "[2]" in row]
    assert [row for row in shown if "[2] tools/call" in row]
