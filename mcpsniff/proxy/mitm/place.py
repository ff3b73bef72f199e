"""One upstream that speaks TLS, and the port at which clients reach it through us.

To the session (`mcpsniff.proxy.tcp`) this is what a `Listener` is for plain HTTP.
"""

from collections.abc import Sequence

from mcpsniff.proxy.address import Upstream, authority, is_loopback_address
from mcpsniff.proxy.dial import Dialler
from mcpsniff.proxy.endpoint import Origins
from mcpsniff.proxy.gate import Door
from mcpsniff.proxy.listener import UNSPECIFIED
from mcpsniff.proxy.mitm.engine import Engine
from mcpsniff.proxy.mitm.tap import Tap
from mcpsniff.proxy.recorder import Recorder


class Place:
    """Where clients of ``upstream`` find us: ``host`` and ``port`` (0: a free one). See `Listener`."""

    def __init__(
        self, upstream: Upstream, host: str, port: int, *, keep_host: bool | None, allowed: Sequence[str]
    ) -> None:
        self.upstream = upstream
        dialler = Dialler(upstream)
        keeps = dialler.is_loopback if keep_host is None else keep_host
        self.origins = Origins(upstream, is_local=dialler.is_loopback)
        self.host = None if keeps else upstream.authority
        """What `Host` is to say; None: what the client sent."""
        self.tap: Tap | None = None
        self.engine: Engine | None = None
        self.bound = (host, port)
        self._is_local = dialler.is_loopback
        self._screens = not (dialler.is_loopback and keeps)
        self._allowed = allowed

    @property
    def mode(self) -> str:
        """Mitmproxy's name for what is to be done here."""
        host, port = self.bound
        return f"reverse:https://{authority(self.upstream.host, self.upstream.port, 443)}@{host}:{port}"

    @property
    def recorder(self) -> Recorder:
        """Where exchanges are noted; to be set before a client is let in."""
        assert self.tap is not None
        return self.tap.recorder

    @recorder.setter
    def recorder(self, recorder: Recorder) -> None:
        self.tap = Tap(recorder)

    @property
    def address(self) -> str:
        """What the client is to use in the place of the upstream's URL."""
        host, port = self.bound
        return f"http://{authority(UNSPECIFIED.get(host, host), port)}{self.upstream.target}"

    @property
    def listens_to_others(self) -> bool:
        """True if other machines can connect."""
        return not is_loopback_address(self.bound[0])

    @property
    def is_its_own_upstream(self) -> bool:
        """True if whoever connects would be connected to us again."""
        return self._is_local and self.upstream.port == self.bound[1]

    def occupies(self, host: str, port: int) -> bool:
        """Return True if nobody else can listen at ``port`` of the address ``host`` because of us."""
        mine, taken = self.bound
        return bool(port and port == taken and (host == mine or {host, mine} & UNSPECIFIED.keys()))

    def door(self, listen: tuple[str, int]) -> Door | None:
        """Return who is let in at ``listen``, or None if everybody is."""
        return Door(*listen, self._allowed) if self._screens else None

    # -- as one that is live ---------------------------------------------------------------------------------------

    @property
    def live(self) -> "list[Place]":
        """All its connections, as one, while there are any."""
        return [self] if self.engine is not None and self.engine.connections else []

    @property
    def progress(self) -> int:
        """How many times something was passed on."""
        return self.tap.progress if self.tap else 0

    @property
    def is_waiting(self) -> bool:
        """True while the response to some request has not begun."""
        return self.tap is not None and self.tap.is_waiting

    def close(self) -> None:
        """Listen no more."""
        if self.engine is not None:
            self.engine.stop_listening()

    def stop(self) -> None:
        """End its connections, since mcpsniff ends."""
        if self.engine is not None and self.tap is not None:
            self.engine.call(self.tap.stop)
            self.engine.disconnect()
