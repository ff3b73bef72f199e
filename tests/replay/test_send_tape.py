"""The capture of a live session: what was given to the server stands nowhere in it."""

import base64
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.errors import UsageError
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.send.hide import Hider
from mcpsniff.replay.send.run import talks_of
from mcpsniff.replay.send.tape import CaptureTape, Entry
from tests.cli.running import run

SECRET = 's3cr"et/+\u00e9 value'


def hider(name: str = "API_KEY", value: str = SECRET) -> Hider:
    return Hider([(name, value)], lambda: b"salt")


SPELT = {
    "plain": SECRET,
    "json": json.dumps({"k": SECRET}),
    "json, not ascii": json.dumps({"k": SECRET}, ensure_ascii=False),
    "json in json": json.dumps({"text": json.dumps({"k": SECRET})}),
    "url": "https://x.test/?k=" + quote(SECRET, safe=""),
    "hex": SECRET.encode().hex(),
    "hex, in pairs": SECRET.encode().hex(" ").upper(),
    "hex, with colons": SECRET.encode().hex(":"),
    "percent, all": "".join(f"%{byte:02x}" for byte in SECRET.encode()),
    "percent, twice": quote(quote(SECRET, safe=""), safe=""),
    "base64, twice": base64.b64encode(base64.b64encode(SECRET.encode())).decode(),
    "base64 of json": base64.b64encode(json.dumps({"key": SECRET, "n": 1}).encode()).decode(),
    "base64 in lines": json.dumps(base64.encodebytes(f"{'x' * 44}{SECRET}".encode()).decode()),
    "escapes": "".join(f"\\u{ord(letter):04x}" for letter in SECRET),
    "backwards": SECRET[::-1],
    "upper case": SECRET.upper(),
}

GIVEN = {
    "Authorization: Bearer tok-SECRET-12345": ["tok-SECRET-12345"],
    "Authorization: Basic " + base64.b64encode(b"anna:pass-SECRET").decode(): ["pass-SECRET", "anna:pass-SECRET"],
    "Cookie: sid=cookie-SECRET; theme=dark-SECRET%21": ["cookie-SECRET", "dark-SECRET!"],
    "DATABASE_URL: postgres://anna:pg-SECRET@db.test/x": ["pg-SECRET"],
}


@pytest.mark.parametrize("given", GIVEN)
def test_what_is_a_secret_in_a_value_is_hidden_by_itself_too(given: str) -> None:
    name, _, value = given.partition(": ")
    for part in (value, value.rpartition(" ")[2], *GIVEN[given]):
        for text in (part, base64.b64encode(json.dumps([part]).encode()).decode()):
            hidden = hider(name, value).hide_text(f"you said {text}.")
            assert "SECRET" not in hidden
            assert text not in hidden


def test_what_cannot_be_hidden_by_itself_is_withheld() -> None:
    it = hider()
    hidden, places = it.hide(b"a line\n" + base64.b64encode(f"\0{SECRET}\0".encode("utf-32-le")) + b"\n")
    assert re.fullmatch(rb"[*\n]+", hidden)
    assert (len(places), it.withheld) == (1, 1)


@pytest.mark.parametrize("spelling", SPELT)
def test_a_value_is_found_however_it_is_spelt(spelling: str) -> None:
    text = f"before {SPELT[spelling]} after".encode()
    hidden, ((start, length, mark),) = hider().hide(text)
    assert len(hidden) == len(text)
    assert set(hidden[start : start + length]) <= set(b"*")
    for left in (b"value", b"s3cr", b"S3CR", b"eulav", b"76616c", b"%76"):
        assert left not in hidden
    assert len(mark) == 16


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_a_value_is_found_in_base64_wherever_it_stands(before: int, after: int) -> None:
    coded = base64.b64encode(b"x" * before + SECRET.encode() + b"y" * after)
    for text in (coded, coded.replace(b"+", b"-").replace(b"/", b"_")):
        hidden, places = hider().hide(text)
        assert len(places) == 1
        plain = base64.b64decode(hidden.replace(b"*", b"A").replace(b"-", b"+").replace(b"_", b"/"))
        assert not any(SECRET.encode()[at : at + 3] in plain for at in range(len(SECRET.encode()) - 2))


@pytest.mark.parametrize(("name", "value", "is_hidden"), [("DEBUG", "true", False), ("MY_TOKEN", "true", True)])
def test_a_short_value_is_hidden_if_its_name_says_that_it_is_a_secret(name: str, value: str, is_hidden: bool) -> None:
    assert (b"true" not in hider(name, value).hide(b'{"isError":true}')[0]) == is_hidden


def test_the_same_value_has_the_same_mark_in_all_spellings() -> None:
    marks = {mark for text in SPELT.values() for _, _, mark in hider().hide(text.encode())[1]}
    assert len(marks) == 1


def exchange(tape: CaptureTape, origin: str, asked: Any, said: Any) -> None:
    """A POST and its answer, as a proxy keeps them."""
    scheme, _, authority = origin.partition("://")
    about = {"authority": authority, "scheme": scheme}
    conn = tape.connection()
    headers = [["Host", authority], ["Content-Type", "application/json"]]
    meta = {"start": "POST /mcp HTTP/1.1", "headers": headers, **about}
    request = tape.open({"kind": "http-request", "dir": "c2s", "conn": conn, "meta": meta})
    tape.chunk(request, json.dumps(asked).encode())
    tape.close(request, {"how": "eof"})
    meta = {"start": "HTTP/1.1 200 OK", "headers": headers[1:], **about}
    response = tape.open({"kind": "http-response", "dir": "s2c", "conn": conn, "of": request, "meta": meta})
    tape.chunk(response, json.dumps(said).encode())
    tape.close(response, {"how": "eof"})


def forward(path: Path, *origins: str) -> Path:
    """A capture of several servers."""
    entries: list[Entry] = []
    tape = CaptureTape(entries.extend, Hider([], lambda: b""))
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    for origin in origins:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        exchange(tape, origin, asked, {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": []}})
    header = {"mcpcap": 1, "run": "01J", "part": 1, "started": "2026-11-29T10:00:00.000000Z", "transport": "forward"}
    lines = [
        json.dumps([t, kind, channel, body.decode() if isinstance(body, bytes) else body])
        for t, kind, channel, body in entries
    ]
    path.write_text("\n".join([json.dumps(header), *lines]) + "\n", encoding="utf-8")
    return path


def test_of_several_servers_one_is_chosen(tmp_path: Path) -> None:
    path = forward(tmp_path / "f.mcpcap", "http://one.test", "https://two.test")
    script = read_script(open_capture(str(path)))
    assert [talk.server for talk in talks_of(script, "two")] == ["https://two.test"]
    for wanted, said in ((None, "choose one with --server"), ("three", "there is http://one.test, https://two.test")):
        with pytest.raises(UsageError, match=said):
            talks_of(script, wanted)


def test_the_recorded_address_is_shown_before_it_is_reached(tmp_path: Path) -> None:
    path = forward(tmp_path / "f.mcpcap", "http://127.0.0.1:9/x")
    done = run("replay", str(path), "--as-recorded")
    assert done.status == 2
    assert "send it to http://127.0.0.1:9" in done.err
