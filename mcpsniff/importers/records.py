"""Exchanges that another program kept, as the records of a capture: a channel for each body, in the order of time."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from mcpsniff.capture.records import CHUNK, CLOSE, COMMENT, GAP, OPEN
from mcpsniff.importers.heard import CLIENT, Account, Half, Heard
from mcpsniff.importers.streams import Asked, place

SOURCE: Final = "source"
"""Why bytes are missing: the file that was imported does not have them."""
BY: Final = "mcpsniff import"

type Entry = tuple[int, str, int | None, Any]
"""t in microseconds since the first, kind, channel, body: what `mcpsniff.capture.writer.CaptureWriter` takes."""


class Imported(NamedTuple):
    """What a file comes to."""

    started: int
    """When its first request began (microseconds since the epoch)."""
    entries: list[Entry]


def in_time(exchanges: Sequence[Heard]) -> list[Heard]:
    """The exchanges in the order in which they began."""
    return sorted(exchanges, key=lambda heard: heard.request.began)


def records_of(exchanges: Sequence[Heard], account: Account, *, apart: bool = False) -> Imported:
    """The records of ``exchanges``; what they lack is told in comments at the beginning, and in ``account.remarks``.

    With ``apart`` each has a connection of its own, numbered in the order in which they began.
    """
    exchanges = in_time(exchanges)
    latest = max(map(_end, exchanges), default=0)
    asked = Asked(exchanges)
    for heard in exchanges:
        place(heard, asked, latest)
    account.remarks += _losses(exchanges)
    entries: list[Entry] = []
    connections: dict[str, int] = {}
    for index, heard in enumerate(exchanges):
        connection = connections.setdefault(heard.place if apart else heard.connection, len(connections))
        entries += _exchange(heard, 2 * index, connection, latest)
    entries.sort(key=lambda entry: entry[0])
    started = entries[0][0] if entries else 0
    comments: list[Entry] = [(0, COMMENT, None, {"text": text, "by": BY}) for text in account.remarks]
    return Imported(started, comments + [(t - started, *rest) for t, *rest in entries])


def _exchange(heard: Heard, channel: int, connection: int, latest: int) -> Iterator[Entry]:
    """The records of one exchange on two channels; where the file has no end, and no word about it, there is none."""
    about = {"authority": heard.authority, "scheme": heard.scheme}
    about |= {name: value for name, value in (("client", heard.client), ("server", heard.server)) if value}
    request, response = heard.request, heard.response
    fields = {"kind": "http-request", "dir": "c2s", "conn": connection}
    yield request.began, OPEN, channel, {**fields, "meta": {**_head(request), **about}}
    end = request.began if request.ended is None else request.ended
    yield from _body(request, channel, end)
    if (close := _close(heard, request, of_request=True)) is not None:
        yield end, CLOSE, channel, close
    fields = {"kind": "http-response", "dir": "s2c", "conn": connection, "of": channel}
    close = _close(heard, response, of_request=False)
    if response is None:
        if close is not None:  # its channel says how it ended, although nothing came
            yield latest, OPEN, channel + 1, {**fields, "meta": about}
            yield latest, CLOSE, channel + 1, close
        return
    yield response.began, OPEN, channel + 1, {**fields, "meta": {**_head(response), **about}}
    end = response.ended if response.ended is not None else max(response.began, latest)
    yield from _body(response, channel + 1, end)
    if close is not None:
        yield end, CLOSE, channel + 1, close


def _head(half: Half) -> dict[str, Any]:
    head: dict[str, Any] = {"start": half.start, "headers": [list(pair) for pair in half.headers]}
    return {**head, "uncoded": half.coding} if half.coding else head


def _body(half: Half, channel: int, end: int) -> Iterator[Entry]:
    if half.body is None:
        yield end, GAP, channel, {"bytes": half.size or 0, "why": SOURCE}
        return
    for at, piece in half.pieces or ([(end, half.body)] if half.body else []):
        yield min(at, end), CHUNK, channel, piece


def _close(heard: Heard, half: Half | None, *, of_request: bool) -> dict[str, Any] | None:
    """How a channel ended: whole, or broken off by the one who sent on it, or by the other; None if it is not known."""
    if half is not None and half.ended is not None:
        return {"how": "eof"}
    if not heard.broken_by:
        return None
    by_sender = (heard.broken_by == CLIENT) == of_request
    return {"how": "reset" if by_sender else "aborted", "error": heard.error}


def _end(heard: Heard) -> int:
    halves = [half for half in (heard.request, heard.response) if half is not None]
    known = [at for half in halves for at in (half.began, half.ended, *(piece[0] for piece in half.pieces))]
    return max(at for at in known if at is not None)


def _losses(exchanges: Sequence[Heard]) -> Iterator[str]:
    """What the file lacks, in sentences."""
    halves = [half for heard in exchanges for half in (heard.request, heard.response) if half is not None]
    if missing := sum(half.body is None for half in halves):
        yield (
            f"the file does not have {_count(missing, 'body', 'bodies')} of these messages: they were streamed, or left"
            " out by the program that wrote it (mitmproxy keeps them with --set store_streamed_bodies=true, a browser"
            " in a HAR file with content)"
        )
    if uncoded := sum(bool(half.coding) for half in halves):
        yield f"{_count(uncoded, 'body is', 'bodies are')} without the compression that the wire had"
    if repaired := sum(half.is_repaired for half in halves):
        yield (
            f"the file has {_count(repaired, 'body', 'bodies')} in UTF-8 as if it were Latin-1 or windows-1252, so that"
            " other characters than ASCII were wrong: they are put right here"
        )
    if untimed := sum(half.is_untimed for half in halves):
        yield (
            f"the file does not tell when the events of {_count(untimed, 'stream', 'streams')} came: each stands at the"
            " earliest moment that agrees with the others, so times of answers on them mean little"
        )


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
