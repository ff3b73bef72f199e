"""A connection whose upstream cannot be reached: the request is read, answered by us, and the client let go.

It is read to its end first. A client that still sends does not listen, and a connection that is closed with unread
bytes in it is reset, which would take the answer away again.
"""

import select
import socket

from mcpsniff.proxy.answers import TLS, as_data, no_http
from mcpsniff.proxy.ends import PATIENCE, shut
from mcpsniff.wire.http1 import Http1Splitter
from mcpsniff.wire.http1_parts import End, Head, Undecoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from mcpsniff.proxy.answers import Answer
    from mcpsniff.proxy.listener import Listener
    from mcpsniff.proxy.recorder import Recorder

STALLED: "Final" = 10.0
"""Seconds without a byte, after which a request that has begun is answered as it is."""
ANSWERED: "Final" = "mcpsniff answered in the server's place"
_READ: "Final" = 1 << 16


def inject(recorder: "Recorder", channel: int, offset: int, answer: bytes) -> None:
    """Record an answer of ours, before it is given: all of it is inserted at ``offset`` of ``channel``."""
    recorder.mark("rewrite", channel, {"start": offset, "length": 0, "data": as_data(answer), "by": "mcpsniff"})


def answer_alone(listener: "Listener", client: socket.socket, channel: int, answer: "Answer") -> None:
    """Read a request from ``client``, record it as ``channel``, give ``answer``, and close. Nothing is raised."""
    recorder = listener.recorder
    try:
        try:
            how, head, odd = _read_request(recorder, client, channel)
        except OSError:
            how, head, odd = {"how": "reset"}, None, ""
        else:
            if head is not None or "error" in how:
                door = listener.door(client)
                refusal = door.refusal(head) if door is not None and head is not None else None
                content = (refusal or (answer.besides(odd) if odd else answer)).to(head)
                inject(recorder, channel + 1, 0, content)
                how = _tell(client, content, how)
        recorder.mark("close", channel, how)
        recorder.mark("close", channel + 1, {"how": "eof"})
    finally:
        client.close()


def _read_request(
    recorder: "Recorder", client: socket.socket, channel: int
) -> "tuple[dict[str, str], Head | None, str]":
    """Read one request. Return how its stream has ended so far, its head if that came, and what it is if it is none.

    Raises OSError.
    """
    answered = {"how": "aborted", "error": ANSWERED}
    splitter = Http1Splitter(channel, "c2s")
    head: Head | None = None
    poll = select.poll()
    poll.register(client, select.POLLIN)
    wait: float | None = None
    beginning = b""
    while poll.poll(wait):
        data = client.recv(_READ)
        if not data:
            return {"how": "eof"}, head, ""
        wait = STALLED * 1000
        recorder.settle(recorder.note(channel, data), bulk=False)
        beginning = beginning or data[: len(TLS)]
        for part in splitter.feed(recorder.clock(), data):
            if isinstance(part, Head):
                head = part
                if part.get("expect"):  # it waits for a word before it goes on
                    return answered, head, ""
            elif isinstance(part, End | Undecoded):
                return answered, head, "" if head is not None else no_http(beginning)
        if head is None and splitter.is_lost:  # whoever speaks otherwise waits for an answer, too
            return answered, None, no_http(beginning)
    return answered, head, ""


def _tell(client: socket.socket, content: bytes, how: "dict[str, str]") -> "dict[str, str]":
    """Give the answer, and take what the client still sends; return how its stream has ended."""
    try:
        client.sendall(content)
        shut(client, socket.SHUT_WR)
        poll = select.poll()
        poll.register(client, select.POLLIN)
        while how["how"] != "eof" and poll.poll(PATIENCE * 1000):
            if not client.recv(_READ):
                return {"how": "eof"}
    except OSError:
        return {"how": "reset"}
    return how
