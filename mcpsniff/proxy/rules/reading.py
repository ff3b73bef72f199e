"""Rules, from the options and the files that state them."""

from collections.abc import Mapping
from typing import Any

from mcpsniff.errors import UsageError
from mcpsniff.hooks.editor import Interceptor


def rules_from(options: Mapping[str, Any]) -> list[Interceptor]:  # noqa: ARG001
    """The rules that ``options`` ask for, in order. Raises UsageError."""
    raise UsageError("rules are not built yet")
