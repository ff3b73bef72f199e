"""Break points, from the options that state them."""

from collections.abc import Callable, Sequence

from mcpsniff.errors import UsageError
from mcpsniff.hooks.editor import Interceptor


def breaks_from(words: Sequence[str], transport: str, say: Callable[[str], object]) -> list[Interceptor]:  # noqa: ARG001
    """The break points that ``words`` ask for. Raises UsageError."""
    raise UsageError("break points are not built yet")
