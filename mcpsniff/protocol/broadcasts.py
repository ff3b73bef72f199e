"""The same message on two event streams of one session, which servers must not send (Streamable HTTP).

Two equal messages need not be one sent twice: a list may change twice. So only what comes on another stream within a
moment counts, which is how a broadcast looks.
"""

from collections import OrderedDict
from typing import Final

from mcpsniff.protocol.http import Stream
from mcpsniff.protocol.message import Fact, Message

WINDOW_US: Final = 1_000_000
"""How far apart the two may be."""
MOST: Final = 100
"""Messages of one session that are remembered."""


class Broadcasts:
    """The latest requests and notifications of a server on its event streams."""

    def __init__(self) -> None:
        self._latest: OrderedDict[int, tuple[int, int, int]] = OrderedDict()
        """By a hash of the text: the stream, the message and its time."""

    def see(self, message: Message, stream: Stream) -> Fact | None:
        """A message has come on ``stream``; the fact, if it has just come on another one."""
        key = hash(message.raw)
        earlier = self._latest.pop(key, None)
        self._latest[key] = (stream.origin, message.n, message.t)
        if len(self._latest) > MOST:
            self._latest.popitem(last=False)
        if earlier is None or earlier[0] == stream.origin or message.t - earlier[2] > WINDOW_US:
            return None
        return Fact("on-two-streams", earlier[1], earlier[2])
