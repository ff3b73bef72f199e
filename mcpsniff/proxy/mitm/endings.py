"""Who has given an exchange up."""

from typing import Final

from mitmproxy.connection import ConnectionState
from mitmproxy.http import HTTPFlow

_RESET_STREAM: Final = "stream reset by client"
"""How mitmproxy's word for a stream of HTTP/2 that its peer gave up begins."""


def client_hung_up(flow: HTTPFlow) -> bool:
    """True if it was the client that gave an exchange up, when it has failed."""
    if not flow.client_conn.state & ConnectionState.CAN_READ:
        return True
    told = "" if flow.error is None else flow.error.msg
    return told.startswith(_RESET_STREAM) and flow.client_conn.alpn == b"h2"
