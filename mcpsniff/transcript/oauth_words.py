"""What a transcript says of a step of an authorization: which step, of which authorization, and what was agreed on."""

from typing import Final

from mcpsniff.protocol.oauth import (
    AUTHORIZATION,
    AUTHORIZED,
    CHALLENGE,
    DEVICE,
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
from mcpsniff.protocol.oauth_reading import one

TITLES: Final = {
    CHALLENGE: "asks for authorization",
    REFUSED: "refuses the token",
    RESOURCE_METADATA: "resource metadata",
    SERVER_METADATA: "authorization server metadata",
    REGISTRATION: "client registration",
    PUSHED: "authorization request, sent ahead",
    AUTHORIZATION: "authorization request",
    REDIRECT: "back from authorization",
    DEVICE: "device code",
    TOKEN: "token request",
    REFRESH: "token refresh: a new token for an earlier one",
    REVOCATION: "token revocation",
    AUTHORIZED: "accepts the token",
}

_ASKED: Final = {
    REGISTRATION: ("client_name",),
    AUTHORIZATION: ("client_id", "resource", "scope"),
    PUSHED: ("client_id", "resource", "scope"),
    DEVICE: ("client_id", "resource", "scope"),
    TOKEN: ("grant_type", "resource"),
    REFRESH: ("grant_type", "resource"),
    REDIRECT: ("error", "error_description", "iss"),
}
_SAID: Final = {
    CHALLENGE: ("error", "error_description", "scope"),
    REFUSED: ("error", "error_description", "scope"),
    RESOURCE_METADATA: ("resource", "authorization_servers"),
    SERVER_METADATA: ("issuer",),
    REGISTRATION: ("client_id",),
    AUTHORIZATION: ("iss",),
    DEVICE: ("verification_uri",),
    TOKEN: ("token_type", "expires_in", "scope"),
    REFRESH: ("token_type", "expires_in", "scope"),
}
_MORE_SCOPE: Final = "asks for more scope"
_ERRORS: Final = ("error", "error_description")


def oauth_words(step: Step) -> tuple[str, ...]:
    """Which step it is, and of which authorization, with the row that began it; of none if it is a vain look."""
    title = TITLES[step.name]
    if step.is_vain:
        title = f"looks for {title}, finds none"
    elif step.name in (CHALLENGE, REFUSED) and one(step.said or {}, "error") == "insufficient_scope":
        title = _MORE_SCOPE
    if not step.number:
        return (title,)
    return (
        title,
        f"authorization {step.number} of #{step.began}" if step.began else f"begins authorization {step.number}",
    )


def oauth_remark(step: Step) -> str:
    """What both sides said that matters most. Captured text."""
    said = step.said or {}
    pairs = [(name, step.asked.get(name, ())) for name in _ASKED.get(step.name, ())]
    told = _ERRORS if "error" in said and step.name not in (CHALLENGE, REFUSED) else _SAID.get(step.name, ())
    pairs += [(name, said.get(name, ())) for name in told]
    return ", ".join(f"{name} {' '.join(values)}" for name, values in pairs if any(values))
