"""Who is at the other end of a Unix socket."""

import os
import socket
import struct
import sys
from typing import Final

_LOCAL_PEERCRED: Final = 1
"""Of macOS (sys/un.h), at level 0; gives a struct xucred: version, uid, …"""


def is_ourselves(connection: socket.socket) -> bool:
    """True if the process at the other end is this user's; False also where the system does not tell."""
    try:
        return _uid(connection) == os.geteuid()
    except (OSError, struct.error):
        return False


def _uid(connection: socket.socket) -> int:
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[1])
    credentials = connection.getsockopt(0, _LOCAL_PEERCRED, 128)
    return int(struct.unpack_from("=II", credentials)[1])
