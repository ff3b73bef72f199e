"""The live view of what is being recorded: a process of its own that follows the captures."""

import os
import signal

from mcpsniff.proxy.companion import Companion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LiveView(Companion):
    """Shows the captures at ``paths`` on our standard output.

    ``desk`` is the socket of break points: on a terminal the user decides there about what is held.
    """

    def __init__(self, paths: "Sequence[str]", desk: str | None = None) -> None:
        words = ["--desk", desk, *paths] if desk is not None and os.isatty(0) and os.isatty(1) else paths
        super().__init__(
            "mcpsniff.cli.live",
            words,
            absent="no live view",
            lost="the live view ended; the recording goes on (mcpsniff tail shows it, too)",
        )

    def outlasted(self, pid: int) -> None:
        """See `Companion`."""
        os.kill(pid, signal.SIGTERM)
