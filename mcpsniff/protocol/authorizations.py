"""Which HTTP exchanges are steps of an authorization, and of which one.

A client that is refused looks for metadata of the resource, then of its authorization server, registers itself, sends
a browser there, asks for a token, and comes back with it. A step joins the authorization that has named what it uses:
its address, its client id, its state; or the one of the server at whose address it is. What nobody has named begins one
of its own, so that no step is without; a look for metadata that finds none does not, unless more comes of it. One that
led to a token which was accepted is over; what comes then begins the next one, but for tokens that are renewed or given
back.
"""

from collections import OrderedDict
from typing import Final
from urllib.parse import urljoin

from mcpsniff.protocol.http import COMPLETE, EVENT_STREAM, STREAMING, HttpExchange
from mcpsniff.protocol.oauth import (
    AUTHORIZATION,
    AUTHORIZED,
    CHALLENGE,
    DEVICE,
    METADATA,
    PUSHED,
    REDIRECT,
    REFRESH,
    REFUSED,
    REGISTRATION,
    RESOURCE_METADATA,
    REVOCATION,
    SERVER_METADATA,
    TOKEN,
    Authorization,
    Step,
    fact_of,
    note,
)
from mcpsniff.protocol.oauth_reading import (
    DOCUMENT_LIMIT,
    ISS_PROMISED,
    LONGEST,
    Values,
    form,
    is_masked,
    one,
    token_challenge,
)
from mcpsniff.protocol.oauth_urls import (
    OPENID,
    RESOURCE,
    SERVER,
    asked_address,
    is_at,
    issuer_of,
    normal,
    real_address,
)
from mcpsniff.protocol.origins import split
from mcpsniff.protocol.revisions import R_2025_06_18, REVISIONS
from mcpsniff.protocol.talk import LEGACY, SESSION

LIVE_LIMIT: Final = 100
"""Authorizations that are remembered."""
ENOUGH: Final = 4
"""What has to speak for an authorization, at least, for a step to be one of it."""
OPEN_FIRST: Final = 3
"""What speaks for one that is not over, besides: more than the connection does."""

_QUERY_HINTS: Final = ("client_id=", "state=", "code=", "error=")
_AFTER: Final = frozenset({REFRESH, REVOCATION})
"""What belongs to an authorization also when that is over."""
_PLACES: Final = {
    "authorization_endpoint": AUTHORIZATION,
    "token_endpoint": TOKEN,
    "registration_endpoint": REGISTRATION,
    "revocation_endpoint": REVOCATION,
    "pushed_authorization_request_endpoint": PUSHED,
    "device_authorization_endpoint": DEVICE,
}


class Authorizations:
    """All authorizations of a capture."""

    def __init__(self) -> None:
        self._count = self._made = 0
        self._live: OrderedDict[int, Authorization] = OrderedDict()

    def observe(self, http: HttpExchange) -> None:
        """An HTTP exchange is over, or its event stream begins: note on it which step it is, if it is one."""
        if http.by is not None or http.response is None or http.request is None or http.is_torn:
            return
        if http.state not in (COMPLETE, STREAMING) or http.method == "OPTIONS":
            return
        step = self._of_metadata(http)
        if step is None:
            step = self._of_mcp(http) if _is_of_mcp(http) else self._of_oauth(http)
        if step is not None:
            http.auth = step
            text = f"authorization {step.number}" if step.number else "no authorization so far"
            http.tell(fact_of(step.name), step.began or None, text=text)

    def lose(self) -> None:
        """Bytes are missing: what was named in them is not known, so nothing is concluded from what was."""
        self._live.clear()

    # -- the server that is to be used -----------------------------------------------------------------------------

    def _of_mcp(self, http: HttpExchange) -> Step | None:
        has_token = http.asks("authorization") is not None
        challenge = token_challenge(http.response.all("www-authenticate")) if http.response else None
        lacks_scope = http.status == 403 and challenge is not None and one(challenge, "error") == "insufficient_scope"
        if http.status == 401 or lacks_scope:
            self._note_token(http, has_token=has_token, was_served=False)
            return self._challenged(http, challenge, has_token=has_token)
        if http.is_refused:
            return None
        self._note_token(http, has_token=has_token, was_served=True)
        if not has_token or not self._live:
            return None
        found = self._at_server(http)
        if found is None or not found.is_granted:
            return None
        found.is_done = True
        return self._step(AUTHORIZED, found, http, {}, None)

    @staticmethod
    def _note_token(http: HttpExchange, *, has_token: bool, was_served: bool) -> None:
        """Whether the requests of a session have a token, which all or none of them are to have."""
        talk = http.talk
        if talk is None or talk.kind not in (SESSION, LEGACY):
            return
        if has_token:
            talk.shows_token = was_served
        elif talk.shows_token:
            http.tell("token-missing")

    def _at_server(self, http: HttpExchange) -> Authorization | None:
        """The latest authorization for this server that is not over; one on the same connection goes first."""
        server = _server_of(http)
        found = [one for one in reversed(self._live.values()) if not one.is_done and one.server == server]
        return next((one for one in found if http.connection in one.connections), found[0] if found else None)

    def _challenged(self, http: HttpExchange, challenge: Values | None, *, has_token: bool) -> Step:
        found = self._at_server(http)
        if found is None:
            origins = _origins(http)
            early = [one for one in self._live.values() if one.server is None and not one.is_done]
            found = next((one for one in reversed(early) if not origins.isdisjoint(one.origins)), None)
        opens_anew = http.opens and not has_token
        if found is None or (opens_anew and found.is_opened):
            found = self._new(self._before(http) if has_token else None)
        found.is_opened = found.is_opened or opens_anew
        found.server, found.is_challenged = _server_of(http), True
        found.address, found.real = asked_address(http), real_address(http)
        for origin in _origins(http):
            note(found.origins, origin)
        found.revision = _later(found.revision, _revision_of(http))
        pointer = one(challenge or {}, "resource_metadata")
        if pointer is not None:
            found.has_pointer = True
            found.name(normal(pointer), RESOURCE_METADATA)
        return self._step(REFUSED if has_token else CHALLENGE, found, http, {}, challenge)

    def _before(self, http: HttpExchange) -> Authorization | None:
        """The authorization for this server that is over; one of the same session goes first, then by connection."""
        server, session = _server_of(http), http.session_id
        found = [one for one in self._live.values() if one.is_done and one.server == server]
        return max(
            reversed(found), key=lambda one: (session in one.sessions, http.connection in one.connections), default=None
        )

    # -- metadata --------------------------------------------------------------------------------------------------

    def _of_metadata(self, http: HttpExchange) -> Step | None:
        """Metadata of the resource or of the authorization server, which are known by their path or were named."""
        if http.method != "GET":
            return None
        path = http.path
        if path.startswith(RESOURCE) or self._names(http, RESOURCE_METADATA):
            return self._of_resource(http)
        if path.startswith(SERVER) or OPENID in path or self._names(http, SERVER_METADATA):
            return self._of_server(http)
        return None

    def _names(self, http: HttpExchange, step: str) -> bool:
        if not self._live:
            return False
        addresses = {asked_address(http), real_address(http)}
        return any(one.urls.get(address) == step for one in self._live.values() for address in addresses)

    def _of_resource(self, http: HttpExchange) -> Step:
        found = self._join(http, RESOURCE_METADATA, {})
        for origin in () if found.server is not None else _origins(http):
            note(found.origins, origin)
        found.revision = _later(found.revision, R_2025_06_18)
        said = _said(http)
        step = self._step(RESOURCE_METADATA, found, http, {}, said)
        found.has_metadata = found.has_metadata or step.succeeded
        if step.succeeded and said is not None:
            found.resource = one(said, "resource") or ""
            for issuer in said.get("authorization_servers", ()):
                note(found.issuers, issuer)
        return step

    def _of_server(self, http: HttpExchange) -> Step:
        found = self._join(http, SERVER_METADATA, {})
        said = _said(http)
        step = self._step(SERVER_METADATA, found, http, {}, said)
        own = {found.address, found.real}
        is_at_root = split(step.address)[1] == SERVER and not _origins(http).isdisjoint(split(one)[0] for one in own)
        step.is_last_try = step.is_vain and not http.is_redirect and is_at_root and not found.has_metadata
        if step.succeeded and said is not None:
            found.issuer = one(said, "issuer") or ""
            found.promises_issuer = one(said, ISS_PROMISED) == "true"
            for name, place in _PLACES.items():
                found.name(normal(one(said, name) or ""), place)
        return step

    # -- the authorization server ----------------------------------------------------------------------------------

    def _of_oauth(self, http: HttpExchange) -> Step | None:
        query = http.target.partition("?")[2]
        asked = form(query[: 16 * LONGEST]) if any(hint in query for hint in _QUERY_HINTS) else {}
        asked = {**asked, **(http.asked_values or {})}
        name = self._name(http, asked)
        if name is None:
            return None
        found = self._join(http, name, asked)
        said = _said(http)
        if name in (AUTHORIZATION, PUSHED) and said is None:
            said = _redirected(http)
        step = self._step(name, found, http, asked, said)
        step.is_repeated = name == REDIRECT and (one(asked, "state") or "") in found.outcomes
        _learn(found, step)
        return step

    def _name(self, http: HttpExchange, asked: Values) -> str | None:
        """Which step a request is, by what it says, else by where it goes."""
        if http.method == "POST" and "grant_type" in asked:
            return REFRESH if one(asked, "grant_type") == "refresh_token" else TOKEN
        if http.method == "POST" and "client_id" in asked and "device_code" in (_said(http) or {}):
            return DEVICE
        if http.method == "POST" and "redirect_uris" in asked:
            return REGISTRATION
        if "response_type" in asked and "client_id" in asked:
            is_pushed = http.method == "POST" and http.status in (200, 201) and "request_uri" in (_said(http) or {})
            return PUSHED if is_pushed else AUTHORIZATION
        if not self._live:
            return None
        addresses = {asked_address(http), real_address(http)}
        state = one(asked, "state")
        for found in reversed(self._live.values()):
            if ("code" in asked or "error" in asked) and (state in found.states or addresses & set(found.redirects)):
                return REDIRECT
            for address in addresses:
                place = found.urls.get(address)
                if place is not None and (http.method == "POST") == (place != AUTHORIZATION):
                    return place
        return None

    # -- small parts -----------------------------------------------------------------------------------------------

    def _join(self, http: HttpExchange, name: str, asked: Values) -> Authorization:
        """The authorization that most speaks for, the latest of equal ones; a new one if nothing speaks for any."""
        best, weight = None, ENOUGH - 1
        for found in self._live.values():
            if found.is_done and name not in _AFTER:
                continue
            speaks = _weight(found, http, name, asked)
            speaks += OPEN_FIRST * (speaks > 0 and not found.is_done)
            if speaks >= max(weight, ENOUGH):
                best, weight = found, speaks
        return self._new() if best is None else best

    def _new(self, before: Authorization | None = None) -> Authorization:
        """A new one; after another for the same server, what was named in that is known here, too."""
        self._made += 1
        made = self._live[self._made] = Authorization()
        if before is not None:
            made.follow(before)
        if len(self._live) > LIVE_LIMIT:
            self._live.popitem(last=False)
        return made

    def _step(self, name: str, of: Authorization, http: HttpExchange, asked: Values, said: Values | None) -> Step:
        of.revision = _later(of.revision, http.version)
        is_unread = http.is_unread or http.answered.size > DOCUMENT_LIMIT
        succeeded = not http.is_refused and one(said or {}, "error") is None
        if name in METADATA:
            succeeded = http.status == 200 and (said is not None or is_unread)
            of.name(_elsewhere(http), name)
        step = Step(name, of, asked_address(http), real_address(http), of.revision, asked, said, succeeded)
        step.resource, step.issuer, step.is_unread = of.resource, of.issuer, is_unread
        note(of.connections, http.connection)
        for session in filter(None, (http.session_id, http.session_given)):
            note(of.sessions, session)
        if not of.number and not step.is_vain:
            self._count += 1
            of.number = self._count
        step.number, step.began = of.number, of.began
        if succeeded:
            of.steps.add(name)
        return step


def _weight(found: Authorization, http: HttpExchange, name: str, asked: Values) -> int:
    """How much speaks for a step being one of this authorization."""
    client, state, redirect = one(asked, "client_id"), one(asked, "state"), one(asked, "redirect_uri")
    addresses = {asked_address(http), real_address(http)}
    if client is not None and found.clients and client not in found.clients:
        return 0
    weight = 8 * (client is not None and (client in found.clients or client in found.earlier_clients))
    weight += 8 * (state is not None and state in found.states)
    weight += 4 * (redirect is not None and redirect in found.redirects)
    weight += 4 * any(found.urls.get(address) == name or address in found.redirects for address in addresses)
    weight += 4 * any(found.urls.get(address) == TOKEN for address in addresses if name == REFRESH)
    issuers = [issuer for issuer in map(issuer_of, addresses) if issuer]
    weight += 4 * any(is_at(known, issuer) for issuer in issuers for known in found.issuers)
    weight += 4 * any(split(address)[0] in found.origins for address in addresses)
    weight += 2 * (http.connection in found.connections)
    return weight and weight + (name not in found.steps)


def _learn(found: Authorization, step: Step) -> None:
    """What a step at the authorization server names."""
    asked, said = step.asked, step.said or {}
    client = one(asked, "client_id") or (one(said, "client_id") if step.name == REGISTRATION else None)
    if client is not None and not is_masked(client):
        note(found.clients, client)
    state, redirect = one(asked, "state"), one(asked, "redirect_uri")
    if state is not None and not is_masked(state):
        note(found.states, state)
    if redirect is not None:
        note(found.redirects, normal(redirect) or redirect)
    if step.name == AUTHORIZATION and ("code" in said or "error" in said):
        note(found.outcomes, state or "")
    found.is_granted = found.is_granted or (step.name in (TOKEN, REFRESH) and step.succeeded)


def _elsewhere(http: HttpExchange) -> str:
    """The URL to which a response sends its client on (RFC 3986 section 5); empty if it does not."""
    location = http.says("location") if http.is_redirect else None
    try:
        return "" if location is None else normal(urljoin(asked_address(http), location[:LONGEST]))
    except ValueError:
        return ""


def _is_of_mcp(http: HttpExchange) -> bool:
    """True for a request that carries a message, asks for a stream, or belongs to a conversation."""
    return http.talk is not None or http.asked.messages > 0 or EVENT_STREAM in (http.asks("accept") or "").lower()


def _server_of(http: HttpExchange) -> tuple[str, str]:
    return http.authority, http.path.rstrip("/")


def _origins(http: HttpExchange) -> set[str]:
    return {split(asked_address(http))[0], split(real_address(http))[0]} - {""}


def _said(http: HttpExchange) -> Values | None:
    return http.said_values


def _redirected(http: HttpExchange) -> Values | None:
    """What a redirect brings back: the query or the fragment of its Location."""
    location = http.says("location")
    if location is None or not 300 <= (http.status or 0) < 400:
        return None
    before, _, fragment = location[: 16 * LONGEST].partition("#")
    return form("&".join(filter(None, (before.partition("?")[2], fragment)))) or None


def _revision_of(http: HttpExchange) -> str | None:
    """The revision that the client speaks, or asks for."""
    conversation = None if http.talk is None else http.talk.conversation
    settled = None if conversation is None else conversation.revision or conversation.requested_revision
    return http.version or settled


def _later(one: str, other: str | None) -> str:
    return max(one, other, key=REVISIONS.index) if other in REVISIONS else one
