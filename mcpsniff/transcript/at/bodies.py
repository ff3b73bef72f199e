"""The bodies of an HTTP exchange that carry no message, on the page of an event: metadata, forms, tokens, pages."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from mcpsniff.protocol.http import Body, Http, media_type
from mcpsniff.transcript.layout import hanging, hard_wrapped, length, wrapped
from mcpsniff.transcript.pretty import NOTE, PLAIN, Line, pretty
from mcpsniff.transcript.safe import visible
from mcpsniff.wire.http1_parts import Head

_FORM: Final = "application/x-www-form-urlencoded"


class Shown(NamedTuple):
    """A body that carries no message, and which it is."""

    of: str
    """``request`` or ``response``."""
    kind: str
    """Its media type, in lower case."""
    body: Body

    @property
    def cut(self) -> str:
        """How much of it there is, where that is not all; else empty."""
        if not self.body.is_cut:
            return ""
        kept, size = len(self.body.kept), self.body.size
        return f"… mcpsniff kept the first {kept:,} of {size:,} bytes; the capture carries all"


def bodies(event: Http) -> Iterator[Shown]:
    """Those of an HTTP exchange that were told with this event."""
    http = event.exchange
    for of, head, body in (("request", http.request, event.asked), ("response", http.response, event.answered)):
        if body.kept:
            yield Shown(of, _kind(head), body)


def shown_lines(shown: Shown, width: int) -> Iterator[Line]:
    """JSON laid out, a form field by field, other text as it is, all as it was recorded; what is no text is only named.

    Lines are about ``width`` cells wide.
    """
    text = shown.body.text_of(shown.body.kept)
    if not text:
        yield from _remark("no text; --hex shows its bytes", width)
    elif not shown.body.is_cut and _is_json(shown.body.kept):
        yield from (piece for line in pretty(text, width) for piece in hanging(line, width))
    elif shown.kind == _FORM:
        for pair in text.split("&"):
            name, equals, value = pair.partition("=")
            yield from _field(visible(name) + equals, visible(value), width)
    else:
        for line in text.expandtabs(4).splitlines():
            yield from ([(PLAIN, piece)] for piece in hard_wrapped(visible(line), width))
    yield from _remark(shown.cut, width)


def _field(name: str, value: str, width: int) -> Iterator[Line]:
    start: Line = [("name", name)]
    if length(start) + len(value) <= width:
        yield [*start, (PLAIN, value)]
        return
    yield from ([("name", piece)] for piece in hard_wrapped(name, width))
    yield from ([("", "  "), (PLAIN, piece)] for piece in hard_wrapped(value, width - 2))


def _remark(text: str, width: int) -> Iterator[Line]:
    if text:
        yield from ([(NOTE, part)] for part in wrapped(text, width))


def _kind(head: Head | None) -> str:
    return "" if head is None else media_type(head.get("content-type"))


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except ValueError:
        return False
    return True
