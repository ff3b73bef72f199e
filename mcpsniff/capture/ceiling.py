"""A ceiling on the room that the parts of one capture take: the oldest ones go so that the newest fit."""

import os
from collections.abc import Callable
from typing import Final

from mcpsniff.capture.store import part_path

SHARE: Final = 8
"""A part is at most this fraction of the room, so that not much of what there is goes at once."""


class Ceiling:
    """Keeps the parts of the capture at ``path`` within ``limit`` bytes; calls ``told`` once, when that is reached."""

    def __init__(self, path: str, limit: int, told: Callable[[], object]) -> None:
        self.part_limit = max(1, limit // SHARE)
        """Bytes that a part may have, at most."""
        self._path = path
        self._limit = limit
        self._told = told
        self._was_told = False
        self._parts: list[tuple[int, int]] = []
        """Numbers and sizes of the parts that are complete and still there, oldest first."""

    def complete(self, part: int, size: int) -> None:
        """Take note that a part is complete, and make room for the next one."""
        self._parts.append((part, size))
        while self._parts and sum(size for _, size in self._parts) + self.part_limit > self._limit:
            number, _ = self._parts.pop(0)
            try:
                os.unlink(part_path(self._path, number))
            except OSError:  # removed by somebody else: `mcpsniff prune`, a person
                continue
            if not self._was_told:
                self._was_told = True
                self._told()
