"""Streamable HTTP for servers on either version of the MCP Python SDK, with streams that a client can resume."""

from typing import Any

import uvicorn
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from starlette.applications import Starlette

RETRY_MS = 100


class Events(EventStore):
    """What each stream of a session has carried, in memory, numbered over all of its streams."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.kept.append((stream_id, message))
        return str(len(self.kept))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if not last_event_id.isdecimal() or not 1 <= int(last_event_id) <= len(self.kept):
            return None
        stream = self.kept[int(last_event_id) - 1][0]
        for number, (where, message) in enumerate(self.kept[int(last_event_id) :], int(last_event_id) + 1):
            if where == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def a_store_each(manager: Any) -> None:
    """Give every session a store of its own: the SDKs name streams by request ids, which sessions have in common."""

    class Manager(type(manager)):
        event_store = property(lambda self: Events(), lambda self, value: None)

    manager.__class__ = Manager
    manager.retry_interval = RETRY_MS


def serve(app: Starlette, port: int) -> None:
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=1)
