"""Checks of where requests come from and where answers lead: Origin, Host, redirects."""

from mcpsniff.checks import HTTP, MCPSNIFF, NOTE, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import (
    STREAMABLE,
    host_of,
    is_address,
    is_loopback,
    is_of_mcp,
    is_same_place,
    is_served,
    origin_named,
    request_line,
)
from mcpsniff.checks.words import plain, quoted
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.http import Http

MISDIRECTED = 421
FORBIDDEN = 403


@check(
    "MCP537",
    "http-origin",
    on=Http,
    severity=WARNING,
    group=HTTP,
    spec=STREAMABLE,
    blame=SERVER,
    once=True,
)
def http_origin(event: Http, _: Conversation) -> Verdict:
    """A server on this computer serves a request that comes from a page of another site (Origin).

    Any page in a browser can send requests to local servers. They have to look at Origin and answer 403 if it is none
    they expect (from 2025-11-25 on exactly this status), or any site can use their tools. A server that has allowed
    this very site does so on purpose. Told once per conversation.

    Fix: Allow only the origins that are to use the server; the SDKs have an option for it (DNS rebinding protection).
    """
    http = event.exchange
    origin = http.asks("origin")
    if origin is None or not origin.lower().startswith(("http://", "https://")):
        return None
    if not is_served(http) or not is_of_mcp(http) or http.method not in ("POST", "GET", "DELETE"):
        return None
    host, _port = host_of(origin)
    is_local = is_loopback(host_of(http.authority)[0])
    if not host or is_loopback(host) or not is_local or host == host_of(http.asks("host") or "")[0]:
        return None
    return f"{request_line(http)} from a page of {quoted(origin, 40)} was served with {http.status} instead of 403"


@check(
    "MCP538",
    "http-redirect",
    on=Http,
    severity=WARNING,
    group=HTTP,
    spec="rfc9110#section-15.4",
    blame=SERVER,
)
def http_redirect(event: Http, _: Conversation) -> Verdict:
    """A redirect leads to another origin than the one that was asked, past mcpsniff.

    The SDK clients follow only redirects to the same scheme, host and port; clients that follow others take the
    conversation out of this capture, and their credentials to another place. It comes from servers that build
    addresses from their own name, often only to add a slash.

    Fix: Redirect to a path (``Location: /mcp/``), or use the address that the redirect names from the start.
    """
    http = event.exchange
    location = http.says("location")
    if location is None or http.status is None or not 300 <= http.status < 400 or http.by is not None:
        return None
    own_scheme = "https" if http.authority.startswith("https:") else "http"
    named = origin_named(location, own_scheme)
    if named is None or named[0] not in ("http", "https") or not is_of_mcp(http):
        return None
    scheme, authority = named
    place = host_of(f"{scheme}://{authority}")
    if scheme == own_scheme and is_same_place(place, host_of(http.asks("host") or "")):
        return None
    where = plain(f"{scheme}://{place[0]}" + (f":{place[1]}" if place[1] is not None else ""), 60)
    return f"{http.status} redirects {request_line(http)} to {where}, past mcpsniff"


@check(
    "MCP553",
    "http-host-refused",
    on=Http,
    severity=WARNING,
    group=HTTP,
    spec="rfc9110#section-15.5.20",
    blame=MCPSNIFF,
    once=True,
)
def http_host_refused(event: Http, _: Conversation) -> Verdict:
    """The server refuses the name under which it was asked (421), or may have done so (403 without an Origin).

    A request that comes through mcpsniff has the address of mcpsniff in its Host header if the server runs on this
    computer. Servers that compare Host with a list, ports included, refuse it. Told once, and only for an address or
    a name of this computer: another name is what the server guards against. If it is the server's own address that was
    sent and refused, mcpsniff is not the cause.

    Fix: Start mcpsniff with ``--host-header upstream``, or add its address to the hosts that the server allows.
    """
    http = event.exchange
    if http.status not in (MISDIRECTED, FORBIDDEN) or http.by is not None or not is_of_mcp(http):
        return None
    host = http.asks("host")
    if host is None or not is_address(host_of(host)[0]):
        return None  # a name that leads here from outside is refused for a reason
    shown = quoted(host, 60)
    is_its_own = is_same_place(host_of(host), host_of(http.authority))
    if http.status == MISDIRECTED and is_its_own:
        return Hit(f"the server refused its own address {shown} as Host", blame=SERVER)
    if http.status == MISDIRECTED:
        return f"the server refused the Host {shown}; --host-header upstream sends its own name"
    if is_its_own:
        return None
    if http.asks("origin") is not None or http.says("www-authenticate") is not None:
        return None
    return Hit(
        f"403 may mean that the server refuses the Host {shown}; --host-header upstream sends its own name", NOTE
    )
