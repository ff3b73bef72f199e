"""What a server says unasked: which of it is new, has failed to come or says something else, and where."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpsniff.protocol.message import Message
from mcpsniff.replay.compare_text import brief, plain_value
from mcpsniff.replay.send.hide import Hider

LOOKED_AT: Final = 200
"""Live notifications of one method among which that like a recorded one is looked for."""
NAMED: Final = 3
"""How many of one kind are named; a report has more of them."""
REPORTED: Final = 100
SHORT: Final = 80
"""Characters of the params that are shown."""

CHANGED: Final = "changed"
MISSING: Final = "missing"
NEW: Final = "new"


@dataclass(slots=True)
class Unasked:
    """A notification, or a question, that is not as it was."""

    kind: str
    """CHANGED, MISSING or NEW."""
    recorded: Message | None
    live: Message | None
    near: int | None = None
    """Of a live one: the number of the recorded request that had been sent last when it came."""
    count: int = 1
    """How many like it there were in a row."""

    @property
    def method(self) -> str:
        """Of both."""
        message = self.recorded or self.live
        return "" if message is None else message.method or ""

    def words(self, hider: Hider) -> str:
        """Which one it is: its number in the recording, and what it says, in short; captured text without secrets."""
        parts = []
        if self.recorded is not None:
            parts.append(f"#{self.recorded.n} {_short(self.recorded, hider)}")
        if self.live is not None:
            arrow = "→ " if self.recorded is not None else ""
            parts.append(f"{arrow}{_short(self.live, hider)}")
            parts += [f"near #{self.near}"] if self.near and self.recorded is None else []
        return " ".join(parts) + (f" ({self.count:,} times)" if self.count > 1 else "")

    def as_dict(self, hider: Hider) -> dict[str, Any]:
        """For a report."""
        found: dict[str, Any] = {"kind": self.kind, "method": self.method}
        if self.recorded is not None:
            found["n"] = self.recorded.n
            found |= plain_value("recorded", hider.hide_all(_params(self.recorded)))
        if self.live is not None:
            found |= {"near": self.near} if self.near else {}
            found |= plain_value("live", hider.hide_all(_params(self.live)))
        return found | ({"count": self.count} if self.count > 1 else {})


def compared(
    recorded: Iterable[Message],
    live: Iterable[Message],
    differs: Callable[[Message, Message], bool],
    near: Mapping[int, int],
) -> Iterator[tuple[list[Unasked], int]]:
    """What of the notifications is not as it was, method by method, with how many of it there were when recorded.

    Their order does not count, for nothing settles it. ``near`` has the places of live ones, by their identity.
    """
    there, here = _by_method(recorded), _by_method(live)
    for method in sorted({*there, *here}):
        left, unmet = list(here.get(method, [])), []
        for message in there.get(method, []):
            match = next((at for at, one in enumerate(left[:LOOKED_AT]) if not differs(message, one)), None)
            if match is None:
                unmet.append(message)
            else:
                left.pop(match)
        both = min(len(unmet), len(left))
        found = [Unasked(CHANGED, one, other, near.get(id(other))) for one, other in zip(unmet, left, strict=False)]
        found += [Unasked(MISSING, one, None) for one in unmet[both:]]
        found += alike([Unasked(NEW, None, one, near.get(id(one))) for one in left[both:]])
        if found:
            yield found, len(there.get(method, []))


def alike(found: list[Unasked]) -> list[Unasked]:
    """New ones, those that say the very same as one."""
    by_text: dict[tuple[str, str], Unasked] = {}
    for one in found:
        assert one.live is not None
        key = (one.method, brief(one.live.body.get("params"), 10_000))
        if key in by_text:
            by_text[key].count += 1
        else:
            by_text[key] = one
    return list(by_text.values())


def sentences(found: list[Unasked], recorded: int, hider: Hider) -> Iterator[str]:
    """Notifications of one method in words: one sentence for each kind, which names the first of them."""
    for kind in (CHANGED, MISSING, NEW):
        some = [one for one in found if one.kind == kind]
        number = sum(one.count for one in some)
        if not some:
            continue
        what = {
            CHANGED: f"{number} of {recorded} say something else",
            MISSING: f"{number} of {recorded} did not come",
            NEW: f"{number} came that {'was' if number == 1 else 'were'} not recorded",
        }[kind]
        named = "; ".join(one.words(hider) for one in some[:NAMED])
        more = f"; and {len(some) - NAMED:,} more" if len(some) > NAMED else ""
        yield f"{some[0].method}: {what}: {named}{more}"


def _params(message: Message) -> Any:
    return message.body.get("params")


def _short(message: Message, hider: Hider) -> str:
    params = _params(message)
    return "without params" if params is None else brief(hider.hide_all(params), SHORT)


def _by_method(messages: Iterable[Message]) -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {}
    for message in messages:
        found.setdefault(message.method or "", []).append(message)
    return found
