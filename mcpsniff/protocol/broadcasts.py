"""The same message on two event streams of one session, which servers must not send (Streamable HTTP).

Two equal messages need not be one sent twice: a list may change twice, and two calls that run into the same line of a
tool say the same, each on its own stream. So notifications count only within a moment, and if a stream of the server's
own (GET) is one of the two, which is how a broadcast looks. A request is known by its id, wherever it comes.
"""

from collections import OrderedDict
from typing import Final

from mcpsniff.protocol.http import POST, Stream
from mcpsniff.protocol.message import NOTIFICATION, Fact, Message

WINDOW_US: Final = 1_000_000
"""How far apart the two may be."""
MOST: Final = 100
"""Messages of one session that are remembered."""


class Broadcasts:
    """The latest requests and notifications of a server on its event streams."""

    def __init__(self) -> None:
        self._latest: OrderedDict[int, tuple[Stream, int, int]] = OrderedDict()
        """By a hash of the text: the stream, the message and its time."""

    def see(self, message: Message, stream: Stream) -> Fact | None:
        """A message has come on ``stream``; the fact, if it has just come on another one."""
        key = hash(message.raw)
        earlier = self._latest.pop(key, None)
        self._latest[key] = (stream, message.n, message.t)
        if len(self._latest) > MOST:
            self._latest.popitem(last=False)
        if earlier is None or message.t - earlier[2] > WINDOW_US or not _is_twice(message, earlier[0], stream):
            return None
        return Fact("on-two-streams", earlier[1], earlier[2])


def _is_twice(message: Message, one: Stream, other: Stream) -> bool:
    """True if a message that comes on both streams is one that was sent twice."""
    if one.origin == other.origin:
        return False
    return message.kind != NOTIFICATION or not one.kind == other.kind == POST
