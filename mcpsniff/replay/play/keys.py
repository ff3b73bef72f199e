"""The keys of `mcpsniff play`: from the bytes that a terminal sends to what is meant."""

import re
from typing import Final

PAUSE: Final = "pause"
STEP: Final = "step"
FINDING: Final = "finding"
FASTER: Final = "faster"
SLOWER: Final = "slower"
HELP: Final = "help"
QUIT: Final = "quit"

_KEYS: Final = {
    b" ": PAUSE,
    b".": STEP,
    b"\x1b[C": STEP,
    b"\x1bOC": STEP,
    b"n": FINDING,
    b"+": FASTER,
    b"=": FASTER,
    b"-": SLOWER,
    b"?": HELP,
    b"h": HELP,
    b"q": QUIT,
    b"Q": QUIT,
    b"\x04": QUIT,
}
"""``=`` is where ``+`` is without Shift; ``\\x04`` is Ctrl-D."""

HELPS: Final = (
    ("space", "pause, and go on"),
    (". →", "show one row, and pause"),
    ("n", "go to the next finding, and pause"),
    ("+ -", "faster, slower"),
    ("q", "end"),
    ("?", "show or hide this"),
)

_PIECE: Final = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b[^\[O]|[^\x1b]", re.DOTALL)
_LONGEST: Final = 32
"""Bytes of a sequence that a terminal may send for one key."""


class Keys:
    """Bytes in, keys out; a key that several bytes stand for may come in pieces. What means nothing is dropped."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The keys that ``data`` completes."""
        data = self._rest + data
        pressed, at = [], 0
        while at < len(data) and (piece := _PIECE.match(data, at)):
            if (key := _KEYS.get(piece[0])) is not None:
                pressed.append(key)
            at = piece.end()
        self._rest = data[at:] if len(data) - at < _LONGEST else b""
        return pressed
