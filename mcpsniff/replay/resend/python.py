"""A recorded request as a program in Python that needs nothing but the standard library.

The programs are real modules, `mcpsniff.replay.resend.scripts`; here their constants are filled in. Every captured
value is written as a literal with escapes, so that it can neither act on a terminal nor become code.
"""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Final

from mcpsniff.errors import UsageError
from mcpsniff.protocol.talk import LEGACY
from mcpsniff.replay.resend.holes import Hole, Holed, holes
from mcpsniff.replay.resend.order import Order
from mcpsniff.replay.script import PIPE
from mcpsniff.transcript.safe import visible

_SECRETS: Final = "# secrets\n"
_BEGIN: Final = "# what was recorded\n"
_END: Final = "# until here\n"


def python(order: Order) -> str:
    """The program. Raises UsageError for what is no message, which it cannot send."""
    if not order.body or order.method != "POST" or order.body[:1] not in b"{\xef \t\r\n":
        raise UsageError("only a message can be sent by a program in Python: --as curl can send this")
    name = "over_pipes" if order.kind == PIPE else "over_sse" if order.kind == LEGACY else "over_http"
    source = files("mcpsniff.replay.resend.scripts").joinpath(f"{name}.py").read_text()
    top, _, rest = source.partition(_SECRETS)
    secrets, _, rest = rest.partition(_BEGIN)
    program = rest.partition(_END)[2]
    if not _names(order):
        top, secrets = top.replace("import os\n", ""), ""
    comments = (f"# {visible(line)}\n" for line in _comments(order))
    constants = (f"{line}\n" for line in _constants(order))
    return "".join(("#!/usr/bin/env python3\n", *comments, top.rstrip(), "\n\n", secrets.lstrip(), *constants, program))


def _names(order: Order) -> list[str]:
    return holes([order.url, *order.command, *(value for _, value in order.headers)])


def _comments(order: Order) -> Iterator[str]:
    yield order.title
    if names := _names(order):
        yield f"set in the environment first, since secrets are masked: {', '.join(names)}"


def _constants(order: Order) -> Iterator[str]:
    if order.kind == PIPE:
        yield f"COMMAND = [{', '.join(literal(word) for word in order.command)}]"
        yield f"FOLDER = {_literal(order.cwd)}"
    else:
        yield f"URL = {literal(order.url)}"
        yield from _listed("HEADERS", (f"({_literal(name)}, {literal(value)})" for name, value in order.headers))
    yield from _listed("OPENING", (_text(message) for message in order.opening))
    yield f"REQUEST = {_text(order.body)}"
    yield from _listed("ANSWERS", (f"({_literal(method)}, {_text(answer)})" for method, answer in order.answers))
    yield "TIMEOUT = 30.0"


def _listed(name: str, items: Iterable[str]) -> Iterator[str]:
    lines = [f"    {item}," for item in items]
    yield from [f"{name} = [", *lines, "]"] if lines else [f"{name} = []"]


def _text(raw: bytes) -> str:
    """A message as a literal. The programs encode it so that the bytes are those that were recorded."""
    return _literal(raw.decode(errors="surrogateescape").replace("\r\n", " ").replace("\n", " "))


def _literal(text: str | None) -> str:
    r"""As Python spells it, with escapes for what does not show. In a literal a backslash is never alone before one."""
    return visible(repr(text))


def literal(text: Holed) -> str:
    """A text as an expression; secrets are asked for by name."""
    parts = (f"secret({part.name!r})" if isinstance(part, Hole) else _literal(part) for part in text)
    return " + ".join(parts) or "''"
