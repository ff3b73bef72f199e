"""Checks of how clients show their tokens to an MCP server."""

import binascii
from base64 import urlsafe_b64decode
from typing import Final

import orjson

from mcpsniff.checks import CLIENT, ERROR, HTTP, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import is_of_mcp, is_served, request_line
from mcpsniff.checks.words import quoted
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.oauth_urls import asked_address, covers, is_url, real_address
from mcpsniff.protocol.origins import split
from mcpsniff.protocol.revisions import R_2025_03_26, R_2025_06_18

TOKENS = "basic/authorization#access-token-usage"
LONGEST_TOKEN: Final = 16_384


@check(
    "MCP541",
    "auth-partial",
    on=Http,
    when=("token-missing",),
    severity=WARNING,
    group=HTTP,
    since=R_2025_03_26,
    spec=TOKENS,
    blame=CLIENT,
    once=True,
)
def auth_partial(event: Http, _: Conversation) -> Verdict:
    """A request of a session has no token, although earlier ones of it had.

    Authorization has to be in every HTTP request from client to server, also in those of one session: the GET for a
    stream and the DELETE at the end, too. A session id is no proof of who asks, and a server that checks each request
    refuses this one. Told once per conversation.

    Fix: Add the Authorization header to every request; a custom transport often forgets it in GET and DELETE.
    """
    return f"{request_line(event.exchange)} has no Authorization header, as earlier requests of this session had"


@check(
    "MCP542",
    "auth-query",
    on=Http,
    severity=ERROR,
    group=HTTP,
    spec=TOKENS,
    blame=CLIENT,
    once=True,
)
def auth_query(event: Http, _: Conversation) -> Verdict:
    """A token stands in the address of a request.

    Addresses end up in logs, histories and the Referer header, so access tokens must not be in the query; servers read
    them from the Authorization header. Told once per conversation.

    Fix: Send ``Authorization: Bearer …`` instead of ``?access_token=…``.
    """
    http = event.exchange
    query = http.target.partition("?")[2]
    if "access_token=" not in query or not is_of_mcp(http):
        return None
    names = {pair.partition("=")[0].lower() for pair in query.partition("#")[0].split("&")}
    return f"{request_line(http)} has access_token in its query" if "access_token" in names else None


@check(
    "MCP543",
    "auth-audience",
    on=Http,
    severity=WARNING,
    group=HTTP,
    since=R_2025_06_18,
    spec="basic/authorization#token-audience-binding-and-validation",
    blame=SERVER,
    once=True,
)
def auth_audience(event: Http, _: Conversation) -> Verdict:
    """A token is made out to another server, by the addresses in its claim ``aud``.

    A server must accept only tokens that were issued for it: one that takes others lets whoever runs another server use
    the tokens that were given to that. Only tokens that can be read (JWT) and were recorded (``--keep-secrets``) are
    judged, and only by audiences that are addresses. Told once per conversation.

    Fix: Let the client send ``resource``, the authorization server put it into ``aud``, and the server compare it.
    """
    http = event.exchange
    scheme, _space, token = (http.asks("authorization") or "").strip().partition(" ")
    if scheme.lower() != "bearer" or token.count(".") != 2 or not is_of_mcp(http):
        return None
    audiences = [audience for audience in audiences_of(token.strip()) if is_url(audience)]
    own = [address for address in (asked_address(http), real_address(http), _resource(http.auth)) if address]
    if not audiences or not own or any(covers(audience, address) for audience in audiences for address in own):
        return None
    origins = {split(address)[0] for address in own}
    if any(split(audience)[0] in origins for audience in audiences):
        return None  # another path of this server: how it names itself is its own affair
    said = f"the token is for {quoted(audiences[0])}, and was sent to {quoted(own[0])}"
    if is_served(http):
        return f"{said}, which accepted it"
    return Hit(f"{said}, which refused it", blame=CLIENT) if http.status == 401 else None


def _resource(step: object) -> str:
    known = getattr(step, "resource", "")
    return known if isinstance(known, str) else ""


def audiences_of(token: str) -> list[str]:
    """The audiences of a JWT (RFC 7519 section 4.1.3); none where it cannot be read."""
    if len(token) > LONGEST_TOKEN:
        return []
    body = token.split(".")[1]
    try:
        claims = orjson.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, binascii.Error):
        return []
    audience = claims.get("aud") if isinstance(claims, dict) else None
    return [one for one in (audience if isinstance(audience, list) else [audience]) if isinstance(one, str)]
