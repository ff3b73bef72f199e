"""What OAuth messages say, which addresses are the same, and which exchange is a step of which authorization."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.protocol.authorizations import LIVE_LIMIT
from mcpsniff.protocol.oauth import STEPS
from mcpsniff.protocol.oauth_reading import document, form, is_masked, one, token_challenge
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
        ('DPoP error="use_dpop_nonce", Bearer scope="x"', {"error": ("use_dpop_nonce",), "scope": ("x",)}),
        ("Basic", None),
        ('Basic realm="a, Bearer"', None),
        ("", None),
    ],
)
def test_the_token_challenge_among_others(header: str, parameters: dict[str, Any] | None) -> None:
    assert token_challenge([header]) == parameters


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


def test_what_is_of_another_type_than_it_has_to_be_is_not_there() -> None:
    odd = {
        "issuer": ["https://as"],
        "resource": 5,
        "authorization_servers": "https://as",
        "scopes_supported": [1, None, "x", {}],
        "token_endpoint": {"a": 1},
        "authorization_response_iss_parameter_supported": "true",
        "client_id_metadata_document_supported": True,
        "expires_in": True,
        "error": None,
    }
    told = {name: values for name, values in (document(orjson.dumps(odd)) or {}).items() if values}
    assert told == {"scopes_supported": ("x",), "client_id_metadata_document_supported": ("true",)}


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
        ("http://user:word@as.example/x", "http://as.example/x"),
        ("https://b\u00fccher.example/x", "https://xn--bcher-kva.example/x"),
        ("https://\u00fc..example/x", "https://\u00fc..example/x"),
        ("http://[::1/x", ""),
        ("http://a:99999/", ""),
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
    """The steps of a dialogue: authorization (0 for a look in vain, from which none has come so far) and name."""
    events = decode(play(f"@http\n{dialogue}", checks=[]).records if records is None else records)
    https = [event for event in events if type(event).__name__ == "Http" and event.is_first]
    return [(http.exchange.auth.number, http.exchange.auth.name) for http in https if http.exchange.auth]


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


def look(path: str, answer: str = "404", link: str = "") -> str:
    return f"C{link}> GET /.well-known/{path}\n    Accept: */*\nS{link}> {answer}\n"


PLACE = "oauth-protected-resource"


def test_a_look_for_metadata_where_there_are_none_begins_no_authorization() -> None:
    html = "200 <html>welcome</html>\n    Content-Type: text/html"
    vain = look(f"{PLACE}/mcp") + look(PLACE, html) + look("oauth-authorization-server", "500 no")
    assert steps(vain) == [(0, "resource-metadata"), (0, "resource-metadata"), (0, "server-metadata")]


def test_but_what_comes_of_it_does() -> None:
    assert steps(look(PLACE) + metadata() + challenge()) == [
        (0, "resource-metadata"),
        (1, "resource-metadata"),
        (1, "challenge"),
    ]
    assert steps(look(PLACE) + challenge() + look(PLACE) + metadata())[1:] == [
        (1, "challenge"),
        (1, "resource-metadata"),
        (1, "resource-metadata"),
    ]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_metadata_that_are_elsewhere_are_looked_for_there(status: int) -> None:
    sent_on = look(f"{PLACE}/mcp", f"{status}\n    Location: /about")
    there = f"C> GET /about\n    Accept: */*\nS> 200 {RESOURCE}\n"
    assert steps(challenge() + sent_on + there)[1:] == [(1, "resource-metadata")] * 2
    assert steps(challenge() + sent_on.replace("/about", "http://[bad") + there)[1:] == [(1, "resource-metadata")]


def test_a_token_that_has_expired_is_renewed_in_the_session_and_used() -> None:
    """The 401 begins an authorization, which knows the client of the one before it."""
    expired = use(status='401\n    WWW-Authenticate: Bearer error="invalid_token"')
    first = challenge() + metadata() + register("x") + token("x") + use()
    assert steps(first + expired + token("x", kind="refresh_token") + use())[-3:] == [
        (2, "refused"),
        (2, "refresh"),
        (2, "authorized"),
    ]
    both = first + challenge("2") + register("y", "2") + token("y", "2") + use("2")
    assert steps(both + expired + token("x", kind="refresh_token") + use())[-3:] == [
        (3, "refused"),
        (3, "refresh"),
        (3, "authorized"),
    ]


def test_a_request_that_needs_more_scope_begins_another_authorization() -> None:
    more = use(status='403\n    WWW-Authenticate: Bearer error="insufficient_scope", scope="a b"')
    first = challenge() + metadata() + register("x") + token("x") + use()
    assert steps(first + more + token("x") + use())[-3:] == [(2, "refused"), (2, "token"), (2, "authorized")]


def test_requests_that_are_refused_at_once_are_one_authorization() -> None:
    expired = use("2", status="401\n    WWW-Authenticate: Bearer") + use(
        "3", status="401\n    WWW-Authenticate: Bearer"
    )
    first = challenge() + register("x") + token("x") + use()
    assert steps(first + expired)[-2:] == [(2, "refused"), (2, "refused")]


def test_a_client_without_a_user_gets_its_token_in_one_step() -> None:
    for grant in ("client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"):
        asked = token("x", kind=grant).replace("&client_id", "&client_assertion=*&client_assertion_type=y&client_id")
        assert steps(challenge() + metadata() + asked + use())[-2:] == [(1, "token"), (1, "authorized")]


def test_a_code_for_another_device_is_asked_for_and_waited_for() -> None:
    answer = '200 {"device_code":"*","user_code":"*","verification_uri":"https://as.example/device","interval":5}'
    asked = f"C> POST /device client_id=x&scope=mcp\n{FORM}S> {answer}\n"
    kind = "urn:ietf:params:oauth:grant-type:device_code"
    waits = token("x", kind=kind).replace('200 {"token_type":"Bearer"}', '400 {"error":"authorization_pending"}')
    assert steps(challenge() + metadata() + asked + waits + waits + token("x", kind=kind) + use())[2:] == [
        (1, "device-code"),
        *[(1, "token")] * 3,
        (1, "authorized"),
    ]


@pytest.mark.parametrize(
    "document",
    [
        '{"resource":"http://127.0.0.1:9000/mcp","authorization_servers":["https://as.example"],"x":"'
        + "y" * 70_000
        + '"}',
        '{"resource":' + "[" * 20_000 + "]" * 20_000 + "}",
    ],
    ids=["long", "deep"],
)
def test_what_is_too_large_for_mcpsniff_is_no_fault_of_the_server(document: str) -> None:
    played = play(f"@http\n{challenge()}{look(PLACE, f'200 {document}')}")
    assert played.findings == []
    (_, step) = [event.exchange.auth for event in played.events if type(event).__name__ == "Http"]
    assert step.succeeded
    assert step.is_unread


def test_a_compressed_document_is_read() -> None:
    coded = f"200 {RESOURCE}\n    Content-Encoding: gzip\n    Transfer-Encoding: chunked"
    played = play(f"@http\n{challenge()}{look(f'{PLACE}/mcp', coded)}")
    assert played.findings == []
    (_, step) = [event.exchange.auth for event in played.events if type(event).__name__ == "Http"]
    assert step.said["authorization_servers"] == ("https://as.example",)


def test_of_a_thousand_authorization_servers_the_first_are_kept() -> None:
    many = orjson.dumps(
        {
            "resource": "http://127.0.0.1:9000/mcp",
            "authorization_servers": [f"https://{n}.example" for n in range(1000)],
        }
    )
    played = play(f"@http\n{challenge()}{look(f'{PLACE}/mcp', f'200 {many.decode()}')}")
    (_, step) = [event.exchange.auth for event in played.events if type(event).__name__ == "Http"]
    assert step.authorization.issuers == [f"https://{n}.example" for n in range(20)]


def test_every_step_is_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "json-output.md").read_text(encoding="utf-8")
    assert [step for step in STEPS if f"`{step}`" not in page] == []
