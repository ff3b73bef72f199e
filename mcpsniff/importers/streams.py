"""When the events of a stream came, where a file has the stream but not its times.

Each event stands at the earliest moment that it can have had: not before the stream and the event before it, and not
before the request that it answers. If there is any order that agrees with all of that and with the answers of the
client, this one does. The answer to the request of the stream's own POST ends it, as servers do.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from mcpsniff.importers.heard import Half, Heard

EVENT_STREAM: Final = "text/event-stream"
_BLANK_LINE: Final = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_DATA: Final = re.compile(rb"^data:?[ ]?(.*)$", re.MULTILINE)


class Asked:
    """When each request was whole, by authority and id."""

    def __init__(self, exchanges: Iterable[Heard]) -> None:
        self._at: dict[tuple[str, str], list[int]] = {}
        for heard in exchanges:
            asked = heard.request
            for method, token in _messages(asked.body or b""):
                if method and token:
                    whole = asked.began if asked.ended is None else asked.ended
                    self._at.setdefault((heard.authority, token), []).append(whole)
        for times in self._at.values():
            times.sort()

    def take(self, authority: str, token: str, first: int, last: int) -> int | None:
        """When the first request with this id was whole that came within ``first`` and ``last`` and was not taken."""
        times = self._at.get((authority, token), [])
        for index, at in enumerate(times):
            if first <= at <= last:
                return times.pop(index)
        return None


def is_stream(half: Half | None) -> bool:
    """True for a response that is an event stream."""
    return half is not None and half.get("content-type").partition(";")[0].strip().lower() == EVENT_STREAM


def place(heard: Heard, asked: Asked, latest: int) -> None:
    """Give the pieces of a stream times, if it has none. ``latest`` is the last moment of the file."""
    half = heard.response
    if half is None or not is_stream(half) or not half.body or half.pieces or half.get("content-encoding"):
        return
    began, ended = half.began, latest if half.ended is None else half.ended
    own = {token for method, token in _messages(heard.request.body or b"") if method and token}
    at = began
    for event in _split(half.body):
        said = list(_messages(b"\n".join(_DATA.findall(event))))
        answers = [token for is_request, token in said if token and not is_request]
        for token in answers:
            if token in own:
                at = max(at, ended)
                continue
            asked_at = asked.take(heard.authority, token, began - 1, ended)
            at = at if asked_at is None else max(at, asked_at + 1)
        half.is_untimed = half.is_untimed or (bool(said) and not own.issuperset(answers or [""]))
        half.pieces.append((min(at, ended), event))


def _split(body: bytes) -> Iterator[bytes]:
    """The events of a stream, each with the blank line that ends it."""
    start = 0
    for found in _BLANK_LINE.finditer(body):
        yield body[start : found.end()]
        start = found.end()
    if start < len(body):
        yield body[start:]


def _messages(text: bytes) -> Iterator[tuple[bool, str]]:
    """Of each message in a body: whether it has a method, and its id as JSON; an id is empty if it has none."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            yield "method" in one, _token(one.get("id"))


def _token(value: Any) -> str:
    return "" if value is None else orjson.dumps(value).decode()
