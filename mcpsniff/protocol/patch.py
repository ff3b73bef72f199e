"""Change a JSON text so that it says something else, with the least change of the text.

What stays equal keeps its bytes: key order, white space, escapes, 1.0 that is not 1, a name that stands there twice.
"""

import json
from typing import Any

import orjson

from mcpsniff.protocol.reading import JsonReader


def text_of(value: Any) -> bytes:
    """A value as compact JSON. Raises TypeError or ValueError where JSON has no such value."""
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, among others
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def patched(raw: bytes, value: Any) -> bytes:
    """``raw`` changed so that it says ``value``; ``raw`` itself if it does already.

    Raises TypeError or ValueError where JSON has no such value.
    """
    try:
        if orjson.dumps(value) == raw:
            return raw
    except TypeError:
        pass
    said = JsonReader().read(raw).value
    text = text_of(value)
    return raw if said is not None and text == text_of(said) else text
