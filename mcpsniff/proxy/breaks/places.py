"""Where sessions with break points are found: a private folder with a Unix socket for each, named by its process.

A server that an MCP client starts sees almost none of the user's environment, so it may choose another folder than the
user's shell would: who looks for sessions looks into all of them. Paths stay below 100 bytes, since a socket's has no
more than 104 (macOS).
"""

import os
import re
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from mcpsniff.errors import UsageError

LONGEST: Final = 99
"""Bytes of a socket's path."""
_USER_FOLDER: Final = 65537
"""Number of macOS's confstr for the user's own temporary folder (_CS_DARWIN_USER_TEMP_DIR), which Python lacks."""
_NAME: Final = re.compile(r"(\d{1,10})\.sock")
_UNFINISHED: Final = re.compile(r"\.(\d{1,10})\.new")


class Place(NamedTuple):
    """The socket of a process."""

    pid: int
    path: str


def folders() -> list[str]:
    """The folders in which sockets may be, the best first; none of them need exist."""
    uid = os.geteuid()
    parents = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}"]
    if sys.platform == "darwin":
        with suppress(OSError, ValueError):
            parents.append(os.confstr(_USER_FOLDER) or "")
    found = [os.path.join(parent, "mcpsniff") for parent in parents if os.path.isabs(parent) and _is_ours(parent)]
    return list(dict.fromkeys([*found, f"/tmp/mcpsniff-{uid}"]))  # noqa: S108 - made private, and checked


def listening() -> tuple[socket.socket, str]:
    """A socket that listens for those who attach to this process, and its path. Raises UsageError if none can be had.

    It is there under its name only once somebody can connect to it, and nobody but this user can.
    """
    why = ""
    for folder in folders():
        path = os.path.join(folder, f"{os.getpid()}.sock")
        if len(os.fsencode(path)) > LONGEST:
            why = f"{folder} has too long a name for it"
            continue
        try:
            _make_private(folder)
            clean(folder)
            return _bound(folder, path), path
        except OSError as error:
            why = f"{folder}: {error.strerror or error}"
    raise UsageError(f"--break needs a private folder for its socket, and there is none ({why})")


def places() -> list[Place]:
    """The sockets of all processes that may be attached to; those of processes that are gone are removed."""
    return sorted({place for folder in folders() for place in _in(folder)})


def clean(folder: str) -> None:
    """Remove the sockets of processes that are gone."""
    for _ in _in(folder):
        pass


def connected(path: str) -> socket.socket:
    """A connection to the socket at ``path``. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(2)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _in(folder: str) -> Iterator[Place]:
    """The sockets in a folder behind which somebody listens; others are removed."""
    if not _is_private(folder):
        return
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if unfinished := _UNFINISHED.fullmatch(name):
            if not _lives(int(unfinished[1])):
                _remove(path)
            continue
        found = _NAME.fullmatch(name)
        if found is None:
            continue
        try:
            connected(path).close()
        except ConnectionRefusedError:
            _remove(path)
        except OSError:  # it is busy, or it went just now
            pass
        else:
            yield Place(int(found[1]), path)


def _bound(folder: str, path: str) -> socket.socket:
    """A socket that listens at ``path``: bound beside it first, for one that does not listen yet looks left behind."""
    listener = socket.socket(socket.AF_UNIX)
    unfinished = os.path.join(folder, f".{os.getpid()}.new")
    try:
        _remove(unfinished)
        listener.bind(unfinished)
        os.chmod(unfinished, 0o600)
        listener.listen(64)
        listener.setblocking(False)
        os.rename(unfinished, path)
    except BaseException:
        listener.close()
        raise
    return listener


def _make_private(folder: str) -> None:
    """Make a folder that only we may enter. Raises OSError if it cannot be one."""
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if not _is_private(folder):
        raise PermissionError(1, "it is not a folder of this user alone")


def _is_private(folder: str) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _is_ours(folder: str) -> bool:
    try:
        status = os.stat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
