"""What holds of authorizations whatever clients and servers say: nothing raises, numbers count up, little is kept."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.protocol.http import Http
from mcpsniff.protocol.oauth import NAMES_LIMIT, STEPS, Authorization
from mcpsniff.protocol.oauth_reading import LONGEST
from mcpsniff.transcript.auth_counts import AuthCounts
from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.oauth_words import oauth_remark, oauth_words
from tests.dialogue import play

INIT = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
HOSTS = ["127.0.0.1:8000", "127.0.0.1:9000", "as.example"]
PLACES = [
    *("/mcp", "/authorize", "/token", "/register", "/device", "/back"),
    *("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"),
    *("/.well-known/oauth-authorization-server", "/t/.well-known/openid-configuration"),
]
URLS = [
    *(f"http://{host}{path}" for host in HOSTS for path in ("", "/", "/mcp", "/token", "/authorize", "/back")),
    *("/token", "http://[", "http://a:99999/", "https://b\u00fccher.example/x", "http://user:word@as.example:1/"),
    *("javascript:x", "*" * 9, "x" * 3 * LONGEST),
]
NAMES = [
    *("resource", "authorization_servers", "issuer", "authorization_endpoint", "token_endpoint", "scope", "error"),
    *(
        "client_id",
        "redirect_uri",
        "redirect_uris",
        "state",
        "code",
        "iss",
        "access_token",
        "request_uri",
        "expires_in",
    ),
    *("grant_type", "response_type", "code_challenge", "device_code", "device_authorization_endpoint"),
    "authorization_response_iss_parameter_supported",
]
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(URLS),
    st.lists(st.sampled_from(URLS), max_size=3),
    st.sampled_from([True, False, None, 0, 1.5, "x", "code", "7", [], {}, [[1]], [None], "\x1b[1m\u202e"]),
)
DOCUMENTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6).map(json.dumps)
WORDS = st.sampled_from(["x", "y", "7", "code", "refresh_token", "authorization_code", *URLS[:8]])
FIELDS = st.dictionaries(st.sampled_from(NAMES), WORDS, max_size=5).map(
    lambda fields: "&".join(f"{name}={value}" for name, value in fields.items())
)
BODIES = st.one_of(st.just(INIT), DOCUMENTS, FIELDS)
ASKS = [
    *("Authorization: Bearer x", "Accept: */*", "Content-Type: application/x-www-form-urlencoded"),
    *(f"Host: {host}" for host in HOSTS),
]
SAYS = [
    *("WWW-Authenticate: Bearer", "WWW-Authenticate: Basic", 'WWW-Authenticate: DPoP error="use_dpop_nonce"'),
    'WWW-Authenticate: Bearer error="insufficient_scope", scope="a"',
    'WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp"',
    *("Location: http://127.0.0.1:9000/back?code=1&state=7#iss=x", "Location: /mcp?error=x", "Location: http://[x"),
    *("Mcp-Session-Id: s-1", "Content-Encoding: gzip", "Transfer-Encoding: chunked"),
]
STATUSES = ["200", "200", "200", "201", "302", "307", "400", "401", "401", "403", "404", "500"]


@st.composite
def exchanges(draw: st.DrawFn) -> str:
    """Any HTTP exchange that may be a step, as a dialogue has it."""
    link, method = draw(st.sampled_from(["", "2", "3"])), draw(st.sampled_from(["GET", "POST"]))
    query = draw(st.one_of(st.just(""), FIELDS.map("?{}".format)))
    body = f" {draw(BODIES)}" if method == "POST" else ""
    asks = draw(st.lists(st.sampled_from(ASKS), max_size=3, unique_by=lambda header: header.partition(":")[0]))
    says = draw(st.lists(st.sampled_from(SAYS), max_size=2, unique_by=lambda header: header.partition(":")[0]))
    answer = draw(st.one_of(st.just(""), st.just(" <html>"), DOCUMENTS.map(" {}".format)))
    lines = [f"C{link}> {method} {draw(st.sampled_from(PLACES))}{query}{body}", *(f"    {header}" for header in asks)]
    lines += [f"S{link}> {draw(st.sampled_from(STATUSES))}{answer}", *(f"    {header}" for header in says)]
    return "\n".join(lines)


def is_bounded(authorization: Authorization) -> bool:
    lists = [
        *(authorization.origins, authorization.issuers, authorization.clients, authorization.earlier_clients),
        *(authorization.sessions, authorization.outcomes, authorization.states, authorization.redirects),
    ]
    texts = [text for kept in lists for text in kept] + [
        *authorization.urls,
        authorization.issuer,
        authorization.resource,
    ]
    return max(map(len, [*lists, authorization.urls])) <= NAMES_LIMIT and all(
        len(text) <= 2 * LONGEST for text in texts
    )


@settings(max_examples=60)
@given(st.lists(exchanges(), max_size=12))
def test_whatever_is_said(said: list[str]) -> None:
    played = play("\n".join(["@http", *said]))
    assert [finding for finding in played.findings if finding.code == "MCP901"] == []

    counts, begun = AuthCounts(), dict[int, int]()
    for event in played.events:
        if not isinstance(event, Http) or not event.is_first or event.exchange.auth is None:
            continue
        step = event.exchange.auth
        counts.feed(step)
        assert step.name in STEPS
        assert is_bounded(step.authorization)
        assert all(oauth_words(step))
        assert isinstance(oauth_remark(step), str)
        if step.number and step.number not in begun:
            assert (step.number, step.began) == (len(begun) + 1, 0)
            begun[step.number] = event.n
        else:
            assert step.began == begun.get(step.number, 0)
            assert step.number or step.is_vain
    assert sum(counts.ends.values()) == len(begun)
    lines = [json.loads(line) for line in JsonLines().lines(played.events).splitlines()]
    told = {line["oauth"]["authorization"]: line["oauth"]["began"] for line in lines if "oauth" in line}
    assert {number: began for number, began in told.items() if number is not None} == begun
