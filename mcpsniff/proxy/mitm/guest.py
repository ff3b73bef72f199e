"""A tap in a mitmproxy that belongs to its user: other addons, its pages and its filters go on working.

So only event streams are made to stream, since nothing may wait for their end, and what streams anyway. Any other body
is noted when it is whole, which is before mitmproxy sends it on.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow, Message

from mcpsniff.protocol.http import EVENT_STREAM, media_type
from mcpsniff.proxy.mitm.select import Select
from mcpsniff.proxy.mitm.tap import Tap

type Streamer = Callable[[bytes], Iterable[bytes] | bytes]


class Guest:
    """Notes with ``tap`` what passes, and lets ``select`` learn from it: an addon whose hooks do not raise."""

    def __init__(self, tap: Tap, select: Select) -> None:
        self._tap = tap
        self._select = select
        self._whole: dict[tuple[str, bool], Streamer] = {}
        """What is to be given each body that does not stream, by the flow's id and whether it is the request's."""
        self._answered: set[str] = set()

    def requestheaders(self, flow: HTTPFlow) -> None:
        """See mitmproxy; a flow that was loaded from a file is no traffic."""
        if flow.live:
            before = flow.request.stream
            self._tap.requestheaders(flow)
            self._share(flow, flow.request, before)

    def request(self, flow: HTTPFlow) -> None:
        """See mitmproxy."""
        self._note(flow, flow.request)
        self._tap.request(flow)

    def responseheaders(self, flow: HTTPFlow) -> None:
        """See mitmproxy."""
        if flow.response is None or not flow.live:
            return
        self._answered.add(flow.id)
        before = flow.response.stream
        self._tap.responseheaders(flow)
        with suppress(Exception):  # it only learns
            self._select.responseheaders(flow)
        self._share(flow, flow.response, before)

    def response(self, flow: HTTPFlow) -> None:
        """See mitmproxy; a response that an addon has made has no other hook."""
        if flow.id not in self._answered:
            self.responseheaders(flow)
        if flow.response is not None:
            self._note(flow, flow.response)
        self._tap.response(flow)
        self._forget(flow)

    def error(self, flow: HTTPFlow) -> None:
        """See mitmproxy."""
        self._tap.error(flow)
        self._forget(flow)

    def client_disconnected(self, client: Client) -> None:
        """See mitmproxy."""
        self._tap.client_disconnected(client)

    def _share(self, flow: HTTPFlow, message: Message, before: Any) -> None:
        """Let a body stream into the tap if it streams at all, else be given to it when it is whole."""
        tapped = message.stream
        if not callable(tapped) or tapped is before:
            message.stream = before
        elif callable(before):
            message.stream = _both(tapped, before)
        elif not before and not _is_stream(flow, message):
            message.stream = before
            self._whole[flow.id, message is flow.request] = tapped

    def _note(self, flow: HTTPFlow, message: Message) -> None:
        """Give the tap a body that did not stream."""
        is_request = message is flow.request
        noted = self._whole.pop((flow.id, is_request), None)
        if noted is None:
            return
        with suppress(Exception):
            if message.raw_content is None:
                self._tap.missed(flow, "another addon let it stream", is_request=is_request)
            elif message.raw_content:
                noted(message.raw_content)
            noted(b"")

    def _forget(self, flow: HTTPFlow) -> None:
        self._answered.discard(flow.id)
        for is_request in (True, False):
            self._whole.pop((flow.id, is_request), None)


def _is_stream(flow: HTTPFlow, message: Message) -> bool:
    return message is flow.response and media_type(message.headers.get("content-type", "")) == EVENT_STREAM


def _both(tapped: Streamer, other: Streamer) -> Streamer:
    """Note what arrives, then let the other change it."""

    def noted(data: bytes) -> Iterable[bytes] | bytes:
        tapped(data)
        return other(data)

    return noted
