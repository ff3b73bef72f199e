"""Places in what was recorded, from places in what passed: a channel's offsets do not count the bytes in its gaps.

Whoever changes bytes on the wire knows how many passed before; what became of these is known where they are stored.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from mcpsniff.proxy.recorder import Entry

_COUNT: "Final" = frozenset({"gap", "close"})


class Places:
    """Keeps, for each channel that is open, how many bytes are in its gaps."""

    def __init__(self) -> None:
        self._missing: dict[int | None, int] = {}

    def placed(self, entries: "list[Entry]") -> "list[Entry]":
        """Return ``entries``, which are to be stored next, with each rewrite at its place in what was recorded.

        A secret that was taken out is in the place already (`mcpsniff.proxy.mask`).
        """
        if not any(kind == "rewrite" for _, kind, _, _ in entries):
            return entries
        missing = dict(self._missing)
        placed = []
        for t, kind, channel, body in entries:
            if kind == "rewrite" and channel in missing:
                placed.append((t, kind, channel, {**body, "start": max(0, body["start"] - missing[channel])}))
                continue
            placed.append((t, kind, channel, body))
            if kind in _COUNT:
                _take(missing, kind, channel, body)
        return placed

    def stored(self, entries: "list[Entry]") -> None:
        """Take note of what has been stored."""
        for _, kind, channel, body in entries:
            if kind in _COUNT:
                _take(self._missing, kind, channel, body)


def _take(missing: "dict[int | None, int]", kind: str, channel: int | None, body: "dict[str, Any]") -> None:
    if kind == "close":
        missing.pop(channel, None)
    elif body["why"] != "secret":
        missing[channel] = missing.get(channel, 0) + body["bytes"]
