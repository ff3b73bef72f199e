"""`mcpsniff http` in front of a scripted server behind a TLS terminator."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
from tests.proxy.relayed import Peer, Relay, Upstream


@dataclass
class Secured:
    """The parts of it that tests talk to."""

    upstream: Upstream
    terminator: Terminator
    authority: Authority
    relay: Relay

    def meta(self, closes: int = 2) -> list[dict[str, Any]]:
        """What is recorded of heads, once so many channels are closed."""
        captured = self.relay.recorded(lambda seen: sum([each[1] == "close" for each in seen.records]) >= closes)
        return [each[3]["meta"] for each in captured.records if each[1] == "open"]


@contextmanager
def secured(
    folder: Path, script: Callable[[Peer], object], *words: str, path: str = "/mcp", trusts: bool = True, **relay: Any
) -> Iterator[Secured]:
    """A relay that trusts the server's CA, unless told otherwise."""
    authority = Authority(folder)
    with Upstream(script) as upstream, Terminator(upstream.port, str(authority.issue())) as terminator:
        trust = ["--upstream-ca", str(authority.file)] if trusts else []
        with Relay(folder, terminator.url + path, *trust, *words, **relay) as running:
            yield Secured(upstream, terminator, authority, running)
