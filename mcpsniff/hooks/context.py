"""What addons reach by ``mcpsniff.ctx``: the values of their options, and a way to say something.

Under mitmproxy ``options`` and ``say`` are mitmproxy's.
"""

import sys
from collections.abc import Callable
from typing import Any

from mcpsniff.hooks.options import Options


def _on_stderr(text: str) -> None:
    sys.stderr.write(f"mcpsniff: {text}\n")


class Log:
    """Lines for the user, on stderr in most cases."""

    def __init__(self, context: "Context") -> None:
        self._context = context

    def info(self, text: str) -> None:
        """Say something."""
        self._context.say(str(text))

    def warn(self, text: str) -> None:
        """Say that something may be wrong."""
        self._context.say(f"warning: {text}")

    def error(self, text: str) -> None:
        """Say that something is wrong."""
        self._context.say(f"error: {text}")


class Context:
    """One for all addons of a process."""

    def __init__(self) -> None:
        self.options: Any = Options()
        """``ctx.options.NAME`` is the value of an option."""
        self.log = Log(self)
        self.say: Callable[[str], object] = _on_stderr
        self.captures: list[Callable[[str], object]] = []
        """What writes a remark into a capture, where messages are edited."""

    def remark(self, text: str) -> None:
        """Write a sentence into the capture, where messages are edited; elsewhere it is only said."""
        if not self.captures:
            self.say(str(text))
        for write in self.captures:
            write(str(text))


ctx = Context()
