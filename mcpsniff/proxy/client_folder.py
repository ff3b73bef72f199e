"""Where the files of one `mcpsniff run` are kept that its client reads: in a folder that is removed with the run.

The folder is locked while the run lasts. The next run removes those that a killed one has left, as nobody holds them.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.capture.store import capture_folder
from mcpsniff.errors import McpsniffError

PREFIX: Final = "mcpsniff-run-"
"""How the names of the folders begin."""
YOUNG: Final = 60.0
"""Seconds in which a folder may not be locked yet by who has made it."""
_VARIABLES: Final = ("TMPDIR", "TEMP", "TMP")
_USUAL: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - the folders themselves are made by mkdtemp


class Folder:
    """Keeps files that everybody may read. One that has no room leads to another folder."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """``environment`` tells where files may be kept. Those of runs that were killed are removed there."""
        self._places = places(environment)
        self._held: list[tuple[str, int]] = []
        self._why: dict[str, str] = {}
        for place in self._places:
            sweep(place)

    def write(self, name: str, parts: Iterable[bytes]) -> str:
        """Write ``parts`` into a file and return its path. Raises McpsniffError if there is room nowhere."""
        content = b"".join(parts)
        while self._held or self._open_next():
            path = os.path.join(self._held[-1][0], name)
            try:
                with open(path, "wb") as file:
                    file.write(content)
                os.chmod(path, 0o644)
            except OSError as error:
                self._why[os.path.dirname(self._held[-1][0])] = error.strerror or str(error)
                if not self._open_next():
                    break
            else:
                return path
        tried = "; ".join(f"{shown(place)}: {why}" for place, why in self._why.items())
        raise McpsniffError(
            f"no folder for the certificates that the client is to trust ({tried}): make room, or set TMPDIR to a"
            " folder that can be written to"
        )

    def remove(self) -> None:
        """Remove all of it."""
        for folder, lock in self._held:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                os.close(lock)
        self._held = []

    def _open_next(self) -> bool:
        """Make a folder in the next place that lets us; False if there is none."""
        while self._places:
            place = self._places.pop(0)
            try:
                folder = tempfile.mkdtemp(prefix=PREFIX, dir=place)
                lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                self._held.append((folder, lock))
                os.chmod(folder, 0o755)  # noqa: S103 - certificates are no secret
                with suppress(OSError):  # a file system without locks: then the next run may not remove it, either
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._why[place] = error.strerror or str(error)
            else:
                return True
        return False


def places(environment: Mapping[str, str]) -> list[str]:
    """Return the folders that files may be kept in, the best first."""
    named = [environment.get(name, "") for name in _VARIABLES]
    more = [*_USUAL, environment.get("XDG_RUNTIME_DIR", ""), capture_folder()]
    found = [*named, *(each for each in more if os.path.isdir(each))]
    return list(dict.fromkeys(os.path.abspath(each) for each in found if each))


def sweep(place: str) -> None:
    """Remove the folders in ``place`` that are ours and that no process holds."""
    for folder in _left(place):
        with suppress(OSError):
            found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(found)


def _left(place: str) -> Iterator[str]:
    """Find folders of this user that look like ours and are not just being made."""
    try:
        names = [name for name in os.listdir(place) if name.startswith(PREFIX)]
    except OSError:
        return
    for name in names:
        path = os.path.join(place, name)
        with suppress(OSError):
            about = os.lstat(path)
            is_ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
            if is_ours and time.time() - about.st_mtime > YOUNG:
                yield path
