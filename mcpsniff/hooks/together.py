"""What records say where several have done something to one message, or to elements of one batch."""

from collections.abc import Iterable

from mcpsniff.capture.records import AND


def names(by: Iterable[str]) -> str:
    """Who they are, each once: as docs/capture-format.md has it, with ``AND`` between them."""
    return _each_once(AND, (name for some in by for name in some.split(AND)))


def reasons(whys: Iterable[str]) -> str:
    """Why they did it, each reason once."""
    return _each_once("; ", whys)


def _each_once(between: str, texts: Iterable[str]) -> str:
    return between.join(dict.fromkeys(filter(None, texts)))
