"""What is wrong with something that an edit hook has returned; whoever writes it on the wire trusts it then."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

from mcpsniff.hooks.actions import Action, Back, Cut, Headed, HttpAnswer, Later, Paced, Raw, Text, Told
from mcpsniff.protocol.message import Message

ACTIONS: Final[tuple[type, ...]] = get_args(Action.__value__)

LATEST: Final = 1e6
"""Seconds that a message may leave later, at most: eleven days."""
SLOWEST: Final = 0.01
"""Bytes per second, at least."""
QUICKEST: Final = 1e12

_WITH_MESSAGE: Final = (Back, Cut, Headed, Later, Paced, Told)


def misfit(returned: Any) -> str:
    """Why ``returned`` cannot be used, in words that follow "has returned"; empty if it can."""
    if returned is None or type(returned) is Message:
        return ""
    if isinstance(returned, list | tuple):
        return next((f"a list with {wrong}" for one in returned if (wrong := _one(one))), "")
    return _one(returned)


def _one(one: Any) -> str:
    if isinstance(one, Message):
        return ""
    if not isinstance(one, ACTIONS):
        return f"{_kind(one)}, which is neither a message nor anything that can be done with one"
    message, why = getattr(one, "message", None), getattr(one, "why", "")
    if not isinstance(message, Message) and (message is not None or type(one) in _WITH_MESSAGE):
        return f"{type(one).__name__} whose message is {_kind(message)}"
    if not isinstance(why, str):
        return f"{type(one).__name__} whose why is {_kind(why)}"
    wrong = _WRONG.get(type(one))
    return "" if wrong is None else wrong(one)


def _cut(one: Cut) -> str:
    return "" if type(one.keep) is int and one.keep >= 0 else f"Cut that keeps {_spelt(one.keep)} bytes"


def _bytes(one: Raw | Text) -> str:
    return "" if isinstance(one.data, bytes) else f"{type(one).__name__} whose data is {_kind(one.data)}, not bytes"


def _paced(one: Paced) -> str:
    fits = _is_within(one.bytes_per_second, SLOWEST, QUICKEST)
    return "" if fits else f"Paced with {_spelt(one.bytes_per_second)} bytes per second"


def _later(one: Later) -> str:
    return "" if _is_within(one.seconds, 0, LATEST) else f"Later with {_spelt(one.seconds)} seconds"


def _is_within(value: Any, least: float, most: float) -> bool:
    """True of a plain number with which can be reckoned."""
    return type(value) in (int, float) and least <= value <= most


def _headed(one: Headed) -> str:
    fits = isinstance(one.headers, Mapping) and all(
        _is_name(name) and (value is None or _is_value(value)) for name, value in one.headers.items()
    )
    return "" if fits else "Headed whose headers are no mapping of names to texts of one line"


def _answer(one: HttpAnswer) -> str:
    if type(one.status) is not int or not 200 <= one.status <= 599:
        return f"HttpAnswer with the status {_spelt(one.status)}"
    if not isinstance(one.body, bytes):
        return f"HttpAnswer whose body is {_kind(one.body)}, not bytes"
    return wrong_headers(one.headers)


def wrong_headers(headers: Any, besides: Sequence[tuple[str, str]] = ()) -> str:
    """What is wrong with a list of pairs of name and value; empty if nothing is.

    ``besides``: pairs that are as somebody else has put them, whatever they are.
    """
    try:
        fits = not isinstance(headers, Mapping | str) and all(
            (_is_name(name) and _is_value(value)) or (name, value) in besides for name, value in headers
        )
    except (TypeError, ValueError):
        fits = False
    return "" if fits else "headers that are no pairs of a name and a text of one line"


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isascii() and bool(name) and not any(c <= " " or c in ':"' for c in name)


def _is_value(value: Any) -> bool:
    return isinstance(value, str) and not any(c in "\r\n\0" for c in value)


def _spelt(value: Any) -> str:
    """A number that does not fit, or the kind of what is none."""
    is_short = type(value) is float or (type(value) is int and abs(value) < 1 << 63)
    return repr(value) if is_short else _kind(value)


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


_WRONG: Final[dict[type, Callable[[Any], str]]] = {
    Cut: _cut,
    Raw: _bytes,
    Text: _bytes,
    Later: _later,
    Paced: _paced,
    Headed: _headed,
    HttpAnswer: _answer,
}
