"""Which way leads to a live server: the pipes of a command, or the transport that is spoken at a URL."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mcpsniff.replay.send.headers import Headers
from mcpsniff.replay.send.http import HttpLink
from mcpsniff.replay.send.link import Came, Ear, GoneError, Link, Refusal, Sent, Tape, UnreachableError
from mcpsniff.replay.send.reach import named
from mcpsniff.replay.send.sse import SseLink
from mcpsniff.replay.send.stdio import StdioLink


@dataclass(frozen=True, slots=True)
class Where:
    """A live server, and what is given to it: exactly one of ``url`` and ``command`` is there."""

    url: str | None = None
    command: Sequence[str] = ()
    headers: Headers = field(default_factory=list)
    """Go with every request over HTTP; never kept."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Are added to the environment of the command; never kept."""
    folder: str | None = None
    """Where the command runs."""


def link_to(
    where: Where, ear: Ear, *, timeout: float = 30.0, tape: Tape | None = None, prefers_sse: bool = False
) -> Link:
    """A link to a server, to be opened. ``prefers_sse``: what is to be sent was recorded over HTTP+SSE.

    At a URL the server may speak Streamable HTTP or HTTP+SSE. A URL that ends in ``/sse``, or one that is to be spoken
    to as in a recording over HTTP+SSE, is first asked for a stream with an endpoint; any other is first sent the text,
    and asked for a stream if it refuses that as no such thing (2025-03-26 transports, backwards compatibility). Raises
    UnreachableError for what is no URL.
    """
    if where.url is None:
        return StdioLink(where.command, ear, variables=where.variables, folder=where.folder, tape=tape)
    try:
        looks_old = urlsplit(where.url).path.rstrip("/").rpartition("/")[2].lower() == "sse"
    except ValueError:
        raise UnreachableError(f"cannot reach {named(where.url)}: that is no URL") from None
    return EitherLink(where.url, ear, where.headers, tape, timeout, sse_first=looks_old or prefers_sse)


class EitherLink:
    """Streamable HTTP or HTTP+SSE, whichever the server speaks."""

    def __init__(
        self, url: str, ear: Ear, given: Headers, tape: Tape | None, timeout: float, *, sse_first: bool
    ) -> None:
        self._url, self._ear, self._given, self._tape, self._timeout = url, ear, given, tape, timeout
        self._sse_first = sse_first
        self._trial: _Trial | None = None
        self.link: HttpLink | SseLink | None = None
        """The link that is spoken over, once it is known."""
        self.recorded_version: str | None = None
        """See `HttpLink.recorded_version`."""
        self.ends_session = True
        """See `HttpLink.ends_session`."""
        self.was_streamable = True
        """See `HttpLink.was_streamable`."""

    @property
    def transport(self) -> str:
        """``http`` or ``sse``; as long as nothing is known, ``http``."""
        return "http" if self.link is None else self.link.transport

    async def open(self) -> None:
        """Find out whether it is HTTP+SSE where that is likely; otherwise only make ready."""
        if self._sse_first:
            old = self._old(min(self._timeout, 5.0))
            try:
                await old.open()
            except UnreachableError:
                await old.close()
                if not old.wire.reached:
                    raise
            else:
                self.link = old
                return
        self._trial = _Trial(self._ear)
        link = HttpLink(self._url, self._trial, given=self._given, tape=self._tape, timeout=self._timeout)
        link.recorded_version, link.ends_session = self.recorded_version, self.ends_session
        link.was_streamable = self.was_streamable
        self.link = link
        await link.open()

    def _old(self, timeout: float) -> SseLink:
        return SseLink(self._url, self._ear, given=self._given, tape=self._tape, timeout=timeout)

    async def send(self, sent: Sent) -> None:
        """Send a text. Raises GoneError, UnreachableError."""
        if self.link is None:
            raise GoneError
        trial, self._trial = self._trial, None
        if trial is None or not isinstance(self.link, HttpLink) or self._sse_first:
            if trial is not None:
                trial.let_go()
            await self.link.send(sent)
            return
        await self._try(trial, self.link, sent)

    async def _try(self, trial: "_Trial", link: HttpLink, sent: Sent) -> None:
        """Send the first text; a server that refuses it as one of HTTP+SSE does is asked for its stream."""
        await link.send(sent)
        if await trial.verdict(self._timeout) is None:
            trial.let_go()
            return
        old = self._old(min(self._timeout, 5.0))
        try:
            await old.open()
        except UnreachableError:
            await old.close()
            trial.let_go()
            return
        await link.close()
        self.link = old
        await old.send(sent)

    async def listen(self) -> None:
        """See `Link.listen`."""
        if self.link is not None:
            await self.link.listen()

    async def drop(self, sent: Sent) -> bool:
        """See `Link.drop`."""
        return self.link is not None and await self.link.drop(sent)

    async def leave(self) -> None:
        """See `Link.leave`."""
        if self.link is not None:
            await self.link.leave()

    async def close(self) -> None:
        """See `Link.close`."""
        if self.link is not None:
            await self.link.close()


class _Trial:
    """Holds back what is heard until it is known that the server speaks Streamable HTTP, and passes it on from then."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._held: list[Callable[[], None]] | None = []
        self._known = asyncio.Event()
        self._refusal: Refusal | None = None
        self._spoke = False

    async def verdict(self, timeout: float) -> Refusal | None:
        """The refusal with which a server answers that knows no Streamable HTTP; None if it is not one."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._known.wait(), timeout)
        refusal = self._refusal
        if self._spoke or refusal is None or refusal.status is None or refusal.status in (401, 403):
            return None
        return refusal if 400 <= refusal.status < 500 else None

    def let_go(self) -> None:
        """Pass on what was held back."""
        held, self._held = self._held, None
        for tell in held or ():
            tell()

    def _pass(self, tell: Callable[[], None]) -> None:
        if self._held is None:
            tell()
        else:
            self._held.append(tell)

    def heard(self, came: Came) -> None:
        """A message: whoever answers in JSON-RPC takes such requests."""
        self._spoke = True
        self._known.set()
        self._pass(lambda: self._ear.heard(came))

    def refused(self, refusal: Refusal) -> None:
        """The first text was refused, or a later one."""
        self._refusal = self._refusal or refusal
        self._known.set()
        self._pass(lambda: self._ear.refused(refusal))

    def accepted(self, sent: Sent, status: int) -> None:
        """A response has begun."""
        if status < 300:
            self._known.set()
        self._pass(lambda: self._ear.accepted(sent, status))

    def wrote(self, text: str) -> None:
        """Does not happen over HTTP."""
        self._pass(lambda: self._ear.wrote(text))

    def ended(self, why: str) -> None:
        """The session is over."""
        self._known.set()
        self._pass(lambda: self._ear.ended(why))
