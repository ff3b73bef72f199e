"""What is in no record of a body: interim responses and trailers. A capture says that they were there."""

from collections.abc import Iterable, Sequence
from typing import Final

from mitmproxy.http import HTTPFlow, Response

from mcpsniff.capture.labels import shown

_INTERIM: Final = "mcpsniff_interim"
"""The attribute of mitmproxy's response that tells which interim ones came before, and whether they were passed on."""
NAMED: Final = 8
"""Names that are told."""


def add_interim(response: Response, statuses: Sequence[int], *, passed: bool) -> None:
    """Note with a response that others came before it."""
    if statuses:
        vars(response)[_INTERIM] = (*statuses,), passed


def before_response(flow: HTTPFlow) -> str:
    """Return what is to be said of interim responses (RFC 9110 section 15.2), or nothing."""
    statuses, passed = vars(flow.response).get(_INTERIM, ((), False))
    if not statuses:
        return ""
    whither = "passed on to the client" if passed else "not passed on"
    return f"before this response came {_named(map(str, statuses))}, not recorded and {whither}"


def after_body(flow: HTTPFlow, *, is_request: bool) -> str:
    """Return what is to be said of trailers (RFC 9110 section 6.5), or nothing."""
    message = flow.request if is_request else flow.response
    trailers = None if message is None else message.trailers
    if not trailers:
        return ""
    receiver = flow.server_conn if is_request else flow.client_conn
    whither = "passed on" if receiver.alpn == b"h2" else "not passed on"
    return f"after this body came trailers, not recorded and {whither}: {_named(trailers.keys())}"


def _named(names: Iterable[str]) -> str:
    each = list(names)
    more = f" and {len(each) - NAMED} more" if len(each) > NAMED else ""
    return shown(", ".join(each[:NAMED])) + more
