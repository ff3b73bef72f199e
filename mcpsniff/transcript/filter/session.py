"""A session of which a filter shows a part: decoded twice, the first time to learn what matches."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from mcpsniff.capture.parser import Damage
from mcpsniff.capture.records import Record
from mcpsniff.decoder import Event
from mcpsniff.transcript.filter.expression import Filter
from mcpsniff.transcript.filter.select import Selection
from mcpsniff.transcript.head import Entry, without_hint
from mcpsniff.transcript.servers import listed
from mcpsniff.transcript.session import Session, Source, Whole
from mcpsniff.transcript.talks import Talk
from mcpsniff.transcript.units import count

LONGEST_NAME: Final = 80
"""Characters of the name of a server that are named."""
SERVERS_NAMED: Final = 8
"""Servers that are named where the filter matches nothing."""


class FilteredSession(Session):
    """A session that gives only what ``chosen`` shows. See `mcpsniff.transcript.session.Session` for the rest.

    ``source`` must be readable twice. It is read at once, and again for `events`; a capture that grows in between is
    shown as far as the first reading went.
    """

    def __init__(
        self,
        source: Source,
        chosen: Filter,
        label: str = "",
        *,
        now_us: int | None = None,
    ) -> None:
        self._chosen = chosen
        self._selection = Selection(chosen)
        first = _Counted(source)
        learnt = Session(first, label, now_us=now_us)
        self._selection.learn(learnt.events())
        self._all_talks = learnt.talks
        self._conversations = learnt.talks.count if learnt.is_over_http else 1
        super().__init__(_Bounded(source, first, tuple(learnt.editors)), label, now_us=now_us)

    @property
    def whole(self) -> Whole:
        """What the session comes to without the filter."""
        return Whole(self._selection.messages, self._selection.last_t, self._selection.has_ended)

    @property
    def is_empty(self) -> bool:
        """True if the filter shows nothing at all."""
        return self._selection.is_empty

    def nothing(self) -> str:
        """What to say where nothing is shown; captured text is in it."""
        told = [f"the filter matches none of {self.whole.messages:,} messages"]
        if "server" in self._chosen.fields:
            told.append(self._servers())
        if "conversation" in self._chosen.fields:
            number = self._conversations
            told.append(f"there {'is' if number == 1 else 'are'} {count(number, 'conversation')}")
        return "; ".join(told)

    def _servers(self) -> str:
        """Who there is to ask for; captured text is in it."""
        servers = self._all_talks.servers
        asked = [*servers.spoken, *servers.besides]
        names = dict.fromkeys(name for talk in self._all_talks.named.values() for name in _name_of(talk))
        if not asked:
            return "no server was spoken to over HTTP"
        called = f", by their own names {listed([*names], SERVERS_NAMED)}" if names else ""
        return f"the servers are {listed(asked, SERVERS_NAMED)}{called}"

    def events(self) -> Iterator[list[Event]]:
        """The events that are shown, in a list for each record (also an empty one)."""
        return self._selection.pick(super().events())

    def head(self) -> list[Entry]:
        """The head, with the filter and how much it shows."""
        alone = ", each by itself" if self._chosen.alone else ""
        chosen = self._selection
        shown = f"{chosen.shown:,} of {count(chosen.messages, 'message')}"
        if chosen.exchanges:
            shown += f" and {chosen.exchanges_shown:,} of {count(chosen.exchanges, 'HTTP exchange')}"
        remark = f"{shown} shown{alone}"
        entries = without_hint(super().head(), self._chosen.fields)
        return [*entries, Entry("filter", self._chosen.expression, remark)]


def _name_of(talk: Talk) -> list[str]:
    name = talk.conversation.server_info.get("name")
    return [name[:LONGEST_NAME]] if isinstance(name, str) and name else []


class _Counted:
    """A capture that counts the records it gives."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.header, self.path, self.joined_late = source.header, source.path, source.joined_late
        self.damage: list[Damage] = []
        self.count = 0

    def records(self) -> Iterator[Record]:
        """The records, in order."""
        for record in self._source.records():
            self.count += 1
            yield record
        self.damage = list(self._source.damage)


class _Bounded:
    """A capture as far as another reading of it went."""

    def __init__(self, source: Source, read: _Counted, editors: Sequence[str]) -> None:
        self._source = source
        self.editors = editors
        self._count = read.count
        self.header, self.path, self.joined_late = source.header, source.path, source.joined_late
        self.parts = getattr(source, "parts", ())
        self.damage = read.damage

    def records(self) -> Iterator[Record]:
        """The records, in order."""
        return islice(self._source.records(), self._count)
