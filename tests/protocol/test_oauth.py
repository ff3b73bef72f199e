"""What OAuth messages say, which addresses are the same, and which exchange is a step of which authorization."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.protocol.authorizations import LIVE_LIMIT
from mcpsniff.protocol.oauth_reading import bearer_challenge, document, form, is_masked, one
from mcpsniff.protocol.oauth_urls import covers, issuer_of, normal, resource_of
from tests.dialogue import play
from tests.sessions import decode

INIT = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"c","version":"1"}}}'
)
RESOURCE = '{"resource":"http://127.0.0.1:9000/mcp","authorization_servers":["https://as.example"]}'
FORM = "    Content-Type: application/x-www-form-urlencoded\n    Accept: */*\n"


@pytest.mark.parametrize(
    ("header", "parameters"),
    [
        ("Bearer", {}),
        ("bearer realm=x", {"realm": ("x",)}),
        (
            'Bearer resource_metadata="https://a/b", scope="x y"',
            {"resource_metadata": ("https://a/b",), "scope": ("x y",)},
        ),
        ('Basic realm="Bearer x=1", Bearer error="a\\"b"', {"error": ('a"b',)}),
        ('Bearer error=invalid_token, Basic realm="r"', {"error": ("invalid_token",)}),
        ("Negotiate, Bearer", {}),
        ("Basic", None),
        ('Basic realm="a, Bearer"', None),
        ("", None),
    ],
)
def test_the_bearer_challenge_among_others(header: str, parameters: dict[str, Any] | None) -> None:
    assert bearer_challenge([header]) == parameters


def test_of_secrets_only_that_they_were_there_is_kept() -> None:
    told = form("grant_type=authorization_code&code=EX-1&code_verifier=EX-2&client_secret=EX-3&other=EX-4&state=7")
    said = document(
        b'{"access_token":"EX-5","refresh_token":"EX-6","token_type":"Bearer","expires_in":60,"other":"EX-7"}'
    )

    assert "EX" not in f"{told}{said}"
    assert told["code"] == ("*",)
    assert said == {"access_token": ("*",), "refresh_token": ("*",), "token_type": ("Bearer",), "expires_in": ("60",)}


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"7", b'"x"', b"\xff", b"[" * 5000])
def test_what_is_no_object_is_no_document(body: bytes) -> None:
    assert document(body) is None


@given(st.dictionaries(st.sampled_from(["resource", "issuer", "code", "scope"]), st.text(max_size=9000)))
def test_what_is_kept_is_bounded(members: dict[str, str]) -> None:
    told = document(orjson.dumps({**members, "redirect_uris": ["x" * 9000] * 90}))
    assert told is not None
    assert all(len(values) <= 20 and all(len(value) <= 2000 for value in values) for values in told.values())


def test_an_empty_value_is_none_and_a_masked_one_is_known_as_such() -> None:
    assert one(form("resource=&state=1"), "resource") is None
    assert is_masked("***")
    assert not is_masked("")
    assert not is_masked("a*")


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("HTTPS://As.Example:443", "https://as.example/"),
        ("http://as.example:8080/token?x=1#y", "http://as.example:8080/token"),
        ("http://[::1]:80/x", "http://[::1]/x"),
        ("/token", ""),
        ("javascript:x", ""),
        ("http://a:b/", ""),
    ],
)
def test_a_url_is_found_again_however_it_is_spelt(url: str, same: str) -> None:
    assert normal(url) == same


def test_metadata_belong_to_the_address_that_their_own_is_made_of() -> None:
    assert resource_of("https://h/.well-known/oauth-protected-resource/mcp") == "https://h/mcp"
    assert resource_of("https://h/.well-known/oauth-protected-resource") == "https://h"
    assert resource_of("https://h/.well-known/oauth-protected-resources") == ""
    assert issuer_of("https://h/.well-known/oauth-authorization-server/t") == "https://h/t"
    assert issuer_of("https://h/t/.well-known/openid-configuration") == "https://h/t"
    assert issuer_of("https://h/t") == ""


def test_a_resource_covers_what_stands_below_it() -> None:
    assert covers("https://h/mcp", "https://h/mcp/")
    assert covers("https://h", "https://h/mcp")
    assert not covers("https://h/m", "https://h/mcp")
    assert not covers("http://h/mcp", "https://h/mcp")


def steps(dialogue: str, records: list[Record] | None = None) -> list[tuple[int, str]]:
    """The steps of a dialogue: authorization and name."""
    events = decode(play(f"@http\n{dialogue}", checks=[]).records if records is None else records)
    https = [event for event in events if type(event).__name__ == "Http" and event.is_first]
    return [(http.exchange.auth.authorization.number, http.exchange.auth.name) for http in https if http.exchange.auth]


def challenge(link: str = "") -> str:
    return f"C{link}> POST /mcp {INIT}\nS{link}> 401\n    WWW-Authenticate: Bearer\n"


def metadata(link: str = "") -> str:
    where = "/.well-known/oauth-protected-resource/mcp"
    return f"C{link}> GET {where}\n    Accept: */*\nS{link}> 200 {RESOURCE}\n"


def register(client: str, link: str = "") -> str:
    asked = f'C{link}> POST /register {{"redirect_uris":["http://localhost/b"]}}\n    Accept: */*\n'
    return f'{asked}S{link}> 201 {{"client_id":"{client}"}}\n'


def token(client: str, link: str = "", kind: str = "authorization_code") -> str:
    return f'C{link}> POST /token grant_type={kind}&client_id={client}\n{FORM}S{link}> 200 {{"token_type":"Bearer"}}\n'


def use(link: str = "", status: str = '200 {"jsonrpc":"2.0","id":0,"result":{}}') -> str:
    return f"C{link}> POST /mcp {INIT}\n    Authorization: Bearer ***\nS{link}> {status}\n"


def test_what_comes_after_a_token_was_accepted_begins_the_next_one() -> None:
    whole = challenge() + metadata() + register("x") + token("x") + use()
    assert steps(whole + whole.replace('"x"', '"y"').replace("=x", "=y")) == [
        (number, name)
        for number in (1, 2)
        for name in ("challenge", "resource-metadata", "registration", "token", "authorized")
    ]


def test_a_token_is_renewed_in_the_authorization_that_granted_it() -> None:
    found = steps(challenge() + register("x") + token("x") + use() + token("x", kind="refresh_token"))
    assert found[-2:] == [(1, "authorized"), (1, "refresh")]


def test_a_token_that_is_refused_goes_on_with_the_same_authorization() -> None:
    refused = use(status="401\n    WWW-Authenticate: Bearer")
    assert steps(challenge() + register("x") + token("x") + refused + metadata())[-2:] == [
        (1, "refused"),
        (1, "resource-metadata"),
    ]


def test_two_clients_at_once_are_told_apart() -> None:
    both = challenge() + challenge("2") + metadata("2") + metadata() + register("y", "2") + register("x")
    ends = token("x", "3") + token("y", "4") + use("2") + use()
    assert steps(both + ends) == [
        *((1, "challenge"), (2, "challenge")),
        *((2, "resource-metadata"), (1, "resource-metadata")),
        *((2, "registration"), (1, "registration")),
        *((1, "token"), (2, "token")),
        *((2, "authorized"), (1, "authorized")),
    ]


def test_what_nobody_has_named_begins_one_of_its_own() -> None:
    assert steps(token("x") + token("y")) == [(1, "token"), (2, "token")]


def test_what_is_no_oauth_is_no_step() -> None:
    others = [
        "C> POST /token a=b\n    Content-Type: text/x\nS> 200 {}\n",
        'C> POST /api {"resource":"x"}\n    Accept: */*\nS> 200 {"issuer":"x"}\n',
        "C> GET /?state=1&code=2\n    Accept: */*\nS> 200\n",
        "C> OPTIONS /.well-known/oauth-protected-resource\n    Accept: */*\nS> 204\n",
        f"C> POST /mcp {INIT}\nS> 403 no\n",
    ]
    assert steps("".join(others)) == []


def test_metadata_are_known_by_the_challenge_that_names_them() -> None:
    named = challenge().replace("Bearer", 'Bearer resource_metadata="http://127.0.0.1:9000/about"')
    asked = f"C> GET /about\n    Accept: */*\nS> 200 {RESOURCE}\n"
    assert steps(named + asked) == [(1, "challenge"), (1, "resource-metadata")]


def test_what_is_remembered_is_bounded() -> None:
    many = "".join(token(f"c{number}") for number in range(3 * LIVE_LIMIT))
    found = steps(many + token("c0", kind="refresh_token"))
    assert found[-1] == (3 * LIVE_LIMIT + 1, "refresh")
