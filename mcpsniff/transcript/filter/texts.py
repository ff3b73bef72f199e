"""Find a text in an event: in a message's own text, and in its strings as a reader of the JSON sees them."""

from collections.abc import Callable, Iterator
from typing import Any

from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import BATCH, Message
from mcpsniff.protocol.reading import NOT_UTF8


class Texts:
    """Tests for texts, without regard to case. The message looked at last is kept ready for the next test."""

    def __init__(self) -> None:
        self._message: Message | None = None
        self._raw = ""
        self._strings: list[str] = []

    def tests(self, wanted: str) -> dict[type[Event], Callable[[Any], bool]]:
        """By type of event, whether ``wanted`` is in it."""
        needle = wanted.casefold()

        def of_message(message: Message) -> bool:
            if message is not self._message:
                self._read(message)
            return needle in self._raw or any(needle in string for string in self._strings)

        def of_note(note: Note) -> bool:
            return any(needle in text.casefold() for text in _strings_of(_recorded(note)))

        return {
            Message: of_message,
            Stderr: lambda line: needle in line.text.casefold(),
            Finding: lambda finding: needle in finding.text.casefold(),
            Close: lambda close: close.error is not None and needle in close.error.casefold(),
            Http: lambda event: any(needle in text for text in _heads(event)),
            Note: of_note,
            Edit: of_note,
        }

    def _read(self, message: Message) -> None:
        self._message, self._raw, self._strings = message, "", []
        if message.kind == BATCH and message.body:
            return  # its texts are those of its elements
        raw = message.raw
        self._raw = raw.decode(errors="replace").casefold()
        if b"\\" in raw or NOT_UTF8 in message.flaws:
            self._strings = [string.casefold() for string in _strings_of(message.body)]


def _heads(event: Http) -> Iterator[str]:
    """Start lines and headers of an HTTP exchange."""
    for head in (event.exchange.request, event.exchange.response):
        if head is not None:
            yield head.start_line.decode("latin-1").casefold()
            yield from (f"{name}: {value}".casefold() for name, value in head.headers)


def _recorded(note: Note) -> Any:
    data = note.fields.get("data")
    return note.fields if not isinstance(data, bytes) else {**note.fields, "data": data.decode(errors="replace")}


def _strings_of(value: Any) -> Iterator[str]:
    """The strings in a JSON value, names of members included."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
