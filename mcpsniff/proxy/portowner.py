"""Who listens at a port that we were to listen at. Loaded when that has happened."""

import errno
import os
import re

from mcpsniff.capture.labels import shown
from mcpsniff.proxy.ends import spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LISTENS = "0A"


def cannot_listen(host: str, port: int, error: OSError, ours: "Sequence[str]" = ()) -> str:
    """Return in one sentence why we cannot listen there, and whom to ask.

    ``ours`` are the labels of upstreams for which we listen there already.
    """
    where = spelled((host, port))
    if error.errno == errno.EADDRINUSE and ours:
        return (
            f"cannot listen at {shown(where)}: mcpsniff itself listens there for {ours[0]};"
            " each upstream needs a port of its own"
        )
    if error.errno == errno.EADDRINUSE:
        owner = _owner(port)
        by = f" by {owner}" if owner else f"; `lsof -nP -iTCP:{port} -sTCP:LISTEN` tells by whom"
        return f"cannot listen at {shown(where)}: the port is in use{by}; --listen chooses another one"
    if error.errno in {errno.EACCES, errno.EPERM} and port < 1024:
        return f"cannot listen at {shown(where)}: ports below 1024 are for the system; --listen chooses another one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"cannot listen at {shown(where)}: this machine does not have that address"
    return f"cannot listen at {shown(where)}: {error.strerror or error}"


def _owner(port: int) -> str:
    """Return name and id of a process that listens at ``port``, where Linux tells; else nothing."""
    try:
        sockets = {f"socket:[{number}]" for number in _listening(port)}
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                files = os.listdir(f"/proc/{pid}/fd")
                if any(os.readlink(f"/proc/{pid}/fd/{each}") in sockets for each in files):
                    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                        return f"{shown(file.read().strip())} (process {pid})"
            except OSError:  # somebody else's, or gone
                continue
    except OSError:
        pass
    return ""


def _listening(port: int) -> "set[str]":
    """Return the inodes of the sockets that listen at ``port``."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            for line in file:
                fields = re.split(r"\s+", line.strip())
                if len(fields) > 9 and fields[3] == _LISTENS and fields[1].endswith(f":{port:04X}"):
                    found.add(fields[9])
    return found
