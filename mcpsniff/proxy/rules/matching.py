"""The filter language of `show`, judged on messages that are held.

A message is judged by itself, as with ``show --alone``, on what arrived: method, tool, prompt and uri of an answer, a
progress notification or a cancel are those of the request that it belongs to, and latency belongs to the answer. What
only the whole capture tells (what becomes of a request, findings, numbers, what HTTP carried it) is refused when the
expression is compiled, since a rule that waits for it would wait for ever.
"""

from collections.abc import Callable, Iterator
from threading import local
from typing import Final

from mcpsniff.protocol.jsonrpc import ENVELOPE_FLAWS
from mcpsniff.protocol.message import BATCH, KINDS, Message
from mcpsniff.protocol.meta import META_FLAWS
from mcpsniff.protocol.reading import TEXT_FLAWS
from mcpsniff.transcript.filter import Filter, FilterError, compile_filter
from mcpsniff.transcript.filter.lexer import TEXT, Token, Value
from mcpsniff.transcript.filter.parser import Leaf, Tree, parse
from mcpsniff.transcript.filter.terms import EVENT_KINDS, FIELDS
from mcpsniff.transcript.filter.values import pattern
from mcpsniff.wire.frames import FRAME_FLAWS

type Matcher = Callable[[Message], bool]

KNOWN: Final = frozenset(
    {"method", "tool", "prompt", "uri", "dir", "kind", "id", "has", "flaw", "size", "latency", TEXT}
)
"""The fields that a held message answers."""

_FINDING: Final = "findings are made later, from the capture"
_CARRIED: Final = "a rule sees messages, not what HTTP carried them"
_NUMBER: Final = "numbers are given when the capture is read"
_WHY_NOT: Final = {
    "state": "what becomes of a request is not known while a message is held",
    "code": _FINDING,
    "severity": _FINDING,
    "blame": _FINDING,
    "t": "moments are those of the capture",
    "n": _NUMBER,
    "conversation": _NUMBER,
    "by": "what mcpsniff has changed is told by the capture",
    **dict.fromkeys(("status", "http", "server", "session", "stream", "auth"), _CARRIED),
}
_INSTEAD: Final = {"state:answered": "kind:response", "state:errored": "kind:error", "has:finding": "has:error"}


def matcher(expression: str) -> Matcher:
    """A test of messages, safe to be called by many threads at once.

    Raises FilterError (a UsageError, which points at the place) for what is no expression, and for terms that cannot
    be judged while a message is held.
    """
    fields = fields_of(expression)
    if TEXT not in fields:
        return _holds(compile_filter(expression, alone=True))
    return _PerThread(expression)


def fields_of(expression: str) -> frozenset[str]:
    """The fields that an expression asks about. Raises FilterError as `matcher` does."""
    tokens = list(_tokens(parse(expression)))
    for token in tokens:
        _check(token, expression)
    compile_filter(expression, alone=True)
    return frozenset(token.field.lower() for token in tokens)


def quoted(text: str) -> str:
    """``text`` as a value of the filter language that means just these characters."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'


def _holds(chosen: Filter) -> Matcher:
    def holds(message: Message) -> bool:
        return bool(chosen.verdict(chosen.mask(message)))

    return holds


class _PerThread:
    """A filter looks for texts in a place of its own, which two threads cannot share."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._local = local()

    def __call__(self, message: Message) -> bool:
        holds: Matcher | None = getattr(self._local, "holds", None)
        if holds is None:
            holds = self._local.holds = _holds(compile_filter(self._expression, alone=True))
        return holds(message)


def _tokens(tree: Tree) -> Iterator[Token]:
    if isinstance(tree, Leaf):
        yield tree.token
    else:
        for part in tree.parts:
            yield from _tokens(part)


def _check(token: Token, expression: str) -> None:
    """Raise FilterError if a term cannot be judged on a held message; what is no term at all is left to the filter."""
    field, value = token.field.lower(), token.value
    if field not in FIELDS or value is None:
        return
    term = f"{field}:{value.text.lower()}"
    instead = _INSTEAD.get(term, "")
    if field not in KNOWN:
        why = _WHY_NOT.get(field, "that is not known while a message is held")
        raise FilterError(f"{field}: cannot be asked here: {why}", expression, token.at, instead)
    if field == "has" and value.text.lower() not in ("error", "errors"):
        raise FilterError(f"{term[:40]} cannot be asked here: {_FINDING}", expression, token.at, instead)
    if field == "kind" and value.text.lower() in set(EVENT_KINDS) - set(KINDS):
        raise FilterError(f"{term[:40]} is no message, and only messages are held", expression, token.at)
    if field == "kind" and value.text.lower() == BATCH:
        raise FilterError("of a batch each element is held, and judged, by itself", expression, token.at)
    if field == "flaw":
        _check_flaw(value, token, expression)


def _check_flaw(value: Value, token: Token, expression: str) -> None:
    match = pattern(value)
    if any(map(match, _FLAWS_AT_HAND)) or not any(map(match, _all_flaws())):
        return
    raise FilterError(f"the flaw {value.text[:40]} is found later, from the capture", expression, token.at)


_FLAWS_AT_HAND: Final = (*FRAME_FLAWS, *TEXT_FLAWS, *ENVELOPE_FLAWS, *META_FLAWS)


def _all_flaws() -> tuple[str, ...]:
    from mcpsniff.transcript.filter.terms import FLAWS

    return FLAWS
