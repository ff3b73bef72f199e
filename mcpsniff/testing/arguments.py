"""What a test gives to the fixtures, read and checked at the call: a mistake is told there, in a sentence."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from mcpsniff.cli.seconds import LEAST, MOST
from mcpsniff.errors import UsageError
from mcpsniff.testing.replays import TRANSPORTS

MATCHES: Final = ("exact", "method", "sequence")
_OPTION: Final = re.compile(r"--(allow-redacted|server|timing|timeout|match|ignore|raw)\b(=?)")
_FLAGS: Final = ("allow-redacted", "raw")


def path_of(value: Any, below: Path, name: str) -> Path:
    """A path, relative to the file of the test. Raises UsageError."""
    try:
        path = Path(below, os.fspath(value))
        is_one = "\0" not in str(path)
    except TypeError:
        is_one = False
    if not is_one:
        raise UsageError(f"{name} wants a path, not {value!r}")
    return path


def words_of(command: Any) -> list[str]:
    """A command. Raises UsageError, also for a text, which would be taken for its letters."""
    if isinstance(command, str | bytes):
        raise UsageError(f"a command is a list of words, such as {str(command).split()!r}, not the text {command!r}")
    words: list[Any] = [os.fspath(word) if isinstance(word, os.PathLike) else word for word in _listed(command)]
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
        raise UsageError(f"a command is a list of words, such as ['uvx', 'mcp-server-time'], not {command!r}")
    return words


def methods_of(value: Any, name: str) -> bool | list[str]:
    """What is allowed: all (True), nothing (False), or these methods. Raises UsageError."""
    return value if isinstance(value, bool) else _texts(value, name, "True, False or names of methods")


def replay_options(
    *, match: Any, timing: Any, timeout: Any, ignore: Any, server: Any, raw: Any, allow_redacted: Any
) -> list[str]:
    """The options of `mcpsniff replay --serve` that these arguments stand for. Raises UsageError."""
    from mcpsniff.replay.ignoring import ignore_path
    from mcpsniff.replay.tempo import read_tempo

    if match not in MATCHES:
        raise UsageError(f"match is one of {', '.join(MATCHES)}, not {match!r}")
    read_tempo(str(timing))
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not is_number or not LEAST <= timeout <= MOST:
        raise UsageError(f"timeout is a number of seconds from {LEAST:g} to {MOST:,.0f}, not {timeout!r}")
    if server is not None and not isinstance(server, str):
        raise UsageError(f"server is a part of an address, not {server!r}")
    paths = _texts(ignore, "ignore", "a path or several")
    for path in paths:
        ignore_path(path)
    options = ["--match", match, "--timing", str(timing), "--timeout", str(timeout)]
    options += [f"--ignore={path}" for path in paths]
    options += [] if server is None else [f"--server={server}"]
    return options + [name for name, given in (("--raw", raw), ("--allow-redacted", allow_redacted)) if given]


def transport_of(value: Any) -> str:
    """One of `TRANSPORTS`. Raises UsageError."""
    if value not in TRANSPORTS:
        raise UsageError(f"transport is one of {', '.join(TRANSPORTS)}, not {value!r}")
    return str(value)


def as_arguments(text: str) -> str:
    """A sentence that names options of the command line, with those of the fixtures in their place."""
    return _OPTION.sub(
        lambda found: f"{found[1].replace('-', '_')}={'True' if found[1] in _FLAGS else ''}",
        text,
    )


def _texts(value: Any, name: str, wanted: str) -> list[str]:
    texts = [value] if isinstance(value, str) else _listed(value)
    if not all(isinstance(one, str) for one in texts):
        raise UsageError(f"{name} wants {wanted}, not {value!r}")
    return texts


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) else [None]
