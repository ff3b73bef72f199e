"""Servers that expect TLS, and are spoken to in plain HTTP through a forward proxy. An addon of mitmproxy."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from mitmproxy.http import HTTPFlow

from mcpsniff.proxy.address import Upstream
from mcpsniff.proxy.mitm.words import expects_tls, sent_alert
from mcpsniff.wire.tls import refuses_plain

BAD_REQUEST: Final = 400


class Unsecured:
    """Gives ``trouble`` a sentence about each server that says, by an alert or in a 400, that it expects TLS.

    To come after the tap, whose callback it calls.
    """

    def __init__(self, trouble: Callable[[str], object]) -> None:
        self._trouble = trouble

    def error(self, flow: HTTPFlow) -> None:
        """An exchange has failed."""
        if sent_alert(flow):
            self._tell(flow)

    def responseheaders(self, flow: HTTPFlow) -> None:
        """The head of a response is there: look at the first piece of the body of a 400."""
        response = flow.response
        if response is None or response.status_code != BAD_REQUEST or flow.server_conn.tls or not response.stream:
            return
        passed_on, kind = response.stream, response.headers.get("content-type", "")
        is_first = True

        def looked_at(data: bytes) -> bytes:
            nonlocal is_first
            if is_first and data:
                is_first = False
                with suppress(Exception):  # which would cost the piece
                    if refuses_plain(data, kind):
                        self._tell(flow)
            passed = passed_on(data) if callable(passed_on) else data
            return passed if isinstance(passed, bytes) else data

        response.stream = looked_at

    def _tell(self, flow: HTTPFlow) -> None:
        request = flow.request
        upstream = Upstream(None, request.host, request.port, "", "http")
        self._trouble(expects_tls(upstream, request.path.partition("?")[0]).error)
