"""What each of several conversations comes to."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.checks import SEVERITIES, Finding
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.units import count

COUNTED: Final = 200
"""Conversations that are counted one by one."""
PLACES: Final = 10_000
"""Events of which it is remembered to which conversation they belong."""


@dataclass(slots=True)
class TalkCounts:
    """The figures of one conversation."""

    messages: int = 0
    calls: int = 0
    failed: int = 0
    unanswered: int = 0
    findings: dict[str, int] = field(default_factory=dict)
    """By severity."""

    def told(self) -> str:
        """All of it in a line."""
        parts = [count(self.messages, "message"), count(self.calls, "request")]
        parts += [f"{self.failed:,} failed"] * bool(self.failed)
        parts += [f"{self.unanswered:,} without an answer"] * bool(self.unanswered)
        parts += [count(number, name) for name in SEVERITIES if (number := self.findings.get(name))]
        return ", ".join(parts)


class CountsByTalk:
    """Counts by the number of the conversation."""

    def __init__(self) -> None:
        self.counts: dict[int, TalkCounts] = {}
        self._places: OrderedDict[int, int] = OrderedDict()

    def message(self, message: Message) -> None:
        """Count a message over HTTP."""
        if message.http is not None:
            self._at(message.n, message.conversation)
            self._at(message.frame.n, message.conversation)
            self._of(message.conversation).messages += 1

    def http(self, event: Http) -> None:
        """Note where an HTTP exchange belongs."""
        if event.conversation is not None:
            self._at(event.n, event.conversation)

    def exchange(self, exchange: Exchange, *, failed: bool, unanswered: bool) -> None:
        """Count a request that has come to its end."""
        if exchange.http is not None:
            self._at(exchange.n, exchange.conversation)
            counts = self._of(exchange.conversation)
            counts.calls += 1
            counts.failed += failed
            counts.unanswered += unanswered

    def lost(self, exchange: Exchange, change: int) -> None:
        """An answer is lost on the way (1), or goes on after all (-1)."""
        if exchange.http is not None:
            self._of(exchange.conversation).unanswered += change

    def finding(self, finding: Finding) -> None:
        """Count a finding on one of the latest events."""
        conversation = self._places.get(finding.at)
        if conversation is not None:
            found = self._of(conversation).findings
            found[finding.severity] = found.get(finding.severity, 0) + 1

    def _of(self, conversation: int) -> TalkCounts:
        counts = self.counts.get(conversation)
        if counts is None:
            counts = TalkCounts()
            if len(self.counts) < COUNTED:
                self.counts[conversation] = counts
        return counts

    def _at(self, n: int, conversation: int) -> None:
        self._places[n] = conversation
        if len(self._places) > PLACES:
            self._places.popitem(last=False)
