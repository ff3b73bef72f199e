"""The addresses on the command line of `mcpsniff http`: what is to be recorded, and where to listen.

Pure text work; looking names up and connecting is `mcpsniff.proxy.dial`'s.
"""

import re
import socket

from mcpsniff.capture.labels import safe_label, shown
from mcpsniff.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

LOOPBACK: "Final" = ("127.0.0.1", "::1")
"""What `localhost` means, in the order in which it is tried."""

PORTS: "Final" = {"http": 80, "https": 443}
"""The schemes that upstreams may have, and their ports."""

_NAMED = re.compile(r"([^=:/?#@\[\]]+)=(.*)", re.DOTALL)
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@]*)(?::([^\[\]:]*))?", re.IGNORECASE)
_HOST = re.compile(r"[^\s%<>\"\\^`{|}\x00-\x20\x7f]+")
_IS_NAME = re.compile(r"(?=.{1,253}\.?\Z)(?:[^.]{1,63}\.)*[^.]{1,63}\.?")
"""Labels of at most 63 bytes between single dots (RFC 1035, 2.3.4); an IPv4 address looks the same."""
_LARGEST_PORT: "Final" = 65535


class Upstream:
    """The server whose traffic is recorded.

    `scheme` is http or https, `host` is without brackets, `target` is path and query as given.
    """

    __slots__ = ("host", "label", "port", "scheme", "target")

    def __init__(self, label: str | None, host: str, port: int, target: str, scheme: str = "http") -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.target = target
        self.label = label or safe_label(f"{host}-{port}")
        """The name of its captures."""

    @property
    def default_port(self) -> int:
        """The port that its scheme stands for (RFC 9110, 4.2)."""
        return PORTS[self.scheme]

    @property
    def authority(self) -> str:
        """What `Host` says in a request to it: the port only if it is not that of its scheme (RFC 9110, 7.2)."""
        return authority(self.host, self.port, self.default_port)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """Where the client would go without us."""
        return self.origin + self.target

    @property
    def names_loopback(self) -> bool:
        """True if the host says by itself that it is this machine."""
        return is_loopback(self.host)


def parse_upstream(word: str) -> Upstream:
    """Read ``[NAME=]URL``. Raises UsageError that says what is wrong with it."""
    named = _NAMED.fullmatch(word)
    label, text = (named[1], named[2]) if named else (None, word)
    url = _URL.fullmatch(text)
    if url is None:
        raise UsageError(f"{shown(text) or 'nothing'} is no URL{_suggestion(text)}")
    scheme = url[1].lower()
    if scheme not in PORTS:
        raise UsageError(f"mcpsniff http speaks http:// and https://, not {shown(scheme)}://")
    if "@" in url[2]:
        raise UsageError("an upstream takes no user information; the client sends its credentials itself")
    host, port = _authority(url[2], text, default=PORTS[scheme], lowest=1)
    target = url[3]
    if not target.isascii() or not target.isprintable() or " " in target:
        raise UsageError(f"{shown(text)} is no URL: its path or query holds what must be percent-encoded")
    return Upstream(safe_label(label) if label else None, host, port, target, scheme)


def parse_upstreams(words: "Sequence[str]") -> "list[Upstream]":
    """Read several, whose labels differ; those that only their paths tell apart are labelled with them, too.

    Raises UsageError.
    """
    upstreams = [parse_upstream(word) for word in words]
    derived = [each for each, word in zip(upstreams, words, strict=True) if not _NAMED.fullmatch(word)]
    short = [upstream.label for upstream in derived]
    for upstream in derived:
        if short.count(upstream.label) > 1:
            upstream.label = safe_label(f"{upstream.label}-{upstream.target.partition('?')[0]}")
    labels = [upstream.label for upstream in upstreams]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"{labels.count(label)} upstreams are called {label}: tell them apart by NAME=URL")
    return upstreams


def parse_listen(word: str) -> tuple[str, int]:
    """Read ``HOST:PORT``, ``:PORT`` or ``PORT`` into host and port. Raises UsageError."""
    text = f":{word}" if word.isdecimal() and word.isascii() else word
    if ":" not in text:
        raise UsageError(f"--listen takes HOST:PORT, such as 127.0.0.1:9000, not {shown(word)}")
    if "]" not in text and text.count(":") > 1:
        raise UsageError(f"--listen {shown(word)}: an IPv6 address stands in brackets, such as [::1]:9000")
    host, port = _authority(text if text[0] != ":" else LOOPBACK[0] + text, f"--listen {word}", default=0, lowest=0)
    return (LOOPBACK[0] if host == "localhost" else host), port


def authority(host: str, port: int, default: int = 80) -> str:
    """Return ``host:port`` as a URL has it: IPv6 in brackets, and without the port if it is ``default``."""
    name = f"[{host}]" if ":" in host else host
    return name if port == default else f"{name}:{port}"


def is_loopback(host: str) -> bool:
    """Say whether a host's name or address means this machine whatever the name service says (RFC 6761, 6.3)."""
    name = host.lower().rstrip(".")
    return name == "localhost" or name.endswith(".localhost") or is_loopback_address(name)


def is_loopback_address(address: str) -> bool:
    """Say whether an address is one of the loopback interface: 127.0.0.0/8, ::1 (RFC 1122, RFC 4291)."""
    address = address.removeprefix("::ffff:")
    return bool(re.fullmatch(r"127(\.[0-9]{1,3}){3}", address)) or address == "::1"


def _authority(text: str, whole: str, *, default: int, lowest: int) -> tuple[str, int]:
    """Return host and port of ``host:port``, a part of ``whole``. Raises UsageError."""
    found = _AUTHORITY.fullmatch(text)
    if found is None or not _HOST.fullmatch(found[1]):
        raise UsageError(f"{shown(whole)} has no usable host")
    digits = found[2] or str(default)
    port = int(digits) if re.fullmatch(r"0*[0-9]{1,5}", digits) else -1
    if found[2] and not lowest <= port <= _LARGEST_PORT:
        raise UsageError(f"{shown(whole)}: there is no port {shown(digits)}, they go from 1 to {_LARGEST_PORT}")
    host = found[1].strip("[]").lower()
    try:
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        host = ""
    if not (_is_ipv6(host) if found[1][0] == "[" else _IS_NAME.fullmatch(host)):
        raise UsageError(f"{shown(whole)} has no usable host")
    return host, port


def _is_ipv6(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, text)
    except OSError:
        return False
    return True


def _suggestion(text: str) -> str:
    """Say which URL may have been meant."""
    if re.fullmatch(r"[\w.-]+(:\d+)?(/\S*)?", text) and not text.isdecimal():
        return f"; did you mean http://{text}?"
    if text.isdecimal():
        return f"; did you mean http://localhost:{text}?"
    return "; it begins with http:// or https://"
