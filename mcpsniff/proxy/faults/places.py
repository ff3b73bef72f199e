"""Where in the traffic a message stands, in words that are the same whenever the same traffic passes.

A request is known by who sent it, its method and its id, an answer by its request, anything else by its number among
its like; and all of them by their session, from the second one on. Nothing of it depends on which thread was first. A
second message of the same place has ``no. 2``.
"""

import re
from collections.abc import Hashable
from threading import Lock
from typing import Final
from urllib.parse import quote

from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, RESPONSE, Message

OPENING: Final = ("initialize", "server/discover")
"""What a client opens a session with."""
REMEMBERED: Final = 100_000
"""Places, and open requests, that are remembered."""
_WHO: Final = {"c2s": "client's", "s2c": "server's"}
_WHOLE: Final = re.compile(r'-?[0-9]{1,18}|"[0-9]{1,18}"')
PLACE: Final = r"(?:client|server)'s [^()]+"
"""A place, as a regular expression."""


class Places:
    """Gives each message its place. May be used by many threads at once."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._requests: dict[Hashable, str] = {}
        self._sessions: dict[int, str] = {}
        """Of each conversation that has been opened: which one it is, in words."""
        self._opened = 0
        self._lock = Lock()

    def of(self, message: Message) -> str:
        """The place of a message; to be asked once for each."""
        with self._lock:
            return f"{_WHO[message.direction]} {self._of(message)}"

    def _of(self, message: Message) -> str:
        link = message.link
        method = quote(message.method or "", safe="/._-$:")
        if message.kind == REQUEST:
            if message.method in OPENING and message.conversation not in self._sessions:
                self._opened += 1
                _remember(
                    self._sessions, message.conversation, f" of session {self._opened}" if self._opened > 1 else ""
                )
            place = self._numbered(message, f"request {method}", _id(message.id))
            if link is not None:
                _remember(self._requests, _key(link), place.removeprefix("request "))
            return place
        if message.kind in (RESPONSE, ERROR):
            asked = None if link is None else self._requests.pop(_key(link), None)
            if asked is not None:
                return f"answer to {asked}"
            return self._numbered(message, "answer", _id(message.id))
        if message.kind == NOTIFICATION:
            about = None if link is None else self._requests.get(_key(link))
            what = f"notification {method}" + (f" about {about}" if about is not None else "")
            return self._numbered(message, what, None)
        return self._numbered(message, message.kind, None)

    def _numbered(self, message: Message, what: str, number: str | None) -> str:
        what = what if number is None else f"{what} id {number}"
        what += self._sessions.get(message.conversation, "")
        key = message.direction + what
        count = self._counts.pop(key, 0) + 1
        _remember(self._counts, key, count)
        return what if number is not None and count == 1 else f"{what} no. {count}"


def _remember[Key: Hashable, Held](memory: dict[Key, Held], key: Key, value: Held) -> None:
    memory[key] = value
    if len(memory) > REMEMBERED:
        del memory[next(iter(memory))]


def _key(link: Exchange) -> Hashable:
    return link.conversation, link.direction, link.key


def _id(token: str | None) -> str | None:
    """An id that was counted up; None for any other, which may be another one in the next run."""
    return token.strip('"') if token is not None and _WHOLE.fullmatch(token) else None
