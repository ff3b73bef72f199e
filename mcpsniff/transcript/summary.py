"""What a session comes to: counts, latencies per method and per tool, what stayed open, the findings by code.

Memory is bounded whatever the session holds: names beyond a limit are counted together, places are kept only so far.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.checks import SEVERITIES, Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.events import Close, Stderr
from mcpsniff.protocol.exchanges import ABANDONED, CANCELLED, ERRORED, OPEN, Exchange
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.latency import Latencies
from mcpsniff.wire.frames import Frame

NAMES: Final = 200
"""Methods, and targets of one method, that are told apart."""
OTHERS: Final = "(others)"
PLACES: Final = 5
OPEN_SHOWN: Final = 20

BY_TARGET: Final = frozenset({"tools/call", "resources/read", "prompts/get"})
"""Methods whose latency depends on what they are about."""

RANK: Final = {severity: rank for rank, severity in enumerate(SEVERITIES)}


@dataclass(slots=True)
class Calls:
    """The exchanges of one method, or of one tool."""

    count: int = 0
    failed: int = 0
    latencies: Latencies = field(default_factory=Latencies)
    targets: dict[str, "Calls"] = field(default_factory=dict)

    def add(self, exchange: Exchange, *, failed: bool) -> None:
        """Count an exchange that has ended, or never will."""
        self.count += 1
        self.failed += failed
        if exchange.latency_us is not None:
            self.latencies.add(exchange.latency_us)


@dataclass(slots=True)
class Fault:
    """All findings of one code."""

    first: Finding
    count: int = 0
    places: list[int] = field(default_factory=list)
    """Where it was found first: the numbers of messages, else of the events it hangs on."""
    severity: str = ""
    """The worst of them."""


class Summary:
    """Feed it every event, then read it."""

    def __init__(self) -> None:
        self.kinds: dict[str, int] = {}
        self.messages = {"c2s": 0, "s2c": 0}
        self.bytes = {"c2s": 0, "s2c": 0}
        self.stderr_lines = 0
        self.last_t = 0
        self.states: dict[str, int] = {}
        self.methods: dict[tuple[str, str], Calls] = {}
        """By direction of the request and method."""
        self.unanswered: list[Exchange] = []
        """The first requests without an answer, at most OPEN_SHOWN."""
        self.faults: dict[str, Fault] = {}
        self.exit: Close | None = None
        self._tool_errors: set[int] = set()

    def feed(self, events: Iterable[Event]) -> None:
        """Count events."""
        for event in events:
            if isinstance(event, Frame):
                self.bytes[event.direction] += event.size
                self.last_t = max(self.last_t, event.t_last)
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
                elif isinstance(event, Close) and event.ends_process:
                    self.exit = event

    def worst_first(self) -> list[Fault]:
        """The findings by code, the worst severity first, then the most frequent."""
        return sorted(self.faults.values(), key=lambda fault: (RANK[fault.severity], -fault.count, fault.first.code))

    def severities(self) -> dict[str, int]:
        """How many findings there are of each severity, worst first, without those there are none of."""
        counts = dict.fromkeys(SEVERITIES, 0)
        for fault in self.faults.values():
            counts[fault.severity] += fault.count
        return {severity: number for severity, number in counts.items() if number}

    def _message(self, message: Message) -> None:
        self.kinds[message.kind] = self.kinds.get(message.kind, 0) + 1
        self.messages[message.direction] += 1
        if message.result.get("isError") is True and message.exchange is not None:
            self._tool_errors.add(message.exchange)

    def _exchange(self, exchange: Exchange) -> None:
        self.states[exchange.state] = self.states.get(exchange.state, 0) + 1
        failed = exchange.state == ERRORED or exchange.request in self._tool_errors
        self._tool_errors.discard(exchange.request)
        calls = _within(self.methods, (exchange.direction, exchange.method), (exchange.direction, OTHERS))
        calls.add(exchange, failed=failed)
        if exchange.method in BY_TARGET and exchange.target is not None:
            _within(calls.targets, exchange.target, OTHERS).add(exchange, failed=failed)
        if exchange.state in (OPEN, ABANDONED) and len(self.unanswered) < OPEN_SHOWN:
            self.unanswered.append(exchange)

    def _finding(self, finding: Finding) -> None:
        fault = self.faults.get(finding.code)
        if fault is None:
            fault = self.faults[finding.code] = Fault(finding, severity=finding.severity)
        fault.count += 1
        if RANK[finding.severity] < RANK[fault.severity]:
            fault.severity = finding.severity
        if len(fault.places) < PLACES:
            fault.places.append(finding.at if finding.message is None else finding.message)

    @property
    def cancelled(self) -> int:
        """Requests that were cancelled."""
        return self.states.get(CANCELLED, 0)

    @property
    def waiting(self) -> int:
        """Requests without an answer: abandoned, or still open."""
        return self.states.get(ABANDONED, 0) + self.states.get(OPEN, 0)


def _within[Key](table: dict[Key, Calls], key: Key, others: Key) -> Calls:
    """The calls under ``key``, or under ``others`` when the table is full."""
    if key not in table and len(table) >= NAMES:
        key = others
    return table.setdefault(key, Calls())
