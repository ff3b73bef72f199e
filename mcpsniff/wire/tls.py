"""How servers that expect TLS answer a request that comes without it."""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

ALERT_SIZE: "Final" = 7
"""Bytes of an alert that is not encrypted: content type, version, length, level, description."""
_ALERT = re.compile(rb"\x15\x03[\x00-\x04]\x00\x02[\x01\x02].", re.DOTALL)
_SAID = re.compile(
    rb"plain HTTP request was sent to HTTPS port"  # nginx
    rb"|speaking plain HTTP to an SSL-enabled server port"  # Apache
    rb"|sent an HTTP request to an HTTPS server"  # Go
    rb"|combination of host and port requires TLS",  # Tomcat
    re.IGNORECASE,
)
_TYPE = re.compile(rb"^content-type:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def is_alert(beginning: bytes) -> bool:
    """True if what a server says begins with an alert of TLS, before any encryption (RFC 8446, 5.1 and 6)."""
    return _ALERT.match(beginning) is not None


def refuses_plain(body: bytes, content_type: str) -> bool:
    """True if the body of a 400 says that its server expects TLS, in the words of a server that is known.

    Who answers in JSON, as servers of MCP do, speaks HTTP, and may quote what another has said.
    """
    return "json" not in content_type.lower() and _SAID.search(body) is not None


def expects_tls(answer: bytes) -> bool:
    """True if the first bytes that a server of HTTP/1.x sends tell that it expects TLS."""
    if answer[:1] == b"\x15":
        return is_alert(answer)
    if answer[8:12] != b" 400" or answer[:5] != b"HTTP/":
        return False
    kind = _TYPE.search(answer)
    return refuses_plain(answer, kind[1].decode("latin-1") if kind else "")
