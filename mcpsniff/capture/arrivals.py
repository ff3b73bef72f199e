"""Notice captures as they begin: which files of a folder are being written now, looked at again and again.

A look is cheap however many captures lie there: the folder is listed only when it changed, and a file that nobody holds
and nobody has written to for a while is not looked at twice.
"""

import os
import time
from collections.abc import Iterable
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import part_numbers
from mcpsniff.capture.store import SUFFIX, part_path, reason, split_part, writer_state
from mcpsniff.errors import CaptureError

YOUNG: Final = 10.0
"""Seconds since the last write for which a file that no recorder holds is still looked at: it may have just begun."""

_GRAIN: Final = 2.0
"""Seconds within which a folder may change twice and tell the same time."""


class Arrivals:
    """The captures of some folders that are being written, each told once. A folder that is not there yet may come."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = {folder: _Folder(folder) for folder in folders}
        self._told: set[str] = set()

    def look(self) -> list[str]:
        """Return the captures that began since the last look: the path of the first part that is there.

        Raises CaptureError when a folder cannot be read.
        """
        began = []
        for folder in self._folders.values():
            names = folder.look()
            self._told -= {first for first in self._told if os.path.dirname(first) == folder.path} - names.firsts
            for first in names.written:
                if first not in self._told and (numbers := part_numbers(first)):
                    self._told.add(first)
                    began.append(part_path(first, numbers[0]))
        return began

    def forget(self, path: str) -> None:
        """The capture at ``path`` was lost: tell of it again if it is written anew."""
        first = split_part(path)[0]
        self._told.discard(first)
        folder = self._folders.get(os.path.dirname(first))
        if folder is not None:
            folder.pending.add(path)


class _Look:
    """What one look at a folder finds, by the paths of first parts."""

    def __init__(self, firsts: set[str], written: list[str]) -> None:
        self.firsts = firsts
        """All captures."""
        self.written = written
        """Those that turned out to be written just now."""


class _Folder:
    """One folder, as it was when it was looked at last."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.pending: set[str] = set()
        """Files of which a recorder may take hold yet."""
        self._files: set[str] = set()
        self._firsts: set[str] = set()
        self._changed: float | None = None

    def look(self) -> _Look:
        """List the folder if it changed, and try the files that may be written."""
        self._list()
        written = []
        for path in sorted(self.pending):
            state = writer_state(path)
            age = _age(path)
            if state or (state is None and age is not None and age < YOUNG):
                written.append(split_part(path)[0])
                self.pending.discard(path)
            elif age is None or age >= YOUNG:
                self.pending.discard(path)
        return _Look(self._firsts, written)

    def _list(self) -> None:
        try:
            changed = os.stat(self.path).st_mtime
            if changed == self._changed and time.time() - changed > _GRAIN:
                return
            files = {os.path.join(self.path, name) for name in os.listdir(self.path) if name.endswith(SUFFIX)}
        except FileNotFoundError:
            changed, files = 0.0, set()
        except (OSError, ValueError) as error:
            raise CaptureError(f"cannot list the captures in {shown(self.path)}: {reason(error)}") from None
        self.pending |= files - self._files
        self._changed, self._files = changed, files
        self._firsts = {split_part(path)[0] for path in files}


def _age(path: str) -> float | None:
    """Return how many seconds ago the file was written to; None if there is none."""
    try:
        return time.time() - os.stat(path).st_mtime
    except (OSError, ValueError):
        return None
