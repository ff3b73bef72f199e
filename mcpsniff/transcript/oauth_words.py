"""What a transcript says of a step of an authorization: which step, of which authorization, and what was agreed on."""

from typing import Final

from mcpsniff.protocol.oauth import (
    AUTHORIZATION,
    AUTHORIZED,
    CHALLENGE,
    PUSHED,
    REDIRECT,
    REFRESH,
    REFUSED,
    REGISTRATION,
    RESOURCE_METADATA,
    REVOCATION,
    SERVER_METADATA,
    TOKEN,
    Step,
)

TITLES: Final = {
    CHALLENGE: "asks for authorization",
    REFUSED: "refuses the token",
    RESOURCE_METADATA: "resource metadata",
    SERVER_METADATA: "authorization server metadata",
    REGISTRATION: "client registration",
    PUSHED: "authorization request, sent ahead",
    AUTHORIZATION: "authorization request",
    REDIRECT: "back from authorization",
    TOKEN: "token request",
    REFRESH: "token refresh",
    REVOCATION: "token revocation",
    AUTHORIZED: "accepts the token",
}

_ASKED: Final = {
    REGISTRATION: ("client_name",),
    AUTHORIZATION: ("client_id", "resource", "scope"),
    PUSHED: ("client_id", "resource", "scope"),
    TOKEN: ("grant_type", "resource"),
    REFRESH: ("resource",),
    REDIRECT: ("error", "error_description", "iss"),
}
_SAID: Final = {
    CHALLENGE: ("error", "error_description", "scope"),
    REFUSED: ("error", "error_description", "scope"),
    RESOURCE_METADATA: ("resource", "authorization_servers"),
    SERVER_METADATA: ("issuer",),
    REGISTRATION: ("client_id",),
    AUTHORIZATION: ("iss",),
    TOKEN: ("token_type", "expires_in", "scope"),
    REFRESH: ("token_type", "expires_in", "scope"),
}
_ERRORS: Final = ("error", "error_description")


def oauth_words(step: Step, n: int) -> tuple[str, ...]:
    """Which step event ``n`` is, and of which authorization, with the row that began it."""
    authorization = step.authorization
    number = f"authorization {authorization.number}"
    began = authorization.began
    which = f"begins {number}" if began in (0, n) else f"{number} of #{began}"
    return (TITLES[step.name], which)


def oauth_remark(step: Step) -> str:
    """What both sides said that matters most. Captured text."""
    said = step.said or {}
    pairs = [(name, step.asked.get(name, ())) for name in _ASKED.get(step.name, ())]
    pairs += [(name, said.get(name, ())) for name in (_ERRORS if "error" in said else _SAID.get(step.name, ()))]
    return ", ".join(f"{name} {' '.join(values)}" for name, values in pairs if any(values))
