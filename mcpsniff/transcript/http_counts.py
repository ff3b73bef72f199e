"""What a session over HTTP comes to below its messages: exchanges by status, connections, streams, our own changes."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from mcpsniff.protocol.events import Note
from mcpsniff.protocol.http import OPEN, STREAMING, UNDECODED, Http
from mcpsniff.transcript.auth_counts import AuthCounts
from mcpsniff.transcript.http_words import counts
from mcpsniff.transcript.servers import Servers
from mcpsniff.transcript.units import count
from mcpsniff.wire.frames import Frame

CONNECTIONS: Final = 10_000
"""Connections that are told apart from others at one time."""
STATUSES: Final = 30
"""Statuses that are told apart."""
US: Final = "mcpsniff"
NAMES: Final = 6
"""Secrets that are named."""


class HttpCounts:
    """Feed it HTTP exchanges, frames and remarks, then read its lines."""

    def __init__(self) -> None:
        self.exchanges = 0
        self.classes: dict[str, int] = {}
        """Exchanges by the class of their status: ``2xx``."""
        self.statuses: dict[int, int] = {}
        """Exchanges by status, from 300 on."""
        self.connections = 0
        self.streams = self.resumed = self.open_streams = 0
        self.events = self.primings = self.keep_alives = 0
        self.undecoded = 0
        self.auth = AuthCounts()
        self.servers = Servers()
        self.by_us = self.rewrites = self.masks = 0
        self.masked: dict[str, int] = {}
        self._seen: OrderedDict[int, None] = OrderedDict()

    def feed(self, event: Http) -> None:
        """Count an exchange whose stream begins, or that is over."""
        http = event.exchange
        if event.state == UNDECODED:
            self.undecoded += 1
            return
        if event.state == STREAMING:
            self.streams += 1
            self.open_streams += 1
            self.resumed += http.resumed
        elif http.stream is not None:
            self.open_streams -= 1
        if event.is_first:
            if http.auth is not None:
                self.auth.feed(http.auth)
            self.servers.add(http.authority, is_mcp=http.talk is not None, exchanges=1)
            self._exchange(http.status, is_open=event.state == OPEN)
            self.by_us += http.by == US
            if http.connection not in self._seen:
                self.connections += 1
                self._seen[http.connection] = None
                if len(self._seen) > CONNECTIONS:
                    self._seen.popitem(last=False)

    def _exchange(self, status: int | None, *, is_open: bool) -> None:
        self.exchanges += 1
        name = f"{status // 100}xx" if status is not None else "open" if is_open else "without a response"
        self.classes[name] = self.classes.get(name, 0) + 1
        if status is not None and status >= 300 and (status in self.statuses or len(self.statuses) < STATUSES):
            self.statuses[status] = self.statuses.get(status, 0) + 1

    def frame(self, frame: Frame) -> None:
        """Count an event of a stream."""
        event = frame.sse
        if event is None:
            return
        self.events += bool(event.dispatched and frame.payload)
        self.primings += event.id is not None and not frame.payload
        self.keep_alives += bool(event.comments) and event.id is None and not event.dispatched

    def note(self, note: Note) -> None:
        """Count what mcpsniff hid or changed."""
        if note.kind == "mask":
            self.masks += 1
            what = note.fields.get("what")
            name = what[:40] if isinstance(what, str) else "?"
            if name in self.masked or len(self.masked) < NAMES:
                self.masked[name] = self.masked.get(name, 0) + 1
        elif note.kind == "rewrite" and note.fields.get("length") != 0 and not note.fields.get("why"):
            self.rewrites += 1

    def briefly(self) -> str:
        """How many exchanges there are; empty if none."""
        return count(self.exchanges, "HTTP exchange") if self.exchanges else ""

    def lines(self) -> Iterator[str]:
        """What it all comes to; texts of peers are among it."""
        if self.exchanges or self.undecoded:
            yield self._exchanges()
        if self.streams:
            yield self._streams()
        yield from self.auth.lines()
        if self.exchanges and (changes := self._changes()):
            yield f"mcpsniff: {', '.join(changes)}"
        yield from self.servers.lines()

    def _exchanges(self) -> str:
        parts = []
        for name, number in sorted(self.classes.items()):
            exact = sorted((status, times) for status, times in self.statuses.items() if f"{status // 100}xx" == name)
            listed = ", ".join(f"{times} × {status}" if times > 1 else f"{status}" for status, times in exact)
            sign = " × " if name.endswith("xx") else " "
            parts.append(f"{number:,}{sign}{name}{f' ({listed})' if listed else ''}")
        if self.undecoded:
            parts.append(f"{count(self.undecoded, 'connection')} with something else than HTTP/1.x")
        where = f"{count(self.exchanges, 'exchange')} on {count(self.connections, 'connection')}"
        return f"HTTP: {where}: {', '.join(parts)}"

    def _streams(self) -> str:
        *first, last = counts(self.events, self.keep_alives, self.primings)
        said = f"{', '.join(first)} and {last}" if first else last
        some = [f"{self.resumed:,} resumed"] * bool(self.resumed) + [f"{self.open_streams:,} open"] * (
            self.open_streams > 0
        )
        return f"event streams: {self.streams:,}{f' ({", ".join(some)})' if some else ''}, with {said}"

    def _changes(self) -> list[str]:
        changes = []
        if self.by_us:
            changes.append(f"gave {count(self.by_us, 'answer')} itself")
        if self.rewrites:
            changes.append(f"changed {count(self.rewrites, 'place')} on the way")
        if self.masks:
            names = ", ".join(self.masked) + ("…" if self.masks > sum(self.masked.values()) else "")
            changes.append(f"masked {count(self.masks, 'secret')} in the capture ({names})")
        return changes
