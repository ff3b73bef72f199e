"""What those who attach order, as decisions about a message.

An order is a JSON object: ``do`` says what, the rest how. Why something was done ends up in the capture.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from mcpsniff.hooks.actions import REFUSED, Back, Drop, Text, Told, answer, refuse
from mcpsniff.protocol.jsonrpc import classify
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.patch import text_of
from mcpsniff.protocol.reading import NOT_JSON, TRAILING_DATA, JsonReader
from mcpsniff.proxy.breaks.held import Decision, Held

PASSED: Final = "passed"
_NO_JSON: Final = frozenset({NOT_JSON, TRAILING_DATA})


class OrderError(ValueError):
    """An order that cannot be carried out; the text says why."""


def decision(held: Held, order: Mapping[str, Any]) -> Decision:
    """What an order decides about a message. Raises OrderError."""
    make = _MAKERS.get(str(order.get("do")))
    if make is None:
        raise OrderError("that is no order")
    return make(held, order)


def passed(held: Held, how: str = "") -> Decision:
    """It goes on as it came; ``how`` says by what, if not by hand."""
    return Decision(how or PASSED, Told(held.message, _why(held, how or "passed by hand")))


def _pass(held: Held, _order: Mapping[str, Any]) -> Decision:
    return passed(held)


def _drop(held: Held, _order: Mapping[str, Any]) -> Decision:
    return Decision("dropped", Drop(_why(held, "dropped by hand")))


def _answer(held: Held, order: Mapping[str, Any]) -> Decision:
    message, why = held.message, _why(held, "answered by hand")
    if message.kind != REQUEST:
        raise OrderError(f"only a request can be answered, and this is a {message.kind}")
    back = _with_error(message, order["error"]) if "error" in order else _with_result(message, order.get("result"))
    back.why = why
    try:
        text_of(back.message.body)
    except (TypeError, ValueError, RecursionError) as error:
        raise OrderError(f"that cannot be written as JSON ({error})") from None
    return Decision("answered", back)


def _with_result(message: Message, result: Any) -> Back:
    back = answer(message, {})
    back.message.body["result"] = result
    return back


def _with_error(message: Message, error: Any) -> Back:
    back = refuse(message, error) if isinstance(error, str) else refuse(message, "", code=REFUSED)
    if not isinstance(error, str):
        back.message.body["error"] = error
    return back


def _change(held: Held, order: Mapping[str, Any]) -> Decision:
    """The text goes on exactly as it was typed; what is not JSON only if that is meant (``anyway``)."""
    text = order.get("text")
    if not isinstance(text, str):
        raise OrderError("there is no text")
    if "\n" in text or "\r" in text:
        raise OrderError("a message is one line")
    message = held.message
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise OrderError("the text is not Unicode") from None
    if raw == message.raw:
        return passed(held)
    frame = replace(message.frame, payload=raw, size=len(raw), flaws=())
    whole = classify(frame, JsonReader())[0]
    if not _NO_JSON.isdisjoint(whole.flaws) and not order.get("anyway"):
        raise OrderError("that is not JSON")
    whole.batch, whole.conversation, whole.t, whole.link = message.batch, message.conversation, message.t, message.link
    return Decision("changed", Text(raw, whole, _why(held, "changed by hand")))


def _why(held: Held, what: str) -> str:
    return f"{what} at --break {held.expression}"


_MAKERS: Final[Mapping[str, Callable[[Held, Mapping[str, Any]], Decision]]] = {
    "pass": _pass,
    "drop": _drop,
    "answer": _answer,
    "change": _change,
}
