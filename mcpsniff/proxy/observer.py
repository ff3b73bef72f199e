"""Observing addons beside the traffic: a process of its own follows the captures and calls their hooks."""

from mcpsniff.proxy.companion import Companion
from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Observer(Companion):
    """Calls the hooks for the captures at ``paths``; ``words`` are `mcpsniff.hooks.loading.Loaded.observers`.

    What addons print goes to our standard output, or with ``stdout_to_stderr`` to standard error: where the former is
    another's. What takes longer than the end of the session goes on without us.
    """

    def __init__(self, paths: "Sequence[str]", words: "Sequence[str]", *, stdout_to_stderr: bool = False) -> None:
        super().__init__(
            "mcpsniff.cli.observe",
            [*words, "--", *paths],
            absent="no addon observes",
            lost="the process of the observing addons ended; the recording goes on",
            stdout_to_stderr=stdout_to_stderr,
        )

    def outlasted(self, pid: int) -> None:
        """See `Companion`."""
        say(f"the observing addons are still at work (process {pid})")
