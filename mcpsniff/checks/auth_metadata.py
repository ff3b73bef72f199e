"""Checks of how a server tells where tokens for it come from: challenges, and the metadata documents."""

from mcpsniff.checks import ERROR, HTTP, MCPSNIFF, NOTE, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import request_line
from mcpsniff.checks.words import plain, quoted
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.oauth import (
    AUTHORIZATION,
    CHALLENGE,
    REDIRECT,
    REFUSED,
    RESOURCE_METADATA,
    SERVER_METADATA,
    Step,
    fact_of,
)
from mcpsniff.protocol.oauth_reading import is_masked, one
from mcpsniff.protocol.oauth_urls import covers, is_at, issuer_of, resource_of
from mcpsniff.protocol.origins import split
from mcpsniff.protocol.revisions import R_2025_06_18

DISCOVERY = "basic/authorization#authorization-server-location"


@check(
    "MCP540",
    "auth-challenge",
    on=Http,
    when=(fact_of(CHALLENGE), fact_of(REFUSED), fact_of(SERVER_METADATA)),
    severity=WARNING,
    group=HTTP,
    since=R_2025_06_18,
    spec=DISCOVERY,
    blame=SERVER,
)
def auth_challenge(event: Http, _: Conversation) -> Verdict:
    """A 401 does not say how to get a token, and there is no metadata document that would say it instead.

    In 2025-06-18 a 401 has to name the resource's metadata in ``WWW-Authenticate: Bearer`` (or ``DPoP``); later
    revisions let the header be if the document is at its well-known place. With neither, clients try the paths of
    2025-03-26 or give up. From 2025-11-25 on a 401 without the header is a note until the client has found no document.

    Fix: Send ``WWW-Authenticate: Bearer resource_metadata="https://…/.well-known/oauth-protected-resource/mcp"``, and
    serve that document.
    """
    step = event.exchange.auth
    if step is None:
        return None
    if step.is_last_try and step.authorization.is_challenged and not step.authorization.has_pointer:
        place = plain(step.authorization.address, 60)
        return f"{place} was refused with 401 that names no metadata, and there are none at the well-known places"
    if step.name == SERVER_METADATA or event.exchange.status != 401:
        return None
    place = f"{request_line(event.exchange)} was answered 401"
    if step.said is not None:
        has_to_name = step.name == CHALLENGE and step.revision == R_2025_06_18
        lacks = has_to_name and one(step.said, "resource_metadata") is None
        return f"{place} with a WWW-Authenticate that names no resource_metadata" if lacks else None
    said = f"{place} without a WWW-Authenticate that asks for a token"
    if step.revision == R_2025_06_18:
        return said
    return Hit(f"{said}; only a document at its well-known place can tell clients where to get a token", NOTE)


@check(
    "MCP545",
    "auth-metadata",
    on=Http,
    when=(fact_of(RESOURCE_METADATA),),
    severity=ERROR,
    group=HTTP,
    since=R_2025_06_18,
    spec="rfc9728#section-3.3",
    blame=SERVER,
)
def auth_metadata(event: Http, _: Conversation) -> Verdict:
    """The metadata of the protected resource name no authorization server, or another resource.

    The document has to list at least one authorization server (MCP), and to name the resource that the client uses
    (RFC 9728 section 3.3): a client refuses metadata of another one, or it could be led to ask for tokens for other
    servers. A page instead of a document, as sites answer that have one for every path, stops some clients, too. Where
    the client uses the address of mcpsniff, another one is no fault of the server; MCP557 tells of that.

    Fix: Set ``resource`` to the URL that clients use for the server, with its path, and list the issuer's URL in
    ``authorization_servers``. Without authorization, answer 404.
    """
    step = event.exchange.auth
    if step is None or event.exchange.status != 200 or step.is_unread:
        return None
    said = step.said
    if said is None:
        words = f"{request_line(event.exchange)} was answered with success, and with something that is no JSON object"
        return words if step.authorization.is_challenged else Hit(words, WARNING)
    hits: list[str | Hit] = []
    if not any(said.get("authorization_servers", ())):
        hits.append("the metadata of the resource list no authorization server in authorization_servers")
    resource = one(said, "resource")
    if resource is None:
        hits.append("the metadata of the resource do not say of which resource (no text as member resource)")
    elif not is_masked(resource) and not _is_relayed(step):
        asked = _protected(step)
        if not _fits(resource, step):
            hits.append(f"the metadata are those of {quoted(resource)}, and the client uses {quoted(asked)}")
    return hits


@check(
    "MCP557",
    "auth-resource-mismatch",
    on=Http,
    when=(fact_of(CHALLENGE), fact_of(RESOURCE_METADATA)),
    severity=WARNING,
    group=HTTP,
    spec="rfc9728#section-3.3",
    blame=MCPSNIFF,
)
def auth_resource_mismatch(event: Http, _: Conversation) -> Verdict:
    """The client will refuse the server's metadata, because it reached the server through mcpsniff's address.

    A client compares the ``resource`` in the metadata with the URL that it was given. The server names its own URL, the
    client uses that of mcpsniff, so the client gives up, or asks for a token that the server will not accept. Often the
    challenge already leads past mcpsniff, to metadata at the server's own URL. What the server said is passed on
    unchanged: changing it would have to go on in requests that mcpsniff does not see.

    Fix: Give the client the URL that the server calls itself by, and start it with ``mcpsniff run -- COMMAND``, where
    COMMAND is how you start the client otherwise; for a client that is no command, set ``mcpsniff forward`` as its
    proxy. Or let the server name the address of mcpsniff as its resource while you look.
    """
    step = event.exchange.auth
    if step is None or step.said is None or not _is_relayed(step):
        return None
    if step.name == CHALLENGE:
        resource = resource_of(one(step.said, "resource_metadata") or "")
    else:
        resource = one(step.said, "resource") or ""
    if not resource or is_masked(resource) or _fits(resource, step):
        return None
    return (
        f"the server calls itself {quoted(resource)}, and the client, which was given {quoted(_protected(step))}, will "
        f"refuse that; give the client {quoted(resource)}, and start it with: mcpsniff run -- COMMAND"
    )


@check(
    "MCP546",
    "auth-issuer",
    on=Http,
    when=(fact_of(SERVER_METADATA), fact_of(AUTHORIZATION), fact_of(REDIRECT)),
    severity=ERROR,
    group=HTTP,
    spec="rfc8414#section-3.3",
    blame=SERVER,
)
def auth_issuer(event: Http, _: Conversation) -> Verdict:
    """The issuer is not the one that was asked: in the metadata of the authorization server, or in its redirect.

    The ``issuer`` in the metadata has to be the one from which the place of the document was made (RFC 8414 section
    3.3), as ``authorization_servers`` of the resource names it, and ``iss`` in the redirect the same (RFC 9207 section
    2). Both are compared letter by letter, so a slash at the end counts. A server whose metadata promise ``iss``
    (``authorization_response_iss_parameter_supported``) has to send it, with errors too. That keeps one authorization
    server from answering for another: clients refuse, and from 2026-07-28 on they have to.

    Fix: Write the issuer in the same letters in ``authorization_servers``, in ``issuer`` and in ``iss``, and promise
    ``iss`` only if it is sent.
    """
    step = event.exchange.auth
    if step is None or event.exchange.is_refused:
        return None
    if step.name != SERVER_METADATA:
        return _of_redirect(step)
    if step.said is None:
        return None
    issuer, asked = one(step.said, "issuer"), issuer_of(step.address)
    if issuer is None:
        return "the metadata of the authorization server name no issuer"
    if not asked or is_masked(issuer):
        return None
    named = [known for known in step.authorization.issuers if is_at(known, asked)]
    if named:
        wanted = f"the metadata of the resource name {quoted(named[0])}"
        return None if issuer in named else f"the metadata are those of issuer {quoted(issuer)}, and {wanted}"
    if _is_relayed(step) or is_at(issuer, asked):
        return None
    return f"the metadata at {quoted(asked)} are those of issuer {quoted(issuer)}"


def _of_redirect(step: Step) -> Verdict:
    """What is wrong with the issuer in the outcome of an authorization request, which the browser takes to the client.

    A redirect without an outcome leads to another page; one with ``response`` has all in a signed token (JARM).
    """
    outcome = (step.asked if step.name == REDIRECT else step.said) or {}
    if step.is_repeated or not step.issuer or is_masked(step.issuer) or not {"code", "error"} & outcome.keys():
        return None
    named = one(outcome, "iss")
    if named is None:
        if not step.authorization.promises_issuer:
            return None
        return f"the redirect has no iss, and the metadata of {quoted(step.issuer)} promise one"
    if is_masked(named) or named == step.issuer:
        return None
    return f"the redirect comes from issuer {quoted(named)}, and the metadata name {quoted(step.issuer)}"


def _is_relayed(step: Step) -> bool:
    """True if the client used another address than the server's own, that of mcpsniff."""
    return split(step.address)[0] != split(step.real)[0]


def _protected(step: Step) -> str:
    """The address of the protected server as the client has it; empty if it is not known."""
    return step.authorization.address or resource_of(step.address)


def _fits(resource: str, step: Step) -> bool:
    """True if the resource is the server that the client uses, or that is not known."""
    asked = _protected(step)
    if not asked or covers(resource, asked):
        return True
    return not step.authorization.address and split(resource)[0] == split(asked)[0]
