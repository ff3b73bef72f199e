"""Faults, from the options that state them."""

from collections.abc import Sequence

from mcpsniff.errors import UsageError
from mcpsniff.hooks.editor import Interceptor


def faults_from(words: Sequence[str], seed: str | None, transport: str) -> list[Interceptor]:  # noqa: ARG001
    """The faults that ``words`` ask for. Raises UsageError."""
    raise UsageError("faults are not built yet")
