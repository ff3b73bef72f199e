"""Which requests may pass to an upstream that is not on this machine, and what becomes of their `Host`.

Whoever listens on loopback is reached by every web page that a browser on this machine shows: a page may send requests
to 127.0.0.1, and after DNS rebinding it may read the answers. A server on loopback sees the page's `Host` and `Origin`
and can refuse it, as MCP demands (basic/transports#security-warning). One elsewhere sees the `Host` that we write, so
we have to do it: a request whose `Host` does not name us, or whose `Origin` is a page from elsewhere, is refused.

No sockets here: bytes in, bytes out, and a refusal where it ends.
"""

import re

from mcpsniff.proxy.address import authority, is_loopback
from mcpsniff.proxy.answers import Answer, as_data, no_http
from mcpsniff.wire.http1 import Http1Splitter
from mcpsniff.wire.http1_parts import (
    BAD_CHUNK,
    BAD_HEADER,
    BAD_LENGTH,
    BAD_START_LINE,
    BAD_TRAILER,
    BAD_TRANSFER_ENCODING,
    BAD_VERSION,
    BARE_CR,
    BARE_LF,
    CHUNK_WHITE_SPACE,
    CHUNKED_IN_HTTP10,
    CONFLICTING_FRAMING,
    CONFLICTING_LENGTH,
    CONTROL_CHARACTER,
    FOLDED_HEADER,
    REPEATED_LENGTH,
    SPACE_BEFORE_COLON,
    TUNNEL,
    Data,
    End,
    Head,
    Undecoded,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    from mcpsniff.wire.http1_parts import Part

ANY: "Final" = "*"
"""Among the names that are allowed: all are."""

_AMBIGUOUS: "Final" = frozenset(
    {
        BAD_CHUNK,
        BAD_HEADER,
        BAD_LENGTH,
        BAD_START_LINE,
        BAD_TRAILER,
        BAD_TRANSFER_ENCODING,
        BAD_VERSION,
        BARE_CR,
        BARE_LF,
        CHUNK_WHITE_SPACE,
        CHUNKED_IN_HTTP10,
        CONFLICTING_FRAMING,
        CONFLICTING_LENGTH,
        CONTROL_CHARACTER,
        FOLDED_HEADER,
        REPEATED_LENGTH,
        SPACE_BEFORE_COLON,
    }
)
"""What two readers of a request may understand differently: one sees a header or a request that the other does not.
Libraries send none of it, though servers may understand it."""
_CHUNKED: "Final" = "chunked"
_PLAUSIBLE = re.compile(rb"[\r\n]*(?:\Z|[!#$%&'*+.^_`|~0-9A-Za-z-])")
"""The beginning of a request; a TLS client that comes to the wrong port begins otherwise, and then waits."""
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\[\]:/?#@]*)(:[0-9]+)?", re.IGNORECASE)
_NAMED = re.compile(r"([a-z][a-z0-9+.-]*://)?(?:.*@)?([^/?#=&;,\s]*)", re.IGNORECASE | re.DOTALL)
_LONGEST: "Final" = 200
"""Characters of a request that an answer repeats."""
_HOST_LINE = re.compile(rb"(?:^|\n)host[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?=\r?\n)", re.IGNORECASE)


class Door:
    """Who is let in at one listener. ``allowed`` are further names, with or without port, or `ANY`."""

    def __init__(self, address: str, port: int, allowed: "Iterable[str]" = ()) -> None:
        own = {"localhost", "127.0.0.1", "::1", address}
        self._hosts = {authority(host, port) for host in own} | {f"{authority(host, 80)}:{port}" for host in own}
        self._allowed = {name.lower() for name in allowed}

    def refusal(self, head: Head, flaws: "Iterable[str]" = ()) -> Answer | None:
        """Return our answer to a request that must not pass, or None; ``flaws`` are those of its body."""
        if ANY not in self._allowed:
            hosts = head.all("host")
            if len(hosts) != 1 or not self._is_ours(hosts[0]):
                named = ", ".join([_named(host) for host in hosts[:2]]) or "nothing"
                return _refused(f"the request's Host names {named}, not this listener", "Host")
            target = head.target or ""
            if not target.startswith("/") and target != "*":
                return _refused(f"this is not a forward proxy: the request is for {_named(target)}", "target")
            for origin in head.all("origin"):
                if self._is_foreign(origin):
                    return _refused(f"the request comes from a page of {_named(origin)}", "Origin")
        codings = head.all("transfer-encoding")
        if codings and [coding.lower() for coding in codings] != [_CHUNKED]:
            return _ambiguous({BAD_TRANSFER_ENCODING})
        return _ambiguous({*head.flaws, *flaws})

    def refusal_of_page(self, head: Head) -> Answer | None:
        """Return our answer to a request that a page from elsewhere seems to make, or None.

        For edit mode before a server on this machine. It judges a `Host` itself, but not what we say in its place: any
        name of this machine will do.
        """
        if ANY in self._allowed:
            return None
        for host in head.all("host"):
            if not (self._is_ours(host) or is_loopback(_without_port(host))):
                return _refused(f"the request's Host names {_named(host) or 'nothing'}, not this machine", "Host")
        for origin in head.all("origin"):
            if self._is_foreign(origin):
                return _refused(f"the request comes from a page of {_named(origin)}", "Origin")
        return None

    def _is_ours(self, host: str) -> bool:
        host = host.lower()
        return host in self._hosts or host in self._allowed or _without_port(host) in self._allowed

    def _is_foreign(self, origin: str) -> bool:
        """A page that this machine serves itself is not foreign; whatever a name service says, its host tells."""
        found = _ORIGIN.fullmatch(origin)
        if found is None:
            return True
        return not (is_own_page(origin) or self._is_ours(f"{found[2]}{found[3] or ''}"))


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
        """True once what the client says need not be HTTP, with the server's consent: pass all on."""
        self.has_passed = False
        """True once a request has passed."""
        self.has_get = False
        """True if a GET was among those that the last `feed` let pass."""
        self._rewrites: list[dict[str, Any]] = []
        self._splitter = Http1Splitter(channel, "c2s")
        self._responses = Http1Splitter(channel + 1, "s2c")
        self._has_consent = self._is_lost = False
        self._door = door
        self._host = None if host is None else host.encode("ascii")
        self._held = bytearray()
        self._held_from = 0
        self._in_message = False

    def feed(self, t: int, data: bytes) -> bytes:
        """Take what was read at ``t`` and return what may leave. Of a head nothing leaves before all of it was read."""
        self._held += data
        self.has_get = False
        if self._has_consent:  # no client speaks otherwise before it has read that it may
            self.is_over = True
            return self._pass_on(self._held_from + len(self._held))
        pieces: list[bytes] = []
        for part, flaws in _with_flaws(self._splitter.feed(t, data), self._splitter.flaws):
            if not self._take(part, flaws, pieces):
                break
        if not self._in_message and not _PLAUSIBLE.match(self._held):
            self.refusal = self.refusal or self._unreadable()
        if self._in_message and self.refusal is None:
            pieces.append(self._pass_on(self._held_from + len(self._held)))
        return b"".join(pieces)

    def hear(self, t: int, data: bytes) -> None:
        """Take what the server said, before the client gets it; another thread than that of `feed` may call this.

        It alone decides whether another protocol begins here: with 101, or 2xx to a CONNECT (RFC 9110, 7.8 and 9.3.6).
        """
        if self._has_consent or self._is_lost:
            return
        for part in self._responses.feed(t, data):
            if isinstance(part, Undecoded):  # what seems to be a head from here on may be in a body
                self._is_lost = True
                return
            self._has_consent = self._has_consent or (isinstance(part, Head) and part.framing == TUNNEL)
            if self._has_consent:
                return

    def take_rewrites(self) -> "list[dict[str, Any]]":
        """Return the bodies of rewrite records, without ``by``, for what was changed since the last call."""
        rewrites, self._rewrites = self._rewrites, []
        return rewrites

    def _take(self, part: "Part", flaws: "Sequence[str]", pieces: list[bytes]) -> bool:
        """Let a part of a request pass, or not, as far as possible by the ``flaws`` of its body, too.

        Return False if nothing more is to be looked at.
        """
        if isinstance(part, Undecoded):
            self.refusal = self._unreadable()
            return False
        if isinstance(part, Head):
            self.refusal = self._door.refusal(part, flaws)
            if self.refusal is not None:
                self.refused = part
                return False
            self._in_message = self.has_passed = True
            self.has_get = self.has_get or part.method == "GET"
            self._responses.expect(part.method or "GET")
            head = self._pass_on(part.spans[-1].stop)
            pieces.append(head if self._host is None else self._with_host(head, part.spans[-1].stop - len(head)))
            return True
        self.refusal = _ambiguous(flaws)
        if self.refusal is not None:
            return False
        if isinstance(part, Data):
            pieces.append(self._pass_on(part.span.stop))
        elif isinstance(part, End):
            self._in_message = False
            if part.spans:
                pieces.append(self._pass_on(part.spans[-1].stop))
        else:
            pieces.append(self._pass_on(part.spans[-1].stop))
        return True

    def _unreadable(self) -> Answer:
        return Answer(400, f"{no_http(bytes(self._held[:2]))}; so its Host cannot be checked")

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


def is_own_page(origin: str) -> bool:
    """Return True if an `Origin` is a page that this machine serves itself."""
    found = _ORIGIN.fullmatch(origin)
    return found is not None and found[1].lower() in {"http", "https"} and is_loopback(found[2].strip("[]"))


def _with_flaws(parts: "list[Part]", flaws: "Sequence[str]") -> "list[tuple[Part, Sequence[str]]]":
    """Return the parts, each with the flaws of its body as far as they show; ``flaws`` are of the one that goes on."""
    told: list[tuple[Part, Sequence[str]]] = []
    for part in reversed(parts):
        if isinstance(part, End):
            flaws = part.flaws
        told.append((part, flaws))
    return told[::-1]


def _ambiguous(flaws: "Iterable[str]") -> Answer | None:
    """Return our answer to a request with these flaws, or None if it may pass."""
    found = _AMBIGUOUS.intersection(flaws)
    if not found:
        return None
    return Answer(400, f"another server may read this request differently ({', '.join(sorted(found))})")


def _named(text: str) -> str:
    """Return what a `Host`, an origin or a target names: no user information, path or query, since they hold secrets.

    Those are masked where the request is recorded, but not in an answer of ours.
    """
    found = _NAMED.match(text)
    name = f"{found[1] or ''}{found[2]}" if found else ""
    return name if len(name) < _LONGEST else name[: _LONGEST - 1] + "…"


def _without_port(host: str) -> str:
    """``name:8000`` gives ``name``, ``[::1]:8000`` gives ``::1``."""
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:[0-9]*)?", host)
    return found[1].strip("[]") if found else host


def _refused(why: str, what: str) -> Answer:
    return Answer(403, f"{why}; if that is as it should be, restart mcpsniff http with --allow-host", refused=what)
