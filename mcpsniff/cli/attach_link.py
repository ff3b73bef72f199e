"""The connection to a session with break points: what is held there, and orders about it."""

import json
import select
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import McpsniffError, UsageError
from mcpsniff.proxy.breaks.peer import is_ourselves
from mcpsniff.proxy.breaks.places import connected, places

PATIENCE: Final = 10.0
"""Seconds that a session has to say something it is asked for: it may be under load, or stopped."""
_PIECE: Final = 1 << 18


class RefusedError(McpsniffError):
    """The session does not do what it was asked for; the text says why."""

    exit_status = 1


class EndedError(McpsniffError):
    """The session has ended, or does not say anything."""


@dataclass(slots=True)
class Held:
    """A message that is held in the session. Everything in ``facts`` is captured text."""

    number: int
    facts: Mapping[str, Any]
    """See `mcpsniff.proxy.breaks.held.Held.facts`."""
    came: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds for which it has been held."""
        return float(self.facts["age"]) + time.monotonic() - self.came

    @property
    def left(self) -> float | None:
        """Seconds until it passes by itself; None: it does not."""
        left = self.facts["left"]
        return None if left is None else max(float(left) - time.monotonic() + self.came, 0.0)


class Link:
    """Attached to the session whose socket is at ``path``. Raises OSError, EndedError."""

    def __init__(self, path: str) -> None:
        self.held: dict[int, Held] = {}
        """By number, the oldest first."""
        self.session: dict[str, Any] = {}
        """The session's process (``pid``), ``labels``, ``transport``, ``breaks``, ``timeout``, and if it is ``on``."""
        self.is_over = False
        """True once the session has ended."""
        self.gone: list[tuple[Held, str]] = []
        """What was held and is not any more, with how that came; to be taken from here by who shows it."""
        self._pieces: list[bytes] = []
        self._asked = 0
        self._replies: dict[int, dict[str, Any]] = {}
        self._is_listed = False
        self._connection = connected(path)
        try:
            if not is_ourselves(self._connection):
                raise EndedError(f"the process behind {shown(path)} is another user's")
            self._connection.settimeout(PATIENCE)
            self._wait(lambda: self._is_listed)
        except BaseException:
            self._connection.close()
            raise

    def fileno(self) -> int:
        """The descriptor that becomes readable when there is news."""
        return self._connection.fileno()

    def close(self) -> None:
        """Detach. What is held stays held."""
        self._connection.close()

    def look(self, seconds: float = 0.0) -> bool:
        """Take the news, waiting for it so long at most; False if there is none."""
        if self.is_over or not select.select([self._connection], [], [], seconds)[0]:
            return False
        try:
            data = self._connection.recv(_PIECE)
        except OSError:
            data = b""
        if not data:
            self.is_over = True
            return True
        self._pieces.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(self._pieces).split(b"\n")
            self._pieces = [rest]
            for line in lines:
                self._take(json.loads(line))
        return True

    def order(self, do: str, number: int | None = None, **more: Any) -> dict[str, Any]:
        """Give an order, and return what comes of it. Raises RefusedError, EndedError."""
        self._asked += 1
        asked = self._asked
        order = {"ask": asked, "do": do, **({} if number is None else {"n": number}), **more}
        try:
            self._connection.sendall(json.dumps(order).encode() + b"\n")
        except OSError:
            self.is_over = True
        self._wait(lambda: asked in self._replies)
        reply = self._replies.pop(asked)
        if "no" in reply:
            raise RefusedError(str(reply["no"]))
        return reply

    def text(self, number: int) -> bytes:
        """The JSON text of a held message. Raises RefusedError, EndedError."""
        reply = self.order("show", number)
        return b64decode(reply["b64"]) if "b64" in reply else str(reply["text"]).encode()

    def forget(self, number: int) -> None:
        """We have decided about a message ourselves, so it is no news that it goes."""
        self.held.pop(number, None)
        self.gone = [one for one in self.gone if one[0].number != number]

    def forget_all(self) -> None:
        """The same for all that was held."""
        self.held.clear()
        self.gone.clear()

    def _wait(self, has_come: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not has_come():
            if self.is_over:
                raise EndedError("the session has ended")
            if not self.look(max(until - time.monotonic(), 0.0)) and time.monotonic() >= until:
                raise EndedError(f"the session says nothing (process {self.session.get('pid', 'unknown')})")

    def _take(self, news: dict[str, Any]) -> None:
        if "re" in news:
            if isinstance(news["re"], int):
                self._replies[news["re"]] = news
        elif "held" in news:
            self.held.setdefault(news["held"], Held(news["held"], news))
        elif "gone" in news:
            held = self.held.pop(news["gone"], None)
            if held is not None:
                self.gone.append((held, news["how"]))
        elif "listed" in news:
            self._is_listed = True
        else:
            self.session.update(news)


def attached(what: str | None) -> Link:
    """A link to the session with break points that ``what`` names: its label, a part of that, or a process id.

    Without it the only one there is. Raises UsageError if that leaves a choice, EndedError if there is none.
    """
    links = _links()
    chosen = links if what is None else _named(links, what)
    for link in links:
        if link not in chosen[:1] or len(chosen) > 1:
            link.close()
    if len(chosen) == 1:
        return chosen[0]
    if len(chosen) > 1:
        raise UsageError(f"there are {len(chosen)} sessions with break points, name one of them: {_listed(chosen)}")
    if links:
        raise EndedError(f"no session with break points is called {shown(what or '')}; there is {_listed(links)}")
    raise EndedError("no session with break points is running (mcpsniff stdio, http, forward or run with --break EXPR)")


def sessions() -> list[tuple[int, list[str]]]:
    """The process id and the labels of each session with break points."""
    found = []
    for link in _links():
        found.append((int(link.session["pid"]), [str(label) for label in link.session["labels"]]))
        link.close()
    return found


def _links() -> list[Link]:
    """Links to all sessions that answer."""
    links = []
    for place in places():
        try:
            links.append(Link(place.path))
        except (OSError, EndedError, ValueError, KeyError):  # it has ended just now, or is stopped
            continue
    return links


def _named(links: list[Link], what: str) -> list[Link]:
    """Those whose label it is; else whose process id, whose label begins with it, whose label has it."""
    tests: tuple[Callable[[Link], bool], ...] = (
        lambda link: what in link.session["labels"],
        lambda link: what == str(link.session["pid"]),
        lambda link: any(label.startswith(what) for label in link.session["labels"]),
        lambda link: any(what in label for label in link.session["labels"]),
    )
    for test in tests:
        found = [link for link in links if test(link)]
        if found:
            return found
    return []


def _listed(links: list[Link]) -> str:
    return ", ".join(
        f"{link.session['pid']} ({shown(', '.join(link.session['labels']) or link.session['transport'])})"
        for link in links
    )
