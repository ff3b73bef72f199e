"""What a session comes to: counts, latencies per method and per tool, what stayed open, the findings by code.

Memory is bounded whatever the session holds: names beyond a limit are counted together, places are kept only so far.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.checks import SEVERITIES, Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.exchanges import ABANDONED, CANCELLED, ERRORED, OPEN, Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.edit_counts import EditCounts
from mcpsniff.transcript.http_counts import HttpCounts
from mcpsniff.transcript.latency import Latencies
from mcpsniff.transcript.row import Row
from mcpsniff.transcript.talk_counts import CountsByTalk
from mcpsniff.transcript.talks import Talks
from mcpsniff.wire.frames import Frame

NAMES: Final = 200
"""Methods, and targets of one method, that are told apart."""
OTHERS: Final = "(others)"
PLACES: Final = 5
OPEN_SHOWN: Final = 20

BY_TARGET: Final = frozenset({"tools/call", "resources/read", "prompts/get"})
"""Methods whose latency depends on what they are about."""

UNANSWERED: Final = frozenset({OPEN, ABANDONED, CANCELLED})

RANK: Final = {severity: rank for rank, severity in enumerate(SEVERITIES)}


@dataclass(slots=True)
class Calls:
    """The exchanges of one method, or of one tool."""

    count: int = 0
    failed: int = 0
    """Answered with an error of JSON-RPC, with a result whose isError is true, or refused by HTTP."""
    unanswered: int = 0
    """Without an answer: cancelled, abandoned, or still open, unless the capture may lack it; or lost on the way."""
    latencies: Latencies = field(default_factory=Latencies)
    targets: dict[str, "Calls"] = field(default_factory=dict)

    def add(self, exchange: Exchange, *, failed: bool) -> None:
        """Count an exchange that has ended, or never will."""
        self.count += 1
        self.failed += failed
        self.unanswered += is_unanswered(exchange)
        if exchange.latency_us is not None:
            self.latencies.add(exchange.latency_us)


@dataclass(slots=True)
class Fault:
    """All findings of one code that weigh the same and are blamed on the same side."""

    first: Finding
    count: int = 0
    places: list[int] = field(default_factory=list)
    """Where it was found first: the numbers of messages, else of the rows it hangs on, as far as `place` was told."""


class Summary:
    """Feed it every event, then read it."""

    def __init__(self, now_us: int | None = None, talks: Talks | None = None) -> None:
        self.kinds: dict[str, int] = {}
        self.messages = {"c2s": 0, "s2c": 0}
        self.bytes = {"c2s": 0, "s2c": 0}
        self.stderr_lines = 0
        self.last_t = 0 if now_us is None else now_us
        """The latest moment that is known of, in microseconds since the start."""
        self.states: dict[str, int] = {}
        self.methods: dict[tuple[str, str], Calls] = {}
        """By direction of the request and method."""
        self.unanswered: list[Exchange] = []
        """The first requests that were abandoned or are still open, at most OPEN_SHOWN."""
        self.unseen_first: list[Exchange] = []
        """The first requests whose answers the capture may lack, at most OPEN_SHOWN."""
        self.unseen = 0
        """Requests whose answers the capture may lack."""
        self.cancelled_first: list[Exchange] = []
        """The first requests that were cancelled, at most OPEN_SHOWN."""
        self.faults: dict[tuple[str, str, str], Fault] = {}
        """By code, severity and blame."""
        self.refused_first: list[Exchange] = []
        """The first requests that an HTTP status refused, at most OPEN_SHOWN."""
        self.refused = 0
        """Requests that an HTTP status refused, without an answer in JSON-RPC."""
        self.kept_back = 0
        """Requests without an answer that did not go on as they came: nobody owes one."""
        self.undelivered_first: list[Exchange] = []
        """The first requests whose answers did not reach who asked, at most OPEN_SHOWN."""
        self.undelivered = 0
        """Requests that were answered, and whose answers were lost on the way."""
        self.edits = EditCounts()
        self.http = HttpCounts()
        self.by_talk = CountsByTalk()
        self.talks = talks
        """The conversations over HTTP, if there are any."""
        self.of: int | None = None
        """Messages of the whole session, where only a part of it is counted here."""
        self.has_ended = False
        """True once the server's process has ended, or could not be started."""
        self._tool_errors: set[int] = set()

    def feed(self, events: Iterable[Event]) -> None:
        """Count events."""
        for event in events:
            if isinstance(event, Frame):
                self.bytes[event.direction] += event.size
                self.last_t = max(self.last_t, event.t_last)
                self.http.frame(event)
            elif isinstance(event, Message):
                self._message(event)
            elif isinstance(event, Exchange):
                self._exchange(event)
            elif isinstance(event, Finding):
                self._finding(event)
            else:
                self.last_t = max(self.last_t, event.t)
                if isinstance(event, Stderr):
                    self.stderr_lines += 1
                elif isinstance(event, Http):
                    self.http.feed(event)
                    self.by_talk.http(event)
                elif isinstance(event, Edit):
                    self.edits.feed(event)
                    self._deliveries(event)
                elif isinstance(event, Note):
                    self.http.note(event)
                elif isinstance(event, Close) and (event.ends_process or event.how == "error"):
                    self.has_ended = True

    def place(self, row: Row) -> None:
        """Take note where findings are shown: not every event that one hangs on has a row of its own."""
        for finding in row.findings:
            if finding.message is None and finding.at != row.n:
                fault = self.faults.get((finding.code, finding.severity, finding.blame))
                if fault is not None:
                    fault.places = [row.n if place == finding.at else place for place in fault.places]

    def worst_first(self) -> list[Fault]:
        """The findings by code and blame, the worst severity first, then the most frequent."""

        def weight(fault: Fault) -> tuple[int, int, str, str]:
            return RANK[fault.first.severity], -fault.count, fault.first.code, fault.first.blame

        return sorted(self.faults.values(), key=weight)

    def severities(self) -> dict[str, int]:
        """How many findings there are of each severity, worst first, without those there are none of."""
        counts = dict.fromkeys(SEVERITIES, 0)
        for fault in self.faults.values():
            counts[fault.first.severity] += fault.count
        return {severity: number for severity, number in counts.items() if number}

    def _message(self, message: Message) -> None:
        self.kinds[message.kind] = self.kinds.get(message.kind, 0) + 1
        self.messages[message.direction] += 1
        self.by_talk.message(message)
        link = message.link
        if message.result.get("isError") is True and link is not None and link.response == message.n:
            self._tool_errors.add(link.request)

    def _exchange(self, exchange: Exchange) -> None:
        self.states[exchange.state] = self.states.get(exchange.state, 0) + 1
        refused = is_refused(exchange)
        failed = exchange.state == ERRORED or exchange.request in self._tool_errors or refused
        self._tool_errors.discard(exchange.request)
        self.by_talk.exchange(exchange, failed=failed, unanswered=is_unanswered(exchange))
        calls = _within(self.methods, (exchange.direction, exchange.method), (exchange.direction, OTHERS))
        calls.add(exchange, failed=failed)
        if exchange.method in BY_TARGET and exchange.target is not None:
            _within(calls.targets, exchange.target, OTHERS).add(exchange, failed=failed)
        self.refused += refused
        self.unseen += exchange.may_be_answered
        self.kept_back += is_kept_back(exchange)
        if exchange.state in UNANSWERED and not is_kept_back(exchange):
            named = self.cancelled_first if exchange.state == CANCELLED else self.unanswered
            named = self.refused_first if refused else self.unseen_first if exchange.may_be_answered else named
            if len(named) < OPEN_SHOWN:
                named.append(exchange)
        if exchange.undelivered is not None and exchange.undelivered.n < exchange.n:
            self._lost(exchange, 1)

    def _deliveries(self, edit: Edit) -> None:
        """What an edit does to answers that were counted already."""
        for exchange in edit.lost:
            self._lost(exchange, 1)
        for exchange in edit.found:
            self._lost(exchange, -1)

    def _lost(self, exchange: Exchange, change: int) -> None:
        """An answer is lost on the way (1), or goes on after all (-1)."""
        method = exchange.direction, exchange.method
        calls = self.methods.get(method, self.methods.get((exchange.direction, OTHERS)))
        if calls is None:
            return  # a filter leaves it out
        self.undelivered += change
        self.by_talk.lost(exchange, change)
        calls.unanswered += change
        of_target = calls.targets.get(exchange.target or "", calls.targets.get(OTHERS))
        if exchange.method in BY_TARGET and of_target is not None:
            of_target.unanswered += change
        if change < 0:
            self.undelivered_first = [one for one in self.undelivered_first if one is not exchange]
        elif len(self.undelivered_first) < OPEN_SHOWN:
            self.undelivered_first.append(exchange)

    def _finding(self, finding: Finding) -> None:
        self.by_talk.finding(finding)
        key = finding.code, finding.severity, finding.blame
        fault = self.faults.get(key)
        if fault is None:
            fault = self.faults[key] = Fault(finding)
        fault.count += 1
        if len(fault.places) < PLACES:
            fault.places.append(finding.at if finding.message is None else finding.message)

    @property
    def cancelled(self) -> int:
        """Requests that were cancelled."""
        return self.states.get(CANCELLED, 0)

    @property
    def waiting(self) -> int:
        """Requests without an answer: abandoned, or still open; those that are refused or unseen aside."""
        return self.states.get(ABANDONED, 0) + self.states.get(OPEN, 0) - self.refused - self.unseen - self.kept_back


def is_refused(exchange: Exchange) -> bool:
    """True if the HTTP status of the response is all the answer that a request got."""
    return exchange.state == ABANDONED and exchange.is_refused


def is_kept_back(exchange: Exchange) -> bool:
    """True if a request has no answer since it did not go on as it came; one that was cancelled is told as that."""
    return (
        exchange.state in (OPEN, ABANDONED)
        and exchange.is_kept_back
        and not exchange.is_refused
        and not (exchange.may_be_answered)
    )


def is_unanswered(exchange: Exchange) -> bool:
    """True if a request has no answer, as far as that can be said."""
    owed = not exchange.may_be_answered and not is_kept_back(exchange)
    return exchange.state in UNANSWERED and not is_refused(exchange) and owed


def _within[Key](table: dict[Key, Calls], key: Key, others: Key) -> Calls:
    """The calls under ``key``, or under ``others`` when the table is full."""
    if key not in table and len(table) >= NAMES:
        key = others
    return table.setdefault(key, Calls())
