"""Read what a live client says."""

from dataclasses import replace
from typing import Final

from mcpsniff.protocol.jsonrpc import classify
from mcpsniff.protocol.message import INVALID, Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.frames import Frame

_NO_IDS: Final = ("NaN", "Infinity", "-Infinity")


def live_messages(
    payload: bytes, reader: JsonReader, framing: str = "line", flaws: tuple[str, ...] = ()
) -> list[Message]:
    """The messages in a line or a body of the client, as `mcpsniff.protocol.jsonrpc.classify` gives them. Never raises.

    A request whose id is no JSON (NaN) is no request: what answered it under that id would be no JSON either.
    """
    messages = classify(Frame(0, "c2s", framing, (), 0, 0, payload, len(payload), flaws), reader)
    return [replace(one, kind=INVALID, id=None, key=None) if one.id in _NO_IDS else one for one in messages]
