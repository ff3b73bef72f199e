"""HAR as other programs write it, entry by entry."""

import base64
import json
from typing import Any

import pytest

from mcpsniff.importers import Account, Heard, ImportFileError
from mcpsniff.importers.har import read_har

ENTRY: dict[str, Any] = {
    "startedDateTime": "2026-11-30T10:00:00.000+01:00",
    "time": 60,
    "request": {
        "method": "POST",
        "url": "https://mcp.example:8443/mcp?a=1#x",
        "httpVersion": "h2",
        "headers": [{"name": ":authority", "value": "mcp.example:8443"}, {"name": "Accept", "value": "*/*"}],
        "postData": {"mimeType": "application/json", "text": '{"jsonrpc":"2.0","id":1,"method":"ping"}'},
    },
    "response": {
        "status": 200,
        "statusText": "",
        "httpVersion": "h2",
        "headers": [{"name": "content-type", "value": "application/json"}, {"name": "content-encoding", "value": "br"}],
        "content": {"size": 3, "mimeType": "application/json", "text": "{é}"},
    },
    "timings": {"blocked": 1, "dns": -1, "connect": 2, "ssl": 2, "send": 3, "wait": 40, "receive": 14},
    "serverIPAddress": "[2001:db8::1]",
    "connection": "77",
}
T = 1_796_029_200_000_000


def changed(**members: Any) -> dict[str, Any]:
    return {**ENTRY, **members}


def read(*entries: Any) -> tuple[list[Heard], Account]:
    account = Account()
    log = {"log": {"version": "1.2", "entries": list(entries)}}
    return list(read_har(b"\xef\xbb\xbf" + json.dumps(log).encode(), account)), account


def test_an_entry_of_a_browser_says_what_the_wire_said() -> None:
    [heard], account = read(ENTRY)
    assert (heard.scheme, heard.authority) == ("https", "mcp.example:8443")
    assert heard.server == "[2001:db8::1]:8443"
    assert heard.request.start == "POST /mcp?a=1 HTTP/2.0"
    assert heard.request.headers == [("Accept", "*/*")]
    assert heard.response is not None
    assert heard.response.start == "HTTP/2.0 200"
    assert heard.response.headers == [("content-type", "application/json")]
    assert heard.response.coding == "br"
    assert heard.response.body == "{é}".encode()
    assert (heard.request.began - T, heard.request.ended) == (3_000, T + 6_000)
    assert (heard.response.began - T, heard.response.ended) == (46_000, T + 60_000)
    assert account == Account()


def test_bodies_in_base64_and_forms_that_are_lists_become_bytes() -> None:
    content = {"text": base64.b64encode(b"\x00\xff").decode(), "encoding": "base64"}
    form = {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a", "value": "b c"}, {"name": "d"}]}
    [heard], _ = read(
        changed(response={**ENTRY["response"], "content": content}, request={**ENTRY["request"], "postData": form})
    )
    assert heard.response is not None
    assert (heard.request.body, heard.response.body) == (b"a=b+c&d=", b"\x00\xff")


def test_entries_that_share_a_connection_say_so_and_others_do_not() -> None:
    heard, _ = read(ENTRY, ENTRY, changed(connection=""), changed(connection=""))
    names = [one.connection for one in heard]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_a_failed_request_has_no_response_and_says_who_gave_up() -> None:
    nothing = {"status": 0, "headers": [], "content": {}, "_error": "net::ERR_ABORTED"}
    refused = {**nothing, "_error": "net::ERR_CONNECTION_REFUSED"}
    heard, _ = read(changed(response=nothing), changed(response=refused))
    assert [(one.response, one.broken_by) for one in heard] == [(None, "client"), (None, "server")]


@pytest.mark.parametrize("text", [None, ""])
def test_a_success_without_its_body_is_known_to_lack_it(text: str | None) -> None:
    content = {"size": 0} if text is None else {"size": 0, "text": text}
    [heard], _ = read(changed(response={**ENTRY["response"], "content": content}))
    assert heard.response is not None
    assert heard.response.body is None


def test_the_events_that_chromium_lists_are_a_stream_again_with_their_times() -> None:
    stream = {
        **ENTRY["response"],
        "headers": [{"name": "content-type", "value": "text/event-stream"}],
        "content": {"size": 0},
    }
    events = [
        {"time": T / 1e6 + 0.5, "eventName": "endpoint", "eventId": "", "data": "/messages?id=1"},
        {"time": T / 1e6 + 1.5, "eventName": "message", "eventId": "e1", "data": '{"jsonrpc":\n"2.0"}'},
    ]
    [heard], account = read(changed(response=stream, _eventSourceMessages=events))
    assert heard.response is not None
    assert heard.response.pieces == [
        (T + 500_000, b"event: endpoint\ndata: /messages?id=1\n\n"),
        (T + 1_500_000, b'id: e1\ndata: {"jsonrpc":\ndata: "2.0"}\n\n'),
    ]
    assert "put together from the list of its events" in account.remarks[0]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (3, "the entry is missing, or no object"),
        ({}, '"request" is missing'),
        (changed(request={"method": "GET"}), '"url" is missing, or no text'),
        (changed(request={"method": 1, "url": "https://a/"}), '"method" is missing, or no text'),
        (changed(request={"method": "GET", "url": "https://a:x/"}), '"url" has a host or port that cannot be read'),
        (changed(request={"method": "GET", "url": "https://[x/"}), '"url" has a host or port that cannot be read'),
        (changed(startedDateTime="yesterday"), "\"startedDateTime\" is no time: 'yesterday'"),
        (changed(startedDateTime=None), '"startedDateTime" is missing'),
        (changed(response=[]), '"response" is missing, or no object'),
        (changed(response={"status": 200, "headers": {}}), '"headers" of "response" is no list'),
        (changed(response={"status": 200, "headers": [1]}), 'one of the "headers" of "response" has no name and value'),
        (
            changed(response={"status": 200, "content": {"encoding": "base64", "text": "x"}}),
            "its content is said to be base64, and is not",
        ),
    ],
)
def test_a_broken_entry_is_named_and_the_others_are_read(entry: Any, words: str) -> None:
    heard, account = read(ENTRY, entry, ENTRY)
    assert [one.place for one in heard] == ["entry 1", "entry 3"]
    assert len(account.bad) == 1
    assert account.bad[0].startswith("entry 2 cannot be read: ")
    assert words in account.bad[0]


def test_numbers_texts_and_times_of_any_kind_are_no_bug() -> None:
    odd: list[Any] = [None, -1, 1e300, "x", [], {}, True, "\ud800", 10**30]
    for one in odd:
        heard, _ = read(
            changed(
                time=one,
                timings={"send": one, "wait": one},
                connection=one,
                serverIPAddress=one,
                _eventSourceMessages=[one, {"time": one, "data": one}],
                response={"status": one, "statusText": one, "httpVersion": one, "content": {"size": one, "text": one}},
            )
        )
        assert len(heard) == 1


def test_websockets_are_counted_and_left_out() -> None:
    heard, account = read(changed(request={"method": "GET", "url": "wss://a/"}))
    assert (heard, account.others) == ([], 1)


CHARLES = {
    **ENTRY,
    "startedDateTime": "2026-11-30T10:00:00.000+0100",
    "time": -1,
    "request": {**ENTRY["request"], "httpVersion": "HTTP/2.0", "headers": [{"name": ":method", "value": "POST"}]},
    "response": {**ENTRY["response"], "headers": [{"name": ":status", "value": "200"}], "status": "200"},
}
FIDDLER = {**ENTRY, "startedDateTime": "2026-11-30T10:00:00.0000001+01:00", "connection": "ClientPort:1;EgressPort:2"}
FIREFOX = {
    **ENTRY,
    "serverIPAddress": "",
    "response": {**ENTRY["response"], "content": {"size": 0, "mimeType": "", "comment": "left out", "text": ""}},
    "connection": None,
}
PROXYMAN = {**ENTRY, "response": None, "timings": None, "time": None}
LOOSE = {
    **ENTRY,
    "request": {**ENTRY["request"], "headers": [{"name": "Content-Length", "value": 40}, {"name": "X", "value": None}]},
}


@pytest.mark.parametrize("entry", [CHARLES, FIDDLER, FIREFOX, PROXYMAN, LOOSE])
def test_habits_of_programs_are_understood(entry: Any) -> None:
    [heard], account = read(entry)
    assert not account.bad
    assert (heard.authority, heard.request.start) == ("mcp.example:8443", "POST /mcp?a=1 HTTP/2.0")
    assert heard.request.began // 1_000_000 == T // 1_000_000
    assert not [name for name, _ in heard.request.headers if name.startswith(":")]
    if entry is PROXYMAN:
        assert heard.response is None
        return
    assert heard.response is not None
    assert heard.response.start == "HTTP/2.0 200"
    assert (heard.response.body is None) == (entry is FIREFOX)
    if entry is LOOSE:
        assert heard.request.headers == [("Content-Length", "40"), ("X", "")]


def test_tunnels_are_left_out() -> None:
    tunnels = [{"method": "CONNECT", "url": url} for url in ("mcp.example:443", "https://mcp.example:443")]
    heard, account = read(*[changed(request=one) for one in tunnels])
    assert (heard, account.others, account.bad) == ([], 2, [])


@pytest.mark.parametrize("odd", ['"\\ud83d"', "NaN"])
def test_what_a_strict_reader_refuses_is_read(odd: str) -> None:
    text = json.dumps({"log": {"entries": [ENTRY], "x": None}}).replace("null}}", f"{odd}}}}}")
    assert len(list(read_har(text.encode(), Account()))) == 1


def test_what_is_nested_too_deep_is_said_to_be() -> None:
    with pytest.raises(ImportFileError, match="nested too deep"):
        list(read_har(b'{"log":{"entries":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", Account()))


STREAM = "text/event-stream"
DATA = "data: done ☃ 你好\n\n"
AS_LATIN_1 = DATA.encode().decode("latin-1")
AS_WINDOWS = "".join(
    char.encode("latin-1").decode("cp1252", "ignore") or char for char in AS_LATIN_1
)  # bytes that it does not have stay as they are, as in browsers


def answered(text: str, kind: str = STREAM, /, **content: Any) -> dict[str, Any]:
    headers = [{"name": "content-type", "value": kind}]
    return changed(
        response={**ENTRY["response"], "headers": headers, "content": {"mimeType": kind, "text": text, **content}}
    )


@pytest.mark.parametrize("text", [AS_LATIN_1, AS_WINDOWS])
@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (STREAM, {"size": len(DATA.encode())}),
        (f"{STREAM}; charset=iso-8859-1", {}),
        ("Application/JSON", {"size": 7}),
        ("application/problem+json", {"size": 7, "compression": len(DATA.encode()) - 7}),
    ],
)
def test_utf_8_that_was_decoded_with_a_wrong_charset_is_put_right(text: str, kind: str, sizes: dict[str, int]) -> None:
    assert text != DATA
    [heard], _ = read(answered(text, kind, **sizes))
    assert heard.response is not None
    assert (heard.response.body, heard.response.is_repaired) == (DATA.encode(), True)


@pytest.mark.parametrize(
    ("text", "kind", "sizes"),
    [
        (DATA, STREAM, {}),
        ("data: é\n\n", STREAM, {"size": 10}),
        ("data: plain\n\n", STREAM, {}),
        (AS_LATIN_1 + "☃", STREAM, {}),
        (AS_LATIN_1, "text/plain", {}),
        (AS_LATIN_1, STREAM, {"size": len(AS_LATIN_1.encode())}),
    ],
)
def test_a_text_that_is_right_or_may_be_stays(text: str, kind: str, sizes: dict[str, int]) -> None:
    [heard], _ = read(answered(text, kind, **sizes))
    assert heard.response is not None
    assert (heard.response.body, heard.response.is_repaired) == (text.encode(), False)


def test_a_request_is_put_right_too_and_bytes_that_were_no_utf_8_are_bytes_again() -> None:
    posted = {"mimeType": "application/json", "text": '{"a":"â\x98\x83"}'}
    entry = answered("data: \udcff\n\n")
    entry["request"] = {**ENTRY["request"], "postData": posted, "bodySize": 11}
    [heard], _ = read(entry)
    assert heard.response is not None
    assert (heard.request.body, heard.response.body) == ('{"a":"☃"}'.encode(), b"data: \xff\n\n")


@pytest.mark.parametrize(
    ("method", "others", "body"),
    [("GET", [DATA], b""), ("GET", [], None), ("GET", [""], None), ("POST", [DATA], None)],
)
def test_an_empty_stream_of_a_get_is_empty_where_others_have_bodies(
    method: str, others: list[str], body: bytes | None
) -> None:
    entry = answered("", size=0)
    entry["request"] = {**ENTRY["request"], "method": method}
    heard, _ = read(*map(answered, others), entry)
    assert heard[-1].response is not None
    assert heard[-1].response.body == body
