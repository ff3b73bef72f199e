"""Which requests may pass to an upstream that is not on this machine, and what becomes of their `Host`.

Whoever listens on loopback is reached by every web page that a browser on this machine shows: a page may send requests
to 127.0.0.1, and after DNS rebinding it may read the answers. A server on loopback sees the page's `Host` and `Origin`
and can refuse it, as MCP demands (basic/transports#security-warning). One elsewhere sees the `Host` that we write, so
we have to do it: a request whose `Host` does not name us, or whose `Origin` is a page from elsewhere, is refused.

No sockets here: bytes in, bytes out, and a refusal where it ends.
"""

import re

from mcpsniff.proxy.address import authority, is_loopback
from mcpsniff.proxy.answers import Answer, as_data
from mcpsniff.wire.http1 import Http1Splitter
from mcpsniff.wire.http1_parts import (
    BAD_LENGTH,
    BAD_TRANSFER_ENCODING,
    CHUNKED_IN_HTTP10,
    CONFLICTING_FRAMING,
    CONFLICTING_LENGTH,
    FOLDED_HEADER,
    SPACE_BEFORE_COLON,
    Data,
    End,
    Head,
    Undecoded,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from mcpsniff.wire.http1_parts import Part

ANY: "Final" = "*"
"""Among the names that are allowed: all are."""

_AMBIGUOUS: "Final" = frozenset(
    {
        BAD_LENGTH,
        BAD_TRANSFER_ENCODING,
        CHUNKED_IN_HTTP10,
        CONFLICTING_FRAMING,
        CONFLICTING_LENGTH,
        FOLDED_HEADER,
        SPACE_BEFORE_COLON,
    }
)
"""What two readers of a request may understand differently: one sees a second request where the other does not."""
_NOT_HTTP: "Final" = "this is not HTTP/1.1, so its Host cannot be checked"
_PLAUSIBLE = re.compile(rb"[\r\n]*(?:\Z|[!#$%&'*+.^_`|~0-9A-Za-z-])")
"""The beginning of a request; a TLS client that comes to the wrong port begins otherwise, and then waits."""
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\[\]:/?#@]*)(:[0-9]+)?", re.IGNORECASE)
_HOST_LINE = re.compile(rb"(?:^|\n)host[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?=\r?\n)", re.IGNORECASE)


class Door:
    """Who is let in at one listener. ``allowed`` are further names, with or without port, or `ANY`."""

    def __init__(self, address: str, port: int, allowed: "Iterable[str]" = ()) -> None:
        own = {"localhost", "127.0.0.1", "::1", address}
        self._hosts = {authority(host, port) for host in own} | {f"{authority(host, 80)}:{port}" for host in own}
        self._allowed = {name.lower() for name in allowed}

    def refusal(self, head: Head) -> Answer | None:
        """Return our answer to a request that must not pass, or None."""
        if ANY not in self._allowed:
            hosts = head.all("host")
            if len(hosts) != 1 or not self._is_ours(hosts[0]):
                named = ", ".join(hosts) or "nothing"
                return _refused(f"the request's Host names {named}, not this listener", "Host")
            target = head.target or ""
            if not target.startswith("/") and target != "*":
                return _refused(f"this is not a forward proxy: the request is for {target}", "target")
            for origin in head.all("origin"):
                if self._is_foreign(origin):
                    return _refused(f"the request comes from a page of {origin}", "Origin")
        ambiguous = _AMBIGUOUS.intersection(head.flaws)
        if ambiguous:
            return Answer(400, f"where this request ends is ambiguous ({', '.join(sorted(ambiguous))})")
        return None

    def _is_ours(self, host: str) -> bool:
        host = host.lower()
        return host in self._hosts or host in self._allowed or _without_port(host) in self._allowed

    def _is_foreign(self, origin: str) -> bool:
        """A page that this machine serves itself is not foreign; whatever a name service says, its host tells."""
        found = _ORIGIN.fullmatch(origin)
        if found is None:
            return True
        host = found[2].strip("[]").lower()
        if found[1].lower() in {"http", "https"} and is_loopback(host):
            return False
        return not self._is_ours(f"{found[2]}{found[3] or ''}")


class Gate:
    """Screens the requests of one connection, whose bytes begin at offset 0 of ``channel``.

    ``host`` is to stand in their `Host`; None: what the client sent stays.
    """

    def __init__(self, channel: int, door: Door, host: str | None) -> None:
        self.refusal: Answer | None = None
        """Our answer, once a request must not pass. Nothing after it passes either."""
        self.refused: Head | None = None
        """That request, if it could be read."""
        self.is_over = False
        """True once requests are no longer HTTP, with the server's consent to be: pass all on."""
        self.has_passed = False
        """True once a request has passed."""
        self.has_get = False
        """True if a GET was among those that the last `feed` let pass."""
        self._rewrites: list[dict[str, Any]] = []
        self._splitter = Http1Splitter(channel, "c2s")
        self._door = door
        self._host = None if host is None else host.encode("ascii")
        self._held = bytearray()
        self._held_from = 0
        self._in_message = False

    def feed(self, t: int, data: bytes) -> bytes:
        """Take what was read at ``t`` and return what may leave. Of a head nothing leaves before all of it was read."""
        self._held += data
        self.has_get = False
        pieces: list[bytes] = []
        for part in self._splitter.feed(t, data):
            if not self._take(part, pieces):
                break
        if not self._in_message and not self.is_over and not _PLAUSIBLE.match(self._held):
            self.refusal = self.refusal or Answer(400, _NOT_HTTP)
        if (self._in_message or self.is_over) and self.refusal is None:
            pieces.append(self._pass_on(self._held_from + len(self._held)))
        return b"".join(pieces)

    def take_rewrites(self) -> "list[dict[str, Any]]":
        """Return the bodies of rewrite records, without ``by``, for what was changed since the last call."""
        rewrites, self._rewrites = self._rewrites, []
        return rewrites

    def _take(self, part: "Part", pieces: list[bytes]) -> bool:
        """Let a part of a request pass, or not; return False if nothing more is to be looked at."""
        if isinstance(part, Undecoded):
            self.refusal = Answer(400, _NOT_HTTP)
            return False
        if isinstance(part, Head):
            self.refusal = self._door.refusal(part)
            if self.refusal is not None:
                self.refused = part
                return False
            self._in_message = self.has_passed = True
            self.has_get = self.has_get or part.method == "GET"
            head = self._pass_on(part.spans[-1].stop)
            pieces.append(head if self._host is None else self._with_host(head, part.spans[-1].stop - len(head)))
            if part.get("upgrade"):
                self.is_over = True
                return False
        elif isinstance(part, Data):
            pieces.append(self._pass_on(part.span.stop))
        elif isinstance(part, End):
            self._in_message = False
            if part.spans:
                pieces.append(self._pass_on(part.spans[-1].stop))
        else:
            pieces.append(self._pass_on(part.spans[-1].stop))
        return True

    def _with_host(self, head: bytes, offset: int) -> bytes:
        """Put the upstream's `Host` in the place of the client's in ``head``, which is at ``offset`` of the channel."""
        host = self._host or b""
        pieces = []
        done = 0
        for found in _HOST_LINE.finditer(head):
            start, stop = found.span(1)
            pieces += [head[done:start], host]
            done = stop
            self._rewrites.append({"start": offset + start, "length": stop - start, "data": as_data(host)})
        return b"".join([*pieces, head[done:]])

    def _pass_on(self, stop: int) -> bytes:
        """Return what is held up to offset ``stop``; that may have left before."""
        size = max(0, stop - self._held_from)
        data = bytes(self._held[:size])
        del self._held[:size]
        self._held_from += len(data)
        return data


def _without_port(host: str) -> str:
    """``name:8000`` gives ``name``, ``[::1]:8000`` gives ``::1``."""
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:[0-9]*)?", host)
    return found[1].strip("[]") if found else host


def _refused(why: str, what: str) -> Answer:
    return Answer(403, f"{why}; if that is as it should be, restart mcpsniff http with --allow-host", refused=what)
