"""Load addons: files whose functions, or the methods of whose objects, are hooks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcpsniff.errors import UsageError
from mcpsniff.hooks.editor import Interceptor


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the files hold."""

    editing: list[Interceptor]
    observers: list[str]
    """Words for the process that follows the capture: ``--addon FILE``, ``--set NAME=VALUE``; empty: none."""


def load(files: Sequence[str], settings: Sequence[str], say: Callable[[str], object]) -> Loaded:  # noqa: ARG001
    """Load addons. Raises UsageError, which names file and line."""
    raise UsageError("addons are not built yet")
