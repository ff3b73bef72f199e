"""Whether a text may call a tool, whoever reads it: what is not one clean message each may read otherwise.

A reader may take the first of two members of a name or the last, names in any case, what stands behind a message or
within a batch within a batch. So a text with both words in it counts as harmless only if it is read in one way.
"""

import json
import re
from typing import Any, Final

CALL: Final = "tools/call"
_ESCAPE: Final = re.compile(rb"\\+u00([0-9a-fA-F]{2})")
_NOT_SEEN: Final = bytes([0, 0x5C])
_LINE_END: Final = re.compile(rb"\r(?!\n)")


class _TwiceError(ValueError):
    """A member is there twice."""


def calls_in(data: bytes) -> list[dict[str, Any]] | None:
    """The tool calls in a text, as parsed; None if it may hold one, but is not one clean message or a batch of them."""
    if not _may_call(data):
        return []
    if _LINE_END.search(data.strip()):  # some readers of lines take what stands between two for a message
        return None
    try:
        body = json.loads(data.decode(), object_pairs_hook=_members)
    except (ValueError, RecursionError):
        return None
    calls = []
    for message in body if isinstance(body, list) else [body]:
        if not isinstance(message, dict) or not message:
            return None
        method = message.get("method")
        if method is None and not _is_answer(message):
            return None
        if method is not None and not isinstance(method, str):
            return None
        if method == CALL:
            calls.append(message)
        elif method is not None and _may_call(method.encode(errors="surrogatepass")):
            return None
    return calls


def _may_call(data: bytes) -> bool:
    """Say whether there are both words in a text, however it is spelt."""
    plain = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), data).translate(None, _NOT_SEEN).lower()
    return b"tools" in plain and b"call" in plain


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object of which no two have a name that some reader takes for the same."""
    found = dict(pairs)
    if len({name.casefold() for name in found}) < len(pairs) and _is_protocol(found):
        raise _TwiceError
    return found


def _is_answer(message: dict[str, Any]) -> bool:
    return ("result" in message or "error" in message) and "method" not in {name.casefold() for name in message}


def _is_protocol(found: dict[str, Any]) -> bool:
    names = {name.casefold() for name in found}
    return not names.isdisjoint(("method", "params", "id", "jsonrpc", "name", "arguments"))
