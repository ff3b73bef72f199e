"""What mcpsniff says itself, in the place of an upstream that cannot be reached or must not be: whole HTTP answers.

They are marked as ours (`Server: mcpsniff`) and end the connection.
"""

import json

from mcpsniff import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from mcpsniff.proxy.address import Upstream
    from mcpsniff.wire.http1_parts import Head

REASONS: "Final" = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}
REFUSED: "Final" = -32000
"""The code of our JSON-RPC errors: of those that are free for servers (JSON-RPC 2.0, 5.1)."""
TLS: "Final" = b"\x16\x03"
"""How a client of TLS begins (RFC 8446, 5.1)."""
UNKNOWN: "Final" = ("name or service not known", "nodename nor servname", "no address associated", "name resolution")
"""How systems say that a name leads nowhere."""


class Answer:
    """An answer of ours: a status, one sentence, and details for programs."""

    def __init__(self, status: int, error: str, **details: "Any") -> None:
        self.status = status
        self.error = error
        self._details = details

    def besides(self, remark: str) -> "Answer":
        """Return this answer with one more sentence."""
        return Answer(self.status, f"{self.error} Besides, {remark}.", **self._details)

    def to(self, request: "Head | None") -> bytes:
        """Return the response to a request: JSON if that accepts it, else plain text; for HEAD without its body.

        To a POST that accepts event streams, too, as those of Streamable HTTP do, it is a JSON-RPC error without an id,
        which MCP allows with each status that refuses (basic/transports): some clients show its message.
        """
        accepts = ", ".join(request.all("accept")).lower() if request is not None else ""
        has_body = request is None or request.method != "HEAD"
        if "json" in accepts:
            kind = "application/json"
            details = {"by": "mcpsniff", **self._details}
            said: dict[str, Any] = {"error": self.error, **details}
            if request is not None and request.method == "POST" and "text/event-stream" in accepts:
                error = {"code": REFUSED, "message": f"mcpsniff: {self.error}", "data": details}
                said = {"jsonrpc": "2.0", "id": None, "error": error}
            body = json.dumps(said, ensure_ascii=False) + "\n"
        else:
            kind = "text/plain; charset=utf-8"
            body = f"mcpsniff: {self.error}\n"
        content = body.encode("utf-8", "backslashreplace")
        head = (
            f"HTTP/1.1 {self.status} {REASONS[self.status]}\r\nServer: mcpsniff/{__version__}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\nCache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode("ascii") + (content if has_body else b"")


def unreachable(upstream: "Upstream", tried: "list[str]") -> Answer:
    """Return the answer for an upstream that no address of accepts a connection."""
    why = "; ".join(tried)
    is_unknown = any(words in why.lower() for words in UNKNOWN)
    advice = "Check how the host is spelled." if is_unknown else "Is the server running?"
    return Answer(
        502,
        f"cannot reach the upstream {upstream.origin} ({why}). {advice}",
        upstream=upstream.origin,
        tried=tried,
    )


def no_http(beginning: bytes) -> str:
    """Say what a client's first bytes are, if they are no request; a TLS client begins with a handshake record."""
    if TLS.startswith(beginning[: len(TLS)]):
        return "what the client sends is TLS, not HTTP: its address for mcpsniff has to begin with http://"
    return "what the client sends cannot be read as HTTP/1.1"


def as_data(content: bytes) -> "str | dict[str, str]":
    """Return bytes as a record of a capture has them: text if they are UTF-8, else base64."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return {"b64": b2a_base64(content, newline=False).decode("ascii")}
