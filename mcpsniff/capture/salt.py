"""The salt of a store: what makes the fingerprints of masked secrets comparable in it, and useless outside of it.

It lies in the folder for captures, readable by its owner only. Without it nobody can try out guesses on a fingerprint,
so it does not belong into anything that is passed on.
"""

import os
import stat
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.capture.store import Warn, capture_folder, make_private, reason

NAME: Final = ".salt"
SIZE: Final = 32
"""Bytes: as many as the hash function gives (RFC 2104 section 3)."""


def store_salt(option: str | None, warn: Warn) -> bytes:
    """Return the salt of the store that ``option`` (``--dir``) leads to; make it, and the folder, where there is none.

    If it cannot be kept this is said through ``warn``, and it is good for this run only.
    """
    folder = capture_folder(option)
    path = os.path.join(folder, NAME)
    try:
        make_private(folder)
        return _read(path) or _make(path)
    except (OSError, ValueError) as error:
        warn(f"fingerprints of masked secrets cannot be compared with other captures: {shown(path)}: {reason(error)}")
        return os.urandom(SIZE)


def _read(path: str) -> bytes | None:
    """Return the salt in the file, or None if there is no file. ValueError if others may know or have made it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise ValueError("it is not a file of ours")
        if status.st_mode & 0o077:
            raise ValueError(f"it is open to others (mode {stat.S_IMODE(status.st_mode):04o}): remove it")
        salt = file.read(SIZE + 1)
    if len(salt) != SIZE:
        raise ValueError("it does not hold a salt: remove it")
    return salt


def _make(path: str) -> bytes:
    """Write a new salt, in one step, and return it; or the one that another process wrote meanwhile."""
    own = f"{path}-{os.getpid()}-{os.urandom(4).hex()}"
    descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(os.urandom(SIZE))
        os.link(own, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(own)
    salt = _read(path)
    if salt is None:
        raise ValueError("it was removed at once")
    return salt
