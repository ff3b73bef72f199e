"""The digests of captures for `mcpsniff list`, kept from one call to the next.

A capture is decoded once; what it comes to is kept in a file of the platform's cache folder, one for each folder of
captures, private, and good for exactly this path, size, time of writing and version of mcpsniff. It can be deleted at
any time. A cache that is damaged or cannot be written is passed over: it costs time only.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

from mcpsniff import __version__
from mcpsniff.capture.catalog import Entry
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.store import is_being_written
from mcpsniff.errors import CaptureError
from mcpsniff.transcript.digest import Digest

AT_ONCE: Final = 32 << 20
"""Bytes of captures that one call decodes, unless it is to decode all: about two seconds."""
LARGEST_CACHE: Final = 64 << 20


class Seen:
    """What is known of one capture."""

    def __init__(self, entry: Entry, *, running: bool) -> None:
        self.entry = entry
        self.running = running
        self.digest: Digest | None = None
        """None: it was not decoded, or ``problem`` says why it cannot be."""
        self.problem = entry.problem

    @property
    def is_unread(self) -> bool:
        """True if it was left for another time."""
        return self.digest is None and self.problem is None


def look(folder: str, entries: list[Entry], *, everything: bool = False) -> list[Seen]:
    """Return what is known of ``entries``, the captures of ``folder``, in their order.

    What was decoded before is taken from the cache; the rest is decoded, the newest first, up to AT_ONCE bytes unless
    ``everything`` is to be decoded. Whatever was decoded is kept, also when it is interrupted.
    """
    path = cache_path(folder)
    kept = _load(path)
    found = [Seen(entry, running=bool(entry.files) and is_being_written(entry.files[-1])) for entry in entries]
    for one in found:
        value = kept.get(one.entry.path)
        if one.problem is None and isinstance(value, list) and value[:1] == [_key(one.entry)]:
            one.digest = Digest.read(value[-1])
    left = AT_ONCE
    fresh = False
    try:
        for one in reversed(found):
            if one.is_unread and (everything or one.entry.size <= left):
                left -= one.entry.size
                _decode(one)
                fresh = fresh or not one.running
    finally:
        if fresh:
            _save(path, {one.entry.path: [_key(one.entry), one.digest] for one in _keepable(found)})
    return found


def cache_path(folder: str) -> str:
    """Return where the digests of the captures in ``folder`` are kept."""
    import platformdirs

    name = sha256(os.path.abspath(folder).encode(errors="surrogateescape")).hexdigest()[:16]
    return os.path.join(platformdirs.user_cache_dir("mcpsniff", appauthor=False), f"captures-{name}.json")


def _decode(one: Seen) -> None:
    from mcpsniff.transcript.digest import digest

    try:
        one.digest = digest(open_capture(one.entry.path))
    except CaptureError as error:
        one.problem = str(error)


def _keepable(found: list[Seen]) -> Iterator[Seen]:
    """A running one is something else the next time."""
    return (one for one in found if one.digest is not None and not one.running)


def _key(entry: Entry) -> list[Any]:
    return [__version__, entry.size, entry.mtime, entry.parts]


def _load(path: str) -> dict[str, Any]:
    """Read a cache; an empty one where there is none that can be used."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_CACHE + 1)
        value = json.loads(data) if len(data) <= LARGEST_CACHE else None
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _save(path: str, value: dict[str, Any]) -> None:
    """Write a cache as a whole, for this user only; give up quietly."""
    temporary = ""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".captures-", dir=os.path.dirname(path))
        with open(descriptor, "w", encoding="ascii") as file:
            json.dump(value, file)
        os.replace(temporary, path)
    except (OSError, ValueError):
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
