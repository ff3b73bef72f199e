"""`mcpsniff replay --update FILE`: the live session as a capture, which takes its place when the session is over."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from mcpsniff import __version__
from mcpsniff.capture.labels import shown
from mcpsniff.capture.store import SUFFIX
from mcpsniff.capture.writer import CaptureWriter, new_run_id, rfc3339
from mcpsniff.cli.output import note, output
from mcpsniff.errors import CaptureError, UsageError
from mcpsniff.proxy.mask import Masker
from mcpsniff.proxy.mask_argv import mask_argv
from mcpsniff.replay.script import Script, Talk
from mcpsniff.replay.send.hide import Hider
from mcpsniff.replay.send.links import Where
from mcpsniff.replay.send.tape import CaptureTape, Entry
from mcpsniff.transcript.units import count

if TYPE_CHECKING:
    from mcpsniff.replay.send.run import MakeTape


@contextmanager
def updated(
    path: str | None, where: Where, script: Script, hider: Hider, salt: Callable[[], bytes]
) -> "Iterator[MakeTape]":
    """What gives each conversation the tape that keeps it; the file at ``path`` is there when all went well.

    A server that is started anew for each conversation has a capture for each: ``FILE``, then ``FILE-2`` and so on.
    Raises UsageError for a path that is no capture's, CaptureError when it cannot be written.
    """
    if path is None:
        yield lambda _talk: None
        return
    if not path.endswith(SUFFIX):
        raise UsageError(f"--update writes a capture, and a capture's name ends in {SUFFIX}, unlike {shown(path)}")
    with ExitStack() as stack:
        made: list[_Kept] = []

        def tape(_talk: Talk) -> CaptureTape:
            if made and where.url is not None:
                return made[0].tape
            root = path.removesuffix(SUFFIX)
            name = path if not made else f"{root}-{len(made) + 1}{SUFFIX}"
            made.append(
                stack.enter_context(_kept(name, _header(where, script, hider), hider, salt, is_http=bool(where.url)))
            )
            return made[-1].tape

        yield tape
    for one in made:
        note(f"the new session is in {shown(one.path)}")
    if hider.withheld:
        note(
            f"{count(hider.withheld, 'piece')} of what was said had a given value in an unusual encoding:"
            " in place of the whole there are asterisks"
        )


class _Kept:
    """One capture in the making."""

    def __init__(self, path: str, writer: CaptureWriter, masker: Masker | None, hider: Hider) -> None:
        self.path = path
        self.tape = CaptureTape(self._append, hider)
        self._writer = writer
        self._masker = masker
        self.failed = False

    def _append(self, entries: list[Entry]) -> None:
        masked: Sequence[Entry] = entries if self._masker is None else self._masker(entries)
        if not self.failed and masked and self._writer.append(masked) < len(masked):
            self.failed = True

    def finish(self) -> None:
        """Write the rest. Raises CaptureError if anything could not be written."""
        rest = [] if self._masker is None else self._masker.finish()
        if self.failed or (rest and self._writer.append(rest) < len(rest)):
            failure = self._writer.failure
            why = (isinstance(failure, OSError) and failure.strerror) or failure
            raise CaptureError(f"cannot write {shown(self.path)}: {why}")


@contextmanager
def _kept(path: str, header: dict[str, Any], hider: Hider, salt: Any, *, is_http: bool) -> Iterator[_Kept]:
    with output(path) as stream:
        kept = _Kept(path, CaptureWriter(stream.fileno(), path, header), Masker(salt) if is_http else None, hider)
        yield kept
        kept.finish()


def _header(where: Where, script: Script, hider: Hider) -> dict[str, Any]:
    """What the header of the new capture says: of the server that was spoken to now, under the label of then."""
    place: dict[str, Any] = (
        {
            "argv": [hider.hide_text(word) for word in mask_argv(list(where.command))],
            "cwd": hider.hide_text(where.folder or os.getcwd()),
        }
        if where.url is None
        else {"upstream": hider.hide_text(mask_argv([where.url])[0])}
    )
    return {
        "run": new_run_id(),
        "started": rfc3339(time.time_ns()),
        "transport": "stdio" if where.url is None else "http",
        **({"label": script.header.label} if script.header.label else {}),
        **place,
        "by": f"mcpsniff {__version__}",
    }
