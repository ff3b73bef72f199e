"""The JSON output, member by member: docs/json-output.md is what is tested here."""

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from mcpsniff.capture.records import Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.events import Close
from mcpsniff.transcript.jsonl import JsonLines, flaws_markdown
from mcpsniff.wire.frames import Frame, ServerSentEvent, Span
from tests.sessions import OPENS, end, records
from tests.transcript.golden import SESSION
from tests.transcript.rendering import json_bytes, json_lines, of_type

PING = '{"jsonrpc":"2.0","id":%s,"method":"ping"}'


def raw_lines(said: list[Record], **options: Any) -> list[bytes]:
    return json_bytes(said, **options).splitlines()


def test_every_member_of_a_small_session() -> None:
    lines = json_lines(records(("c2s", PING % 7), ("s2c", '{"jsonrpc":"2.0","id":7,"result":{}}')))
    assert [line for line in lines if line["type"] != "finding"] == [
        {
            "type": "frame",
            "n": 1,
            "t_us": 1000,
            "channel": 0,
            "direction": "c2s",
            "framing": "line",
            "size": 40,
            "spans": [[0, 0, 41]],
            "flaws": [],
        },
        {
            "type": "message",
            "n": 2,
            "t_us": 1000,
            "direction": "c2s",
            "kind": "request",
            "id": 7,
            "method": "ping",
            "frame": 1,
            "exchange": 2,
            "conversation": 1,
            "flaws": [],
        },
        {
            "type": "frame",
            "n": 3,
            "t_us": 2000,
            "channel": 1,
            "direction": "s2c",
            "framing": "line",
            "size": 36,
            "spans": [[1, 0, 37]],
            "flaws": [],
        },
        {
            "type": "message",
            "n": 4,
            "t_us": 2000,
            "direction": "s2c",
            "kind": "response",
            "id": 7,
            "frame": 3,
            "exchange": 2,
            "conversation": 1,
            "flaws": [],
        },
        {
            "type": "exchange",
            "n": 5,
            "t_us": 2000,
            "direction": "c2s",
            "id": 7,
            "method": "ping",
            "state": "answered",
            "latency_us": 1000,
            "request": 2,
            "response": 4,
            "progress": [],
            "conversation": 1,
        },
    ]


def test_progress_findings_stderr_and_closes() -> None:
    lines = json_lines(SESSION)
    [_, call] = of_type(lines, "exchange")
    assert (call["request"], call["response"], call["progress"]) == (9, 13, [11])
    assert of_type(lines, "finding") == [
        {
            "type": "finding",
            "at": 17,
            "k": 0,
            "t_us": 9600,
            "code": "MCP101",
            "name": "stdio-not-json",
            "severity": "error",
            "group": "framing",
            "blame": "server",
            "text": 'the server wrote text to stdout, which is for messages only: "ready <b>now</b>"',
            "message": 17,
            "frame": 16,
            "spans": [[1, 352, 369]],
        }
    ]
    assert of_type(lines, "stderr") == [{"type": "stderr", "n": 15, "t_us": 8400, "text": "working on it"}]
    assert of_type(lines, "close") == [
        {"type": "close", "n": 18, "t_us": 20_000, "channel": 0, "how": "eof", "status": None},
        {"type": "close", "n": 19, "t_us": 21_000, "channel": 1, "how": "exit", "status": 0},
    ]


def test_n_counts_events_in_order_and_findings_have_none() -> None:
    lines = json_lines(SESSION)
    assert [line["n"] for line in lines if line["type"] != "finding"] == list(range(1, 20))
    assert all("n" not in line for line in of_type(lines, "finding"))


def test_what_a_signal_leaves() -> None:
    lines = json_lines([*OPENS, Record(5, "close", 1, {"how": "killed", "signal": 9, "sent": ["TERM", "KILL"]})])
    [close] = of_type(lines, "close")
    assert (close["how"], close["status"], close["signal"], close["sent"]) == ("killed", None, 9, ["TERM", "KILL"])


@pytest.mark.parametrize(
    "token",
    [
        *("0", "1", "-1", "1.0", "1e2", "-0", "-0.0", "9007199254740993", "36893488147419103232", "1" * 400),
        *('"1"', '""', '"a b"', '"\\/\\u00e9"', '"é"', '"\u202e"', '"a\\"b"', "1.5", "1E+2"),
        *("null", "true", "false", "[1]", '{"a":1}'),
    ],
)
def test_an_id_is_its_own_token(token: str) -> None:
    [line] = [line for line in raw_lines(records(("c2s", PING % token))) if b'"type":"message"' in line]
    assert b',"id":' + token.encode() + b"," in line


@pytest.mark.parametrize("token", ["NaN", "-Infinity", '"\\ud800"', "[" * 300 + "]" * 300])
def test_an_id_that_is_no_strict_json_is_given_as_text(token: str) -> None:
    [message] = of_type(json_lines(records(("c2s", PING % token))), "message")
    assert "id" not in message
    assert message["id_text"] == token


def test_the_exchange_of_a_large_id_has_its_digits() -> None:
    [line] = [line for line in raw_lines(records(("c2s", PING % 36893488147419103232))) if b'"exchange","n"' in line]
    assert b'"id":36893488147419103232,' in line


def test_a_message_without_an_id_has_no_member() -> None:
    lines = json_lines(records(("c2s", '{"jsonrpc":"2.0","method":"notifications/x"}'), ("s2c", "noise")))
    for message in of_type(lines, "message"):
        assert not {"id", "id_text", "exchange", "batch"} & message.keys()
    assert [message["kind"] for message in of_type(lines, "message")] == ["notification", "invalid"]
    assert "method" not in of_type(lines, "message")[1]


def test_a_blank_line_is_a_frame_and_no_message() -> None:
    lines = json_lines(records(("c2s", ""), ("c2s", " \t\r"), ("c2s", PING % 1)))
    assert [frame["flaws"] for frame in of_type(lines, "frame")] == [
        ["empty-line"],
        ["empty-line", "cr-before-lf"],
        [],
    ]
    assert len(of_type(lines, "message")) == 1


def test_a_batch_and_its_elements() -> None:
    batch = '[{"jsonrpc":"2.0","id":1,"method":"a"}, 5, {"jsonrpc":"2.0","method":"b"}]'
    whole, *elements = of_type(json_lines(records(("c2s", batch)), payload=True), "message")
    assert (whole["kind"], "batch" in whole, whole["payload"]) == ("batch", False, json.loads(batch))
    assert [(e["kind"], e["batch"], e["frame"]) for e in elements] == [
        ("request", whole["n"], 1),
        ("invalid", whole["n"], 1),
        ("notification", whole["n"], 1),
    ]
    assert [element["payload"] for element in elements] == json.loads(batch)


def test_odd_batches_b91() -> None:
    """Case B91: nothing nested is unpacked, so the answer matches nothing."""
    nested = '[1,"x",null,[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}]]'
    said = records(("c2s", "[]"), ("c2s", nested), ("s2c", '{"jsonrpc":"2.0","id":3,"result":{"n":"a"}}'))
    lines = json_lines(said)
    kinds = [(m["kind"], m.get("batch")) for m in of_type(lines, "message")]
    assert kinds == [("batch", None), ("batch", None), *[("invalid", 4)] * 4, ("response", None)]
    assert of_type(lines, "exchange") == []


def test_an_answered_notification_b97() -> None:
    """Case B97: no id means notification; nothing is unanswered, and the answer should not exist."""
    said = records(
        ("c2s", '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'),
        ("s2c", '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"x"}}'),
        ("c2s", '{"jsonrpc":"2.0","method":"custom/thing","params":{}}'),
    )
    lines = json_lines([*said, *end(9000)])
    assert [m["kind"] for m in of_type(lines, "message")] == ["notification", "error", "notification"]
    assert of_type(lines, "message")[1]["id"] is None
    assert of_type(lines, "exchange") == []
    assert "MCP408" in [f["code"] for f in of_type(lines, "finding") if f["message"] == 4]


@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc":"2.0","id":1,"result":{"a":1915883588174806058,"b":147573952589676412927,"c":99999999999999999999}}',
        '{ "jsonrpc" : "2.0", "id":1 ,"result":{"a":1.0,"b":1e2,"c":-0,"d":0.123000000000000005123,"e":"\\/\\u00e9"}}',
        '{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}',
        '{"jsonrpc":"2.0","id":1,"result":{"e":"\u2028\u202e\x7f"}}',
    ],
)
def test_a_payload_keeps_its_spelling(message: str) -> None:
    """Cases B98, B105."""
    [line] = [line for line in raw_lines(records(("s2c", message)), payload=True) if b'"message","n"' in line]
    assert line.endswith(b',"payload":' + message.encode() + b"}")


def test_a_payload_stays_on_its_line() -> None:
    """A byte order mark is no JSON, and a CR between tokens is white space like any other."""
    raw = b'\xef\xbb\xbf{"jsonrpc":"2.0",\r"id":1,"result":{}}\r\n'
    [line] = [line for line in raw_lines(records(("s2c", raw)), payload=True) if b'"message","n"' in line]
    assert line.endswith(b'"payload":{"jsonrpc":"2.0", "id":1,"result":{}} }')


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"noise\n", "noise"),
        (b'{"a":NaN}\n', '{"a":NaN}'),
        (b'{"a":"\\ud800"}\n', '{"a":"\\ud800"}'),
        (b'{"a":"\xff"}\n', '{"a":"\ufffd"}'),
        (b'[{"a":"\xff"}]\n', '[{"a":"\ufffd"}]'),
        (b'{"a":1} {"b":2}\n', '{"a":1} {"b":2}'),
        (b"[" * 201 + b"]" * 201 + b"\n", "[" * 201 + "]" * 201),
        (b"\x1b[31mraw\x00\n", "\x1b[31mraw\x00"),
    ],
)
def test_a_payload_that_cannot_be_spliced_is_text(raw: bytes, shown: str) -> None:
    message = of_type(json_lines(records(("s2c", raw)), payload=True), "message")[0]
    assert "payload" not in message
    assert message["payload_text"] == shown


def test_elements_of_a_batch_that_is_not_utf8_are_text() -> None:
    _, element = of_type(json_lines(records(("s2c", b'[{"a":"\xff"}]\n')), payload=True), "message")
    assert "payload" not in element
    assert element["payload_text"] == '{"a":"\ufffd"}'


def test_without_payload_there_is_none() -> None:
    for line in json_lines(SESSION):
        assert not {"payload", "payload_text"} & line.keys()


def test_open_exchanges_come_at_the_end() -> None:
    said = records(
        ("c2s", PING % 1), ("s2c", PING % '"x"'), ("c2s", PING % 2), ("s2c", '{"jsonrpc":"2.0","id":2,"result":{}}')
    )
    lines = json_lines(said)
    assert [(e["id"], e["state"], e["response"], e["latency_us"]) for e in lines[-2:]] == [
        (1, "open", None, None),
        ("x", "open", None, None),
    ]
    assert [e["state"] for e in of_type(lines, "exchange")] == ["answered", "open", "open"]


def test_method_with_half_a_surrogate() -> None:
    [message] = of_type(json_lines(records(("c2s", '{"jsonrpc":"2.0","id":1,"method":"a\\ud800"}'))), "message")
    assert message["method"] == "a\ufffd"


def test_notes_of_the_recorder() -> None:
    said = [
        *records(("c2s", PING % 1)),
        Record(2000, "gap", 1, {"bytes": 12, "why": "queue"}),
        Record(2100, "comment", None, {"text": "look \u202e here", "by": "me"}),
        Record(2200, "mask", 0, {"start": 3, "length": 4, "what": "code", "fp": "00"}),
        Record(2300, "rewrite", 0, {"start": 1, "length": 2, "data": {"b64": "/w=="}, "by": "an addon"}),
    ]
    lines = [line for line in json_lines(said) if line["type"] in ("gap", "comment", "mask", "rewrite")]
    assert lines == [
        {"type": "gap", "n": 3, "t_us": 2000, "channel": 1, "bytes": 12, "why": "queue"},
        {"type": "comment", "n": 4, "t_us": 2100, "channel": None, "text": "look \u202e here", "by": "me"},
        {
            "type": "mask",
            "n": 5,
            "t_us": 2200,
            "channel": 0,
            "start": 3,
            "length": 4,
            "what": "code",
            "fp": "00",
            "spans": [[0, 3, 7]],
        },
        {
            "type": "rewrite",
            "n": 6,
            "t_us": 2300,
            "channel": 0,
            "start": 1,
            "length": 2,
            "data": {"b64": "/w=="},
            "by": "an addon",
            "spans": [[0, 1, 3]],
            "edit": "changed",
            "direction": "c2s",
            "of": 2,
            "left": [{"kind": "invalid", "flaws": ["invalid-utf8", "not-json"]}],
            "exchange": 2,
            "conversation": 1,
        },
    ]


def test_an_events_fields() -> None:
    """Event streams come with a later transport; their lines are settled now."""
    sse = ServerSentEvent("message", "7", 1500, ("hi",), dispatched=False)
    frame = Frame(3, "s2c", "sse", (Span(3, 0, 5), Span(3, 9, 12)), 1, 2, b"", 0, ("unterminated",), sse=sse, n=9)
    assert orjson.loads(JsonLines().lines([frame])) == {
        "type": "frame",
        "n": 9,
        "t_us": 2,
        "channel": 3,
        "direction": "s2c",
        "framing": "sse",
        "size": 0,
        "spans": [[3, 0, 5], [3, 9, 12]],
        "flaws": ["unterminated"],
        "sse": {"event": "message", "id": "7", "retry": 1500, "comments": ["hi"], "dispatched": False},
    }


def test_a_damaged_capture_ends_with_a_finding(tmp_path: Path) -> None:
    from mcpsniff.capture.reader import open_capture
    from mcpsniff.transcript.session import Session
    from tests.capture.capture_files import encoded

    path = tmp_path / "torn.mcpcap"
    path.write_bytes(encoded(SESSION)[:-20])
    events = [event for some in Session(open_capture(str(path))).events() for event in some]
    assert isinstance(events[-1], Finding)
    assert (events[-1].code, events[-1].blame) == ("MCP903", "mcpsniff")
    assert "torn" in events[-1].text
    assert any(isinstance(event, Close) for event in events)


def test_the_same_capture_gives_the_same_bytes() -> None:
    assert json_bytes(SESSION, payload=True) == json_bytes(SESSION, payload=True)


def test_live_and_saved_are_the_same() -> None:
    """Records fed as they come give what the file gives."""
    lines, decoder = JsonLines(payload=True), Decoder()
    live = b"".join(lines.lines(decoder.feed(record)) for record in SESSION) + lines.lines(decoder.finish())
    assert live == json_bytes(SESSION, payload=True)


def test_every_member_and_flaw_is_documented(repo: Path) -> None:
    text = (repo / "docs" / "json-output.md").read_text(encoding="utf-8")
    assert flaws_markdown().strip() in text
    named = set(re.findall(r"`(\w+)`", text))
    for line in json_lines(SESSION, payload=True):
        assert line.keys() <= named
    for section in ("frame", "message", "exchange", "finding", "stderr", "close"):
        assert f"\n## `{section}`\n" in text
