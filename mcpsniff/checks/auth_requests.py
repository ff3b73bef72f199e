"""Checks of what clients send to an authorization server, and over which connections it goes."""

from typing import Final

from mcpsniff.checks import CLIENT, ERROR, HTTP, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import host_of, is_loopback
from mcpsniff.checks.words import plain, quoted
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.oauth import (
    AUTHORIZATION,
    DEVICE,
    PUSHED,
    REFRESH,
    REGISTRATION,
    RESOURCE_METADATA,
    SERVER_METADATA,
    TOKEN,
    Step,
    fact_of,
)
from mcpsniff.protocol.oauth_reading import ENDPOINTS, Values, is_masked, one
from mcpsniff.protocol.origins import split
from mcpsniff.protocol.revisions import R_2025_03_26, R_2025_06_18

_NOUNS: Final = {
    AUTHORIZATION: "the authorization request",
    PUSHED: "the authorization request",
    DEVICE: "the request for a device code",
    TOKEN: "the token request",
    REFRESH: "the token request",
}
_ADDRESSES: Final = (*ENDPOINTS, "authorization_servers")
_S256: Final = "S256"


@check(
    "MCP544",
    "auth-resource",
    on=Http,
    when=(fact_of(AUTHORIZATION), fact_of(PUSHED), fact_of(TOKEN), fact_of(REFRESH)),
    severity=ERROR,
    group=HTTP,
    since=R_2025_06_18,
    spec="basic/authorization#resource-parameter-implementation",
    blame=CLIENT,
)
def auth_resource(event: Http, _: Conversation) -> Verdict:
    """A request to the authorization server does not say for which MCP server the token is to be.

    ``resource`` (RFC 8707) binds the token to one server, so that no other can use it. It has to be in authorization
    and token requests, as an absolute URL without fragment. An authorization server that goes by it issues a token
    without an audience where it is missing, and the MCP server must refuse that. It is a warning where the server has
    no metadata of a resource, since that may be one of 2025-03-26, which knows of no ``resource``.

    Fix: Send ``resource`` with the URL of the MCP server in both requests; the SDK clients do so by themselves.
    """
    step = event.exchange.auth
    if step is None or not _is_readable(step):
        return None
    named = step.asked.get("resource", ())
    if not any(named):
        text = f"{_NOUNS[step.name]} to {plain(step.address, 60)} has no resource"
        has_metadata = step.authorization.has_metadata or step.authorization.has_pointer
        return text if has_metadata else Hit(text, WARNING)
    odd = next((one for one in named if not is_masked(one) and not _is_canonical(one)), None)
    if odd is not None:
        return f"the resource {quoted(odd)} is no absolute URL without fragment"
    known = step.authorization
    origins = {split(url)[0] for url in (step.resource, known.address, known.real) if url}
    if not origins or any(is_masked(one) or split(one)[0] in origins for one in named):
        return None
    expected = step.resource or known.address
    return f"{_NOUNS[step.name]} is for the resource {quoted(named[0])}, and the MCP server is {quoted(expected)}"


@check(
    "MCP547",
    "auth-pkce",
    on=Http,
    when=(fact_of(AUTHORIZATION), fact_of(PUSHED), fact_of(TOKEN)),
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    spec="rfc7636#section-4.3",
    blame=CLIENT,
)
def auth_pkce(event: Http, _: Conversation) -> Verdict:
    """A code is asked for, or used, without PKCE, or with a challenge that does not protect it.

    Whoever intercepts the code on its way through the browser could get the token with it. PKCE ties the code to the
    client that asked for it, with ``code_challenge`` and ``code_verifier``; MCP clients have to use it, with the method
    S256 where they can. Without ``code_challenge_method`` the challenge is the verifier itself.

    Fix: Send ``code_challenge`` and ``code_challenge_method=S256`` in the authorization request, and the
    ``code_verifier`` in the token request.
    """
    step = event.exchange.auth
    if step is None or not _is_readable(step):
        return None
    asked = step.asked
    if step.name == TOKEN:
        lacks = one(asked, "grant_type") == "authorization_code" and "code_verifier" not in asked
        return "the token request brings a code without code_verifier" if lacks else None
    if "code" not in (one(asked, "response_type") or "").split():
        return None
    if one(asked, "code_challenge") is None:
        return "the authorization request has no code_challenge"
    method = one(asked, "code_challenge_method")
    if method == _S256 or (method is not None and is_masked(method)):
        return None
    shown = "no code_challenge_method, which means plain" if method is None else f"method {quoted(method, 20)}"
    return f"the authorization request has a code_challenge with {shown}, and not S256"


@check(
    "MCP548",
    "auth-cleartext",
    on=Http,
    when=tuple(map(fact_of, (RESOURCE_METADATA, SERVER_METADATA, REGISTRATION, *_NOUNS))),
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    spec="basic/authorization#communication-security",
    blame=SERVER,
)
def auth_cleartext(event: Http, _: Conversation) -> Verdict:
    """Tokens or codes go over the network in plain HTTP, or would, by the addresses that are named.

    All endpoints of an authorization server have to be ``https``, and redirects lead to ``https`` or to this computer.
    Anyone on the way could read and use what plain HTTP carries. Addresses of this computer and schemes of apps are
    fine.

    Fix: Give the authorization server's addresses, and redirect URIs of web clients, as ``https``. One that says
    ``http`` behind a proxy which adds TLS has to be told its public address.
    """
    step = event.exchange.auth
    if step is None:
        return None
    hits: list[str | Hit] = [
        f"{name} is {quoted(url)}, in plain HTTP"
        for name in _ADDRESSES
        for url in ((step.said or {}) if step.name in (RESOURCE_METADATA, SERVER_METADATA) else {}).get(name, ())
        if _is_open(url)
    ]
    redirects = _redirects(step.asked)
    hits += [Hit(f"the redirect URI {quoted(url)} is plain HTTP", blame=CLIENT) for url in redirects if _is_open(url)]
    if step.name in _NOUNS and _is_open(step.real):
        hits.append(Hit(f"{_NOUNS[step.name]} went to {quoted(step.real)}, in plain HTTP", blame=CLIENT))
    return hits


def _redirects(asked: Values) -> tuple[str, ...]:
    return (*asked.get("redirect_uri", ()), *asked.get("redirect_uris", ()))


def _is_readable(step: Step) -> bool:
    """True if the request was read: not one whose body is missing, or that only names what was sent ahead."""
    asked = step.asked
    return bool(asked) and one(asked, "request_uri") is None


def _is_canonical(url: str) -> bool:
    return bool(split(url)[0]) and "#" not in url


def _is_open(url: str) -> bool:
    """True for plain HTTP to another computer."""
    return url.lower().startswith("http://") and not is_loopback(host_of(url)[0]) and not is_masked(url)
