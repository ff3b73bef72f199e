"""What a relay leaves behind: its captures and their transcripts, which it names at its end, and waits for.

A wrapper on pipes does not wait, since a client waits for it (`mcpsniff.proxy.recording`); nobody waits for a relay but
who ended it, and who looks for the transcript then is to find it.
"""

import os
import time

from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import part_numbers
from mcpsniff.capture.store import part_path
from mcpsniff.proxy.recording import transcript_path
from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Final

    from mcpsniff.proxy.recording import Recording

PATIENCE: "Final" = 9.0
"""Seconds from the signal that ends a relay to its end: a little less than services are given before they are killed
(`docker stop`: 10)."""
LONG: "Final" = 1.0
"""Seconds of waiting after which it is said what for."""
LOOK: "Final" = 0.1
"""Seconds between two looks, unless something happens."""


def account_for(
    recordings: "Mapping[str, Recording]", wait: "Callable[[float], bool]", until: float, *, quiet: bool
) -> None:
    """Say where the captures of ``recordings`` (by their labels) and their transcripts are, once these are written.

    ``wait`` waits for so many seconds or less, and returns True if nobody wants to wait any longer; ``until`` is the
    latest moment of the monotonic clock. With ``quiet`` only what is not there is said.
    """
    left = {label: recording for label, recording in recordings.items() if recording.is_kept}
    names = {label: f"{label}: " if len(recordings) > 1 else "" for label in left}
    for label, recording in left.items():
        if not quiet:
            say(f"{names[label]}recorded in {_place(recording)}")
        if recording.untold:
            say(f"{names[label]}{recording.untold}")
    ended = _ended([each.transcriber for each in left.values() if each.transcriber], wait, until, quiet=quiet)
    for label, recording in left.items():
        if not recording.transcriber:
            continue
        assert recording.path is not None
        status, target = ended.get(recording.transcriber), shown(transcript_path(recording.path))
        if status is None:
            say(f"{names[label]}the transcript is still being written, to {target}")
        elif status:
            say(f"{names[label]}no transcript: writing {target} failed; mcpsniff show {_place(recording)} tells why")
        elif not quiet:
            say(f"{names[label]}transcript in {target}")


def _ended(pids: "list[int]", wait: "Callable[[float], bool]", until: float, *, quiet: bool) -> "dict[int, int]":
    """Wait for processes; return the status of each that ended in time."""
    ended: dict[int, int] = {}
    tell_at = time.monotonic() + LONG
    while True:
        for pid in set(pids) - set(ended):
            got, status = os.waitpid(pid, os.WNOHANG)
            if got:
                ended[pid] = status
        now = time.monotonic()
        if len(ended) == len(pids) or now >= until or wait(min(LOOK, until - now)):
            return ended
        if now >= tell_at and not quiet:
            say(f"writing the transcript{'s' * (len(pids) > 1)}; Ctrl-C ends the waiting, not the writing")
            tell_at = until


def _place(recording: "Recording") -> str:
    """Return the path of the first part that is there, and how many there are."""
    assert recording.path is not None
    numbers = part_numbers(recording.path) or [1]
    parts = f" ({len(numbers)} parts)" if len(numbers) > 1 else ""
    return f"{shown(part_path(recording.path, min(numbers)))}{parts}"
