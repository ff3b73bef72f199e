"""Which faults strike which messages: by seed, filter and probability, or again as a capture has them."""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote

from mcpsniff.protocol.message import Message
from mcpsniff.proxy.faults.kinds import LATENCY, REORDER, Kind
from mcpsniff.proxy.faults.spec import Spec, Value

STREAMS: Final = 1000
"""Streams of which is remembered that a message is kept back."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9:.-]+%?")


class Strike(NamedTuple):
    """A fault that is done to a message."""

    kind: Kind
    value: Value

    @property
    def text(self) -> str:
        """As it stands in a record, without blanks and brackets; without a default that has some."""
        value = self.value.text
        if _PLAIN.fullmatch(value):
            return f"{self.kind.name}={value}"
        return self.kind.name if value == self.kind.default else f"{self.kind.name}={quote(value, safe=':.-')}"


class Choice(Protocol):
    """Who says which faults strike. May be used by many threads at once."""

    def of(self, message: Message, place: str, transport: str, stream: object) -> list[Strike]:
        """The faults for a message that stands at ``place``: at most one latency, and at most one other.

        ``transport`` is stdio or http, ``stream`` what carries the message and those that come after it, if anything.
        """

    def remark(self) -> str:
        """What the capture is to say of it."""

    def told(self) -> list[str]:
        """What came of it, in sentences."""


class Drawn:
    """Faults by filter and probability. The same seed, and the same traffic, gives the same ones."""

    def __init__(self, specs: Sequence[Spec], seed: int) -> None:
        self._specs = specs
        self._seed = seed
        self._matched = [0] * len(specs)
        self._struck = [0] * len(specs)
        self._kept: dict[tuple[int, int], object] = {}
        self._lock = Lock()

    def of(self, message: Message, place: str, transport: str, stream: object) -> list[Strike]:
        """See `Choice`. Of several that strike, latency aside, the first one counts."""
        strikes: list[Strike] = []
        for at, spec in enumerate(self._specs):
            is_latency = spec.kind.name == LATENCY
            if any((strike.kind.name == LATENCY) == is_latency for strike in strikes):
                continue
            if spec.is_for(message, transport) and self._strikes(at, place, stream):
                strikes.append(Strike(spec.kind, spec.value.drawn(self._chance(at, place, "value"))))
        return strikes

    def remark(self) -> str:
        """See `Choice`."""
        asked = " ".join(f"--fault {spec.text!r}" for spec in self._specs)
        return f"faults on purpose: {asked} --fault-seed {self._seed}"

    def told(self) -> list[str]:
        """See `Choice`."""
        hits = [
            f"{spec.text} {times(struck)}" for spec, struck in zip(self._specs, self._struck, strict=True) if struck
        ]
        sentences = [f"faults: {'; '.join(hits)} (--fault-seed {self._seed} repeats them)"] if hits else []
        for spec, matched, struck in zip(self._specs, self._matched, self._struck, strict=True):
            if not struck:
                why = f"of {matched} that match, none was chosen" if matched else "none matches"
                sentences.append(f"the fault {spec.text} struck no message: {why}")
        return sentences

    def _strikes(self, at: int, place: str, stream: object) -> bool:
        spec = self._specs[at]
        with self._lock:
            self._matched[at] += 1
            overtakes = self._kept.pop((at, id(stream)), None) is not None
            if self._matched[at] <= spec.after or (spec.times is not None and self._struck[at] >= spec.times):
                return False
            if overtakes or self._chance(at, place, "") >= spec.probability:
                return False
            if spec.kind.name == REORDER and stream is not None:
                self._kept[at, id(stream)] = stream  # kept alive, so that no other one gets its id
                if len(self._kept) > STREAMS:
                    del self._kept[next(iter(self._kept))]
            self._struck[at] += 1
            return True

    def _chance(self, at: int, place: str, what: str) -> float:
        """A number from 0 up to 1 that depends on seed, fault and place only."""
        name = self._specs[at].kind.name
        nth = sum(spec.kind.name == name for spec in self._specs[:at])
        said = "\0".join((str(self._seed), name, str(nth), place, what))
        return int.from_bytes(blake2b(said.encode(), digest_size=6).digest()) / 2**48


class Again:
    """The faults that captures have, at the same places."""

    def __init__(self, recorded: Mapping[str, Sequence[Strike]], name: str) -> None:
        self._left = {place: list(strikes) for place, strikes in recorded.items()}
        self._name = name
        self._number = sum(map(len, recorded.values()))
        self._struck = 0
        self._lock = Lock()

    def of(self, message: Message, place: str, transport: str, _stream: object) -> list[Strike]:
        """See `Choice`."""
        with self._lock:
            strikes = [strike for strike in self._left.get(place, ()) if strike.kind.fits(message, transport)]
            if strikes and len(strikes) == len(self._left[place]):
                del self._left[place]
            self._struck += len(strikes)
        return strikes

    def remark(self) -> str:
        """See `Choice`."""
        return f"faults on purpose: those of {self._name} again (--fault-from)"

    def told(self) -> list[str]:
        """See `Choice`."""
        if not self._left:
            return [f"faults: all {self._number} of {self._name} again"]
        missed = next(iter(self._left))
        some = f"faults: {self._struck} of the {self._number} of {self._name} again"
        return [f"{some}; the other messages did not come, such as the {missed}"]


def times(number: int) -> str:
    """How often."""
    return "once" if number == 1 else f"{number} times"
