"""Which server was spoken to, wherever a reader looks: one, several, and who was only asked for a token."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.origins import names_of, server_of
from mcpsniff.transcript.at.found import find_event
from mcpsniff.transcript.at.text import EventPage
from mcpsniff.transcript.digest import Digest, digest
from mcpsniff.transcript.filter import compile_filter
from mcpsniff.transcript.head import ONE_ALONE
from mcpsniff.transcript.live.session import Facts, LiveSession
from mcpsniff.transcript.live.view import LiveText
from mcpsniff.transcript.payload import NONE
from mcpsniff.transcript.servers import Servers, listed, short
from mcpsniff.transcript.terminal import plain
from tests.filter.selecting import select
from tests.html.pages import html
from tests.transcript.rendering import capture, json_lines, markdown, of_type, text

HEADER: dict[str, Any] = {"transport": "forward", "listen": "http://127.0.0.1:9999"}
ONE, OTHER, KEYS = "https://one.example", "http://127.0.0.1:3001", "https://keys.example"


def said(channel: int, server: str, start: str, asked: bytes, answered: bytes) -> list[Record]:
    """An HTTP exchange with a server, on a connection of its own."""
    scheme, _, authority = server.partition("://")
    about = {"authority": authority, "scheme": scheme, "client": "127.0.0.1:1", "listen": "127.0.0.1:9999"}
    kind = [["Content-Type", "application/json"]]
    request = {"start": f"{start} HTTP/1.1", "headers": kind, **about}
    response = {"start": "HTTP/1.1 200 OK", "headers": kind, **about}
    t = channel * 1000
    return [
        Record(t, "open", channel, {"kind": "http-request", "dir": "c2s", "conn": channel, "meta": request}),
        *([Record(t, "chunk", channel, asked)] if asked else []),
        Record(t, "close", channel, {"how": "eof"}),
        Record(
            t + 1,
            "open",
            channel + 1,
            {"kind": "http-response", "dir": "s2c", "conn": channel, "of": channel, "meta": response},
        ),
        Record(t + 1, "chunk", channel + 1, answered),
        Record(t + 1, "close", channel + 1, {"how": "eof"}),
    ]


def opening(channel: int, server: str, name: str) -> list[Record]:
    info = {"protocolVersion": "2025-06-18", "capabilities": {}}
    asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {**info, "clientInfo": {"name": "c"}}}
    answered = {"jsonrpc": "2.0", "id": 0, "result": {**info, "serverInfo": {"name": name, "version": "1"}}}
    return said(channel, server, "POST /mcp", json.dumps(asked).encode(), json.dumps(answered).encode())


def metadata(channel: int) -> list[Record]:
    return said(channel, KEYS, "GET /.well-known/oauth-authorization-server", b"", b'{"issuer":"https://keys.example"}')


SINGLE = [*opening(0, ONE, "s"), *metadata(2)]
BOTH = [*opening(0, ONE, "first"), *metadata(2), *opening(4, OTHER, "second"), *opening(6, ONE, "again")]


def test_one_server_is_in_the_route() -> None:
    shown = text(SINGLE, **HEADER)
    assert "  route         http://127.0.0.1:9999 → https://one.example\n" in shown
    assert "  also asked    https://keys.example\n" in shown
    assert "- **route:** `http://127.0.0.1:9999 → https://one.example`" in markdown(SINGLE, **HEADER)
    assert (
        "<dt>route</dt><dd><span>http://127.0.0.1:9999 → https://one.example</span></dd>"
        in html(SINGLE, **HEADER).decode()
    )
    assert "[one.example]" not in shown, "where MCP is spoken goes without saying if that is one place"
    assert "[keys.example] 200 GET /.well-known/" in shown


def test_without_an_address_of_ours_the_server_stands_alone() -> None:
    """As of a file that was imported."""
    assert "  route         https://one.example\n" in text(opening(0, ONE, "s"), transport="forward")


def test_an_upstream_in_the_header_is_the_route() -> None:
    header: dict[str, Any] = {
        "transport": "http",
        "listen": "http://127.0.0.1:9/mcp",
        "upstream": "https://one.example/mcp",
    }
    shown = text(opening(0, ONE, "s"), **header)
    assert "  route         http://127.0.0.1:9/mcp → https://one.example/mcp\n" in shown
    assert "also asked" not in shown


def test_several_are_counted_and_named_everywhere() -> None:
    shown = text(BOTH, width=120, **HEADER)
    assert f"→ 2 servers: {ONE}, {OTHER}\n" in shown
    assert f"1: c → first 1 at {ONE}, 2025-06-18" in shown
    assert f"[2] c → second 1 at {OTHER}, 2025-06-18" in shown
    assert "[2 127.0.0.1:3001] initialize" in shown
    assert "[3 one.example] initialize" in shown
    assert "← [2] initialize" in shown, "the server is named once in a conversation"
    assert f"servers: {ONE} (2 exchanges), {KEYS} (1 exchange), {OTHER} (1 exchange)" in shown
    in_markdown = markdown(BOTH, **HEADER)
    assert f"conversation 2 · at `{OTHER}` · **`initialize`**" in in_markdown
    assert f"servers: {ONE} (2 exchanges)" in in_markdown
    in_html = html(BOTH, **HEADER).decode()
    assert "<i>[2 127.0.0.1:3001]</i><b>initialize</b>" in in_html
    assert f"[2] c → second 1 at {OTHER}" in in_html


@pytest.mark.parametrize("width", [20, 40, 66, 80])
def test_a_long_name_keeps_its_beginning_and_its_end_and_never_breaks_a_line(width: int) -> None:
    long = "https://a-very-long-name.of-some-cluster.internal.example.com:8443"
    shown = text([*opening(0, ONE, "s"), *opening(2, long, "t"), *metadata(4)], width=width, **HEADER)
    rows = [line for line in shown.splitlines() if line.startswith(("    0.0", "  0.0"))]
    assert max(map(len, rows)) <= width
    names = {
        20: "→ [2] initi…",
        40: "→ [2 a-v…43] initialize",
        66: "→ [2 a-ver…:8443] initi",
        80: "→ [2 a-very…m:8443] init",
    }
    assert names[width] in shown


def test_a_live_view_tells_the_server_when_it_is_known_and_marks_the_rows_of_others() -> None:
    out: list[str] = []
    source = capture(BOTH, **HEADER)
    session = LiveSession(Facts(source.header, source.path, joined_late=False, damage=[]), "x")
    view = LiveText(session, plain(out.append), lambda: 100, NONE)
    for record in BOTH:
        view.feed(session.feed(record))
        view.rest()
    view.end(session.finish(), lost=False)
    shown = "".join(out)
    told = ("  route         http://127.0.0.1:9999\n", "→ https://one", "[2 127.0.0.1:3001]")
    first, then, row = map(shown.index, told)
    assert first < then < row


def test_a_live_view_of_one_conversation_does_not_tell_how_to_see_one() -> None:
    source = capture(BOTH, **HEADER)
    for chosen, is_told in (("conversation:1", False), ("kind:http", True)):
        only = compile_filter(chosen, alone=False)
        session = LiveSession(Facts(source.header, source.path, joined_late=False, damage=[]), "x", only)
        for record in BOTH:
            session.feed(record)
        assert any(entry.remark == ONE_ALONE for entry in session.head()) == is_told


def test_the_json_has_it_on_exchanges_and_on_http() -> None:
    lines = json_lines(BOTH, **HEADER)
    assert [line["origin"] for line in of_type(lines, "exchange")] == [ONE, OTHER, ONE]
    assert [line["origin"] for line in of_type(lines, "http")] == [ONE, KEYS, OTHER, ONE]
    unknown = json_lines(said(0, "", "POST /mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b"{}"), **HEADER)
    assert [line["origin"] for line in unknown if line["type"] in ("exchange", "http")] == [None, None]


def test_the_page_of_an_event_has_it() -> None:
    out: list[str] = []
    source = capture(BOTH, **HEADER)
    lines = json_lines(BOTH, **HEADER)
    last = of_type(lines, "message")[2]
    EventPage(plain(out.append), 100).show(_found(last["n"]), source.header)
    assert f"  server      {OTHER}\n" in out


def _found(number: int) -> Any:
    class Again:
        """A capture that can be read twice."""

        def __getattr__(self, name: str) -> Any:
            return getattr(capture(BOTH, **HEADER), name)

    return find_event(Again(), number)


def test_the_digest_has_it_and_is_read_again() -> None:
    seen = digest(capture(BOTH, **HEADER))
    assert seen.origins == (ONE, OTHER)
    assert Digest.read(json.loads(json.dumps(seen))) == seen
    assert Digest.read([*json.loads(json.dumps(seen))[:-1], [1]]) is None


def _shown(expression: str) -> Iterator[str]:
    events = select(BOTH, expression)
    return (event.http.authority for event in events if isinstance(event, Message) and event.http is not None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("one.example", [ONE] * 4),
        ("ONE.example:443", [ONE] * 4),
        ("https://one.example", [ONE] * 4),
        ("https://one.example/", [ONE] * 4),
        ("https://one.example:443", [ONE] * 4),
        ("*.example", [ONE] * 4),
        ("https://*", [ONE] * 4),
        ("127.0.0.1", [OTHER] * 2),
        ("127.0.0.1:3001", [OTHER] * 2),
        ("*:3001", [OTHER] * 2),
        ("127.0.0.1:80", []),
        ("http://one.example", []),
        ("one", []),
    ],
)
def test_a_filter_finds_it(value: str, expected: list[str]) -> None:
    assert list(_shown(f"server:{value}")) == expected
    assert list(_shown(f"not server:{value}")) == [
        one for one in [ONE, ONE, OTHER, OTHER, ONE, ONE] if one not in expected
    ]


def test_one_server_in_two_spellings_is_one() -> None:
    shown = text([*opening(0, "https://ONE.example:443", "s"), *opening(2, ONE, "t")], **HEADER)
    assert "→ https://one.example\n" in shown
    assert "[2] " in shown


@pytest.mark.parametrize(
    ("scheme", "authority", "expected"),
    [
        ("https", "One.Example:443", "https://one.example"),
        ("http", "one.example:443", "http://one.example:443"),
        ("http", "[::1]:80", "http://[::1]"),
        ("", "127.0.0.1:80", "127.0.0.1:80"),
        ("", "http://h:80/mcp", "http://h"),
        ("https", "a:b:c", "https://a:b:c"),
        ("", "", ""),
        ("https", "", ""),
    ],
)
def test_origins(scheme: str, authority: str, expected: str) -> None:
    assert server_of(scheme, authority) == expected


def test_names() -> None:
    assert names_of("http://[::1]:81") == {"http://[::1]:81", "[::1]:81", "[::1]", "::1"}
    assert "h:80" in names_of("http://h")
    assert names_of("h:81") >= {"h:81", "h"}
    assert [short(one) for one in ("https://h", "http://h", "http://[::1]", "https://h:8", "h:81")] == [
        *("h", "h:80", "[::1]:80", "h:8", "h:81")
    ]


def test_there_is_a_limit() -> None:
    servers = Servers()
    for number in range(1000):
        servers.add(f"https://s{number}", is_mcp=True, exchanges=1)
    assert len(servers.spoken) == 200
    assert listed(servers.spoken).endswith(", https://s4 and 195 more")


def test_a_hostile_name_is_harmless() -> None:
    evil = "https://\x1b[2J\u202e<script>alert(1)</script>`x`"
    records = [
        *opening(0, ONE, "s"),
        *opening(2, evil, "t"),
        *said(4, evil, "GET /.well-known/openid-configuration", b"", b"{}"),
    ]
    assert "\x1b" not in text(records, **HEADER)
    assert "\u202e" not in text(records, **HEADER)
    assert "<script>alert" not in html(records, **HEADER).decode()
    assert "\u202e" not in markdown(records, **HEADER)
