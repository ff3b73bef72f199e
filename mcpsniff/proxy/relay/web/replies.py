"""Responses of HTTP that edit mode gives in the server's place."""

from typing import TYPE_CHECKING

from mcpsniff.protocol.http import EVENT_STREAM, SESSION_HEADER
from mcpsniff.proxy.relay.web.events import made
from mcpsniff.proxy.relay.web.heads import answer

if TYPE_CHECKING:
    from mcpsniff.hooks.editor import Outgoing
    from mcpsniff.proxy.relay.web.held import Errand
    from mcpsniff.proxy.relay.web.hub import Hub


def reply(errand: "Errand", said: "list[Outgoing]") -> bytes:
    """What hooks have said to the client, as the response to a request: JSON if it is one message that it accepts."""
    headers = [(name, value) for name, value in errand.head.headers if name.lower() == SESSION_HEADER]
    for out in said:
        headers += [(name, value) for name, value in out.headers.items() if value is not None]
    if len(said) == 1 and errand.accepts_json and not errand.is_batch:
        return answer(200, [("Content-Type", "application/json"), *headers], said[0].data, errand.head, errand.page)
    if errand.accepts_events and not errand.is_batch:
        body = b"".join([made(out.data, b"\n") for out in said])
        return answer(
            200,
            [("Content-Type", EVENT_STREAM), ("Cache-Control", "no-cache"), *headers],
            body,
            errand.head,
            errand.page,
        )
    body = b"[" + b",".join([out.data for out in said]) + b"]" if len(said) > 1 or errand.is_batch else said[0].data
    return answer(200, [("Content-Type", "application/json"), *headers], body, errand.head, errand.page)


def accepted(errand: "Errand") -> bytes:
    """The response to a message that needs no answer."""
    return answer(202, [], b"", errand.head, errand.page)


def tell_lost(hub: "Hub", lost: "list[Outgoing]") -> None:
    """Say of what hooks have said to the client that there is no way to it."""
    for out in lost:
        hub.editor.tell_once(f"{out.by}: a message to the client got lost, as the client has no stream for it")


def unedited(hub: "Hub", channel: int, what: str) -> None:
    """Say, and note in the capture, that something passes without a hook having seen it; nothing if it is empty."""
    if not what:
        return
    hub.editor.tell_once(f"{what} passed unedited")
    hub.listener.recorder.mark("comment", channel, {"text": f"{what} passed unedited", "by": "mcpsniff"})
