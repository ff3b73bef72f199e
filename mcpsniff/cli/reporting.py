"""`--report FILE`: what came of a replay as JSON, in a file that takes the place of nothing that is still needed."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mcpsniff.capture.labels import shown
from mcpsniff.capture.store import SUFFIX
from mcpsniff.cli.output import note, output
from mcpsniff.errors import UsageError
from mcpsniff.protocol.paths import Pattern
from mcpsniff.transcript.safe import visible


@contextmanager
def reporting(path: str | None, make: Callable[[], Any]) -> Iterator[None]:
    """Write what ``make`` gives to ``path`` in the end. That it can be written is known before anything begins."""
    if path is None:
        yield
        return
    with output(path) as stream:
        yield
        stream.write(json.dumps(make(), indent=2).encode() + b"\n")


def check_report(path: str | None, needed: Iterable[str | None], *, has_stdout: bool = True) -> None:
    """Raise UsageError if the report would be written over a capture, or over one of the files that are ``needed``.

    ``has_stdout`` says that it may go to standard output.
    """
    if path is None:
        return
    if not path:
        raise UsageError("--report wants the name of a file")
    if path == "-":
        if not has_stdout:
            raise UsageError("--report - is not possible here: standard output belongs to the client")
        return
    if os.path.realpath(path).endswith(SUFFIX):
        raise UsageError(f"--report would write JSON to {shown(path)}, which has the name of a capture")
    for one in needed:
        if one is not None and _is_same(path, one):
            raise UsageError(f"--report would overwrite {shown(one)}: give the report a file of its own")


def _is_same(path: str, other: str) -> bool:
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def say_unmatched(found: Iterable[tuple[Pattern, list[str]]]) -> None:
    """Say which paths of --ignore name nothing in the capture: they can only ignore what is new."""
    for pattern, meant in found:
        hint = f"; was {' or '.join(meant)} meant?" if meant else ""
        note(visible(f"--ignore {pattern.text} names nothing that was recorded{hint}"))
