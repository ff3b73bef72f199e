"""Find the one request of a capture that is meant by a number of its transcript."""

from typing import NamedTuple

from mcpsniff.errors import UsageError
from mcpsniff.protocol.http import HttpExchange
from mcpsniff.protocol.message import NOTIFICATION, REQUEST, Message
from mcpsniff.replay.script import Scene, Script, Talk, Web
from mcpsniff.transcript.at.found import Found, find_event
from mcpsniff.transcript.session import Source


class Picked(NamedTuple):
    """What is to be sent again: a message with its scene, or an HTTP exchange that carried no message."""

    talk: Talk | None
    scene: Scene | None
    message: Message | None
    http: HttpExchange | None
    web: Web | None = None
    """Of an HTTP exchange without a message: all of it."""


def pick(source: Source, script: Script, number: int) -> Picked:
    """The request of the client that has this number, or to whose exchange the event with this number belongs.

    A notification of the client is what it is; a number of an HTTP exchange without a message gives that. ``source`` is
    read twice. Raises UsageError where there is no such number, or it is nothing that the client could send;
    CaptureError.
    """
    found = find_event(source, number)
    wanted = _wanted(found)
    for talk in script.talks:
        for scene in talk.scenes:
            if scene.cue is not None and scene.cue.n == wanted:
                return Picked(talk, scene, scene.cue, scene.cue.http)
        for message in talk.messages:
            if message.n == wanted and message.kind == NOTIFICATION and message.direction == "c2s":
                return Picked(talk, None, message, message.http)
    if found.http is not None and found.http.request is not None and found.message is None:
        web = next((web for web in script.webs if web.number == found.http.number), None)
        return Picked(None, None, None, found.http if web is None else web.http, web)
    raise UsageError(f"#{number} is no request of the client, and does not belong to one: {_what(found)}")


def _wanted(found: Found) -> int:
    """The number of the message that is meant."""
    message = found.message
    if message is not None and message.direction == "c2s" and message.kind in (REQUEST, NOTIFICATION):
        return message.n
    if found.exchange is not None and found.exchange.direction == "c2s":
        return found.exchange.request
    return 0


def _what(found: Found) -> str:
    message = found.message
    if found.exchange is not None and found.exchange.direction == "s2c":
        return f"it belongs to {found.exchange.method}, which the server asked"
    if message is not None:
        whose = "client" if message.direction == "c2s" else "server"
        return f"it is {'an' if message.kind[0] in 'aei' else 'a'} {message.kind} of the {whose}"
    return f"it is a {type(found.event).__name__.lower()}"
