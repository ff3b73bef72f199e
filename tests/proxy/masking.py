"""What the tests of the masker share: conversations over one connection, cut anywhere, and the laws of every result."""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mcpsniff.proxy.mask import Masker

C, S = 6, 7
SALT = b"salt" * 8
OPENINGS = [
    (0, "open", C, {"kind": "tcp", "dir": "c2s", "conn": 3, "meta": {"client": "127.0.0.1:1"}}),
    (0, "open", S, {"kind": "tcp", "dir": "s2c", "conn": 3, "of": C, "meta": {"client": "127.0.0.1:1"}}),
]

type Entry = tuple[int, str, int | None, Any]
type Talk = Sequence[tuple[int, bytes]]
"""What passes, in order, on each channel."""


def fingerprint(secret: bytes) -> str:
    return hmac.new(SALT, secret, hashlib.sha256).hexdigest()[:16]


def masked(talk: Talk, *, closed: bool = True) -> list[Entry]:
    """The entries for ``talk``, one chunk for each item, after the laws have been checked."""
    entries = [*OPENINGS, *((t, "chunk", channel, data) for t, (channel, data) in enumerate(talk, 1))]
    if closed:
        entries += [(1000, "close", C, {"how": "eof"}), (1000, "close", S, {"how": "eof"})]
    masker = Masker(lambda: SALT)
    out = []
    for entry in entries:  # one by one: nothing is held back
        own = masker([entry])
        assert own[:1] == [entry] or entry[1] in {"chunk", "close"}
        assert own[-1:] == [entry] or entry[1] != "close"
        assert {t for t, *_ in own} == {entry[0]}
        out += own
    out += masker.finish()
    assert_laws(talk, out)
    return out


def assert_laws(talk: Talk, out: list[Entry]) -> None:
    """Lengths are equal; bytes are either those that passed or covered by a mask record and `*`."""
    for channel in (C, S):
        hidden: set[int] = set()
        for record in records(out, channel):
            places = range(record["start"], record["start"] + record["length"])
            assert record["length"] > 0
            assert not hidden.intersection(places)
            hidden.update(places)
        whole = b"".join(data for where, data in talk if where == channel)
        kept = recorded(out, channel)
        gone = sum(body["bytes"] for _, kind, where, body in out if kind == "gap" and where == channel)
        assert len(kept) + gone == len(whole)
        assert hidden <= set(range(len(kept)))
        assert all(kept[place] == 0x2A for place in hidden)
        if not gone:
            assert all(kept[place] == whole[place] for place in range(len(whole)) if place not in hidden)


def records(out: list[Entry], channel: int | None = None) -> list[dict[str, Any]]:
    return [body for _, kind, where, body in out if kind == "mask" and channel in {None, where}]


def recorded(out: list[Entry], channel: int) -> bytes:
    return b"".join(body for _, kind, where, body in out if kind == "chunk" and where == channel)


def whole(out: list[Entry]) -> bytes:
    """All that would reach the disk, as one text to search in."""
    return b"\n".join(body if isinstance(body, bytes) else repr(body).encode() for *_, body in out)


def at_every_cut(talk: Talk) -> Iterator[list[Entry]]:
    """``talk`` with each item cut at each place, one cut at a time, and byte by byte."""
    for n, (channel, data) in enumerate(talk):
        for place in range(1, len(data)):
            yield masked([*talk[:n], (channel, data[:place]), (channel, data[place:]), *talk[n + 1 :]])
    yield masked([(channel, bytes([byte])) for channel, data in talk for byte in data])


def request(body: bytes = b"", target: str = "/token", headers: Iterable[str] = (), method: str = "POST") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: a", *headers, *([f"Content-Length: {len(body)}"] if body else [])]
    return "\r\n".join([*lines, "", ""]).encode() + body


def response(body: bytes = b"", headers: Iterable[str] = (), status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body
