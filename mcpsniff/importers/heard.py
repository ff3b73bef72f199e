"""An HTTP exchange as another program kept it, before it becomes records of a capture."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.errors import CaptureError

type Headers = list[tuple[str, str]]

CLIENT: Final = "client"
SERVER: Final = "server"

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


SECONDS: Final = range(100 * 365 * 86_400)
"""Seconds since the epoch that HTTP may have been spoken at: to 2069; a capture may last as long."""


class ImportFileError(CaptureError):
    """The file, or a place in it, cannot be read: the text names it."""


@dataclass(slots=True)
class Half:
    """A request or a response. Times are microseconds since the epoch."""

    start: str
    """The start line, such as ``POST /mcp HTTP/1.1`` or ``HTTP/1.1 200 OK``."""
    headers: Headers
    body: bytes | None
    """As it was coded; None if the file does not have it."""
    began: int
    ended: int | None
    """When its last byte came; None if it never was whole, as far as the file knows."""
    size: int | None = None
    """How many bytes a body that is missing had, if the file knows."""
    coding: str = ""
    """The content coding that whoever wrote the file removed from the body, and which is not in ``headers``."""
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    """Where the file knows when each piece of the body came: these, in the place of ``body``."""

    is_untimed: bool = False
    """True if the times of ``pieces`` are made up, as far as they matter."""
    is_repaired: bool = False
    """True if whoever wrote the file had decoded the body with the wrong charset."""

    def get(self, name: str) -> str:
        """The value of the first header ``name`` (lower case); empty if there is none."""
        return next((value for other, value in self.headers if other.lower() == name), "")


@dataclass(slots=True)
class Heard:
    """One exchange."""

    place: str
    """Where in the file: ``flow 3``, ``entry 3``."""
    connection: str
    """Equal for exchanges on one connection."""
    scheme: str
    authority: str
    """Host and port, without a default port."""
    request: Half
    response: Half | None = None
    client: str = ""
    server: str = ""
    """Addresses and ports, where the file has them."""
    broken_by: str = ""
    """Who ended it before it was whole: ``client``, ``server``, or nobody."""
    error: str = ""
    """What the file says about that."""

    @property
    def method(self) -> str:
        """The method of the request."""
        return self.request.start.partition(" ")[0]


@dataclass(slots=True)
class Account:
    """What reading a file came to, besides its exchanges."""

    others: int = 0
    """Things in it that are no HTTP: TCP, UDP, DNS, WebSocket."""
    remarks: list[str] = field(default_factory=list)
    """What the file lacks or had changed, one sentence each."""
    creator: str = ""
    """The program that wrote it, with its version, as far as the file names it."""
    bad: list[str] = field(default_factory=list)
    """Places that cannot be read, and why."""


def authority(scheme: str, host: str, port: int | None) -> str:
    """``host:port`` as URLs have it: no default port, brackets around IPv6."""
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return shown if port is None or port == DEFAULT_PORTS.get(scheme) else f"{shown}:{port}"


def without(headers: Iterable[tuple[str, str]], name: str) -> Headers:
    """``headers`` but for those called ``name`` (lower case)."""
    return [(other, value) for other, value in headers if other.lower() != name]
