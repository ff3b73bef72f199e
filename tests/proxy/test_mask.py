"""Secrets that pass over HTTP do not reach the capture, however the reads cut them; everything else does, as it was."""

import json
import os
import stat
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture.salt import NAME, store_salt
from mcpsniff.capture.writer import CaptureWriter
from mcpsniff.proxy.mask import Masker
from mcpsniff.proxy.recorder import CHUNK, Recorder
from mcpsniff.proxy.storing import Storing
from mcpsniff.wire.http1 import Data, Http1Connection, Undecoded
from tests.proxy.masking import (
    OPENINGS,
    SALT,
    C,
    S,
    at_every_cut,
    fingerprint,
    masked,
    recorded,
    records,
    request,
    response,
    whole,
)

FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"

B144 = [
    (
        C,
        request(
            b"client_secret=EX-TOK-5&code=EX-TOK-6",
            "/token?access_token=EX-TOK-1",
            ["Authorization: bearer EX-TOK-2", "Cookie: sid=EX-TOK-3", "Referer: http://h.test/?code=EX-TOK-4", FORM],
        ),
    ),
    (
        S,
        response(
            b'{"refresh_token":"EX-TOK-9"}', ["Set-Cookie: sid=EX-TOK-7", "Location: /cb#id_token=EX-TOK-8", JSON]
        ),
    ),
]


def test_no_secret_is_found_in_the_capture() -> None:
    """Case B144."""
    out = masked(B144)
    assert b"EX-TOK" not in whole(out)
    assert [(record["what"], record["fp"]) for record in records(out)] == [
        ("access_token", fingerprint(b"EX-TOK-1")),
        ("Authorization", fingerprint(b"EX-TOK-2")),
        ("Cookie", fingerprint(b"sid=EX-TOK-3")),
        ("code", fingerprint(b"EX-TOK-4")),
        ("client_secret", fingerprint(b"EX-TOK-5")),
        ("code", fingerprint(b"EX-TOK-6")),
        ("Set-Cookie", fingerprint(b"sid=EX-TOK-7")),
        ("id_token", fingerprint(b"EX-TOK-8")),
        ("refresh_token", fingerprint(b"EX-TOK-9")),
    ]
    assert recorded(out, C).startswith(b"POST /token?access_token=******** HTTP/1.1\r\nHost: a\r\n")
    assert b"\r\nAuthorization: bearer ********\r\n" in recorded(out, C)
    assert recorded(out, S).endswith(b'\r\n\r\n{"refresh_token":"********"}')


def test_no_secret_is_found_at_any_cut() -> None:
    """Case B144, cut at every byte: the same bytes are masked, and each secret has the same fingerprint."""
    expected = masked(B144)
    for out in at_every_cut(B144):
        assert recorded(out, C) == recorded(expected, C)
        assert recorded(out, S) == recorded(expected, S)
        assert records(out) == records(expected)


HIDDEN = [
    "Authorization: Bearer {}",
    "authorization:Basic   {}",
    "AUTHORIZATION : Token\t{}",
    "Authorization: {}",
    "Authorization: Unknown-Scheme {}",
    'Proxy-Authorization: Digest username="{}", response="x"',
    "Authorization: Bearer\r\n {}",
    "Cookie: a=1; b={}",
    "Cookie: {}",
    "Set-Cookie: a={}; Path=/",
    "DPoP: {}",
    "X-Api-Key: {}",
    "api-key: {}",
    "X-Auth-Token: {}",
    "X-Goog-Api-Key: {}",
    "Ocp-Apim-Subscription-Key: {}",
    "Private-Token: {}",
    "X-Amz-Security-Token: {}",
    "CF-Access-Client-Secret: {}",
    "Cf-Access-Jwt-Assertion: {}",
    "X_API_KEY: {}",
    "X: a\r\n\tAuthorization: {}",
    "X: a\rAuthorization: {}",
    "Authorization: Bearer a\r{}",
    "Location: https://h/cb?state=1&code={}&x=2",
    "Location: /cb#access_token={}",
    "Location: /cb?access%5Ftoken={}",
    "Referer: /?a=b#x?api_key={}",
    "Content-Location: /?token={}",
    "Refresh: 0; url=/?key={}",
    "Link: </a?sig={}>; rel=next",
    "Location: /a?x=1\r\n  &code={}",
    "Location: /login?next=https%3A%2F%2Fh%2Fcb%3Fstate%3D1%26code%3D{}",
    "Sec-WebSocket-Protocol: mcp, bearer, {}",
    "Sec-WebSocket-Protocol: base64url.bearer.authorization.{}",
    "X-Jwt: {}",
    "X-Key: {}",
    "\0Authorization: Bearer {}",
    "\x1b\x7fX-Api-Key: {}",
]


@pytest.mark.parametrize("line", HIDDEN)
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_headers_that_hold_a_secret(line: str, end: str) -> None:
    secret = "S3cret/=+.~"
    head = end.join(["GET / HTTP/1.1", "Host: a", line.format(secret), "Accept: */*", "", ""]).encode()
    expected = masked([(C, head)])
    assert secret.encode() not in whole(expected)
    kept = recorded(expected, C).decode()
    assert kept.startswith(f"GET / HTTP/1.1{end}Host: a{end}")
    assert kept.endswith(f"{end}Accept: */*{end}{end}")
    assert line.partition("{")[0].split(" ")[0] in kept
    for out in at_every_cut([(C, head)]):
        if line == "Authorization: {}" or "Unknown" in line or line.startswith("Sec-"):
            assert secret.encode() not in whole(out)
        else:
            assert out[len(OPENINGS) :][-2:] == expected[-2:]
            assert recorded(out, C) == recorded(expected, C)
            assert records(out) == records(expected)


SHOWN = [
    "Mcp-Session-Id: 1868a90c",
    "MCP-Protocol-Version: 2025-11-25",
    "Mcp-Param-Token: us-west1",
    "Mcp-Name: password",
    "Authorization-Info: x",
    'WWW-Authenticate: Bearer resource_metadata="http://h/.well-known/oauth?x=1"',
    "Access-Control-Allow-Credentials: true",
    "Access-Control-Allow-Headers: Authorization",
    "Sec-WebSocket-Protocol: mcp",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==",
    "Idempotency-Key: 12",
    "Last-Event-ID: token-7",
    "Location: /cb?sessionId=12&session_id=3&state=4#x",
    "Location: /?page_token=12&nextToken=3&code_challenge=4&token_type=5",
    "Authorization:",
    "X-Tokens: 12",
    "Accept: text/html;q=0.9, */*;key=1",
    "X-Comment: what?code=12",
]


@pytest.mark.parametrize("line", SHOWN)
def test_headers_that_hold_none(line: str) -> None:
    talk = [(C, request(headers=[line]))]
    assert recorded(masked(talk), C) == talk[0][1]
    assert not records(masked(talk))


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("/mcp?api_key=abc", "/mcp?api_key=***"),
        ("/mcp?x=1&token=abc&y=2", "/mcp?x=1&token=***&y=2"),
        ("/sse?code=a;b#c", "/sse?code=***#c"),
        ("http://h:1/cb?code=abc", "http://h:1/cb?code=***"),
        ("/messages?sessionId=abc&session_id=def", "/messages?sessionId=abc&session_id=def"),
        ("/?code=&x", "/?code=&x"),
        ("/code=abc", "/code=abc"),
        ("/?decode=abc&keys=1", "/?decode=abc&keys=1"),
        ("/?token[]=abc&user[password]=d&a[token][1]=e&b[0]=f", "/?token[]=***&user[password]=*&a[token][1]=*&b[0]=f"),
        ("/?token%5B%5D=abc&x[=1&]=2&[]=3", "/?token%5B%5D=***&x[=1&]=2&[]=3"),
        ("/?id_token_hint=abc&SAMLResponse=def", "/?id_token_hint=***&SAMLResponse=***"),
        ("/?next=%2Fcb%3Faccess_token%3Dabc%26x%3D1&y=2", "/?next=%2Fcb%3Faccess_token%3D***********&y=2"),
        ("/?next=%2Fcb%23a%3d1%26id%5Ftoken%3dabc&y=2", "/?next=%2Fcb%23a%3d1%26id%5Ftoken%3d***&y=2"),
        ("/?next=%252Fcb%253Fid%255Ftoken%253Dabc", "/?next=%252Fcb%253Fid%255Ftoken%253D***"),
        ("/?q=100%&code=abc", "/?q=100%&code=***"),
        ("/?q=%25%2&code=abc", "/?q=%25%2&code=***"),
        ("/?next=%3Fdecode%3Dabc%26keys%3D1%2526%", "/?next=%3Fdecode%3Dabc%26keys%3D1%2526%"),
        ("/?" + "a" * 300 + "token=abc", "/?" + "a" * 300 + "token=***"),
    ],
)
def test_keys_in_the_request_target(target: str, kept: str) -> None:
    talk = [(C, request(target=target))]
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, C) == request(target=kept)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (
            b"grant_type=authorization_code&code=abc&redirect_uri=x",
            b"grant_type=authorization_code&code=***&redirect_uri=x",
        ),
        (b"refresh%5Ftoken=a%2Fb&scope=x", b"refresh%5Ftoken=*****&scope=x"),
        (
            b"client_assertion=abc&client_assertion_type=x&code_verifier=d",
            b"client_assertion=***&client_assertion_type=x&code_verifier=*",
        ),
        (b"id_token_hint=abc&SAMLResponse=d&token[]=e", b"id_token_hint=***&SAMLResponse=*&token[]=*"),
        (b"target=%2Fcb%3Fcode%3Dabc%26x&z=1", b"target=%2Fcb%3Fcode%3D*******&z=1"),
        (b"username=me&password=p%26q\r\n", b"username=me&password=*******"),
        (b"code_challenge=abc&token_type_hint=x&sessionId=y", b"code_challenge=abc&token_type_hint=x&sessionId=y"),
        (b"&&=a&code&code==&code=a", b"&&=a&code&code=*&code=*"),
        (b'{"client_secret":"abc"}', b'{"client_secret":"***"}'),
    ],
)
@pytest.mark.parametrize("header", [FORM, FORM + "; charset=utf-8", "X: no type"])
def test_fields_of_forms(body: bytes, kept: bytes, header: str) -> None:
    talk = [(C, request(body, headers=[header]))]
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, C) == request(kept, headers=[header])


@pytest.mark.parametrize("media", ["{}; charset=utf-8", "{}, x", '"{}"', "{};", " {} ,{}", "'{}' ; a=b"])
def test_forms_whose_type_is_spelt_in_other_ways(media: str) -> None:
    header = "Content-Type: " + media.format("Application/X-WWW-Form-URLEncoded", "text/html")
    out = masked([(C, request(b"code=abc", headers=[header]))])
    assert recorded(out, C) == request(b"code=***", headers=[header])


@pytest.mark.parametrize(
    "beginning", ["data:", "data: ", "event: x\ndata:", "id:1\n", "retry: 1\n", ": hi\n", "\n\ndata:"]
)
@pytest.mark.parametrize("header", ["Content-Type: text/plain", "X: no type"])
def test_what_begins_like_an_event_stream_is_no_form(beginning: str, header: str) -> None:
    """A server that forgets the type of its streams has JSON-RPC in them all the same."""
    event = beginning.encode() + b'{"jsonrpc":"2.0","result":{"u":"/?a=1&token=abc"}}\n\ndata: &token=abc&\n\n'
    talk = [(C, request(target="/mcp")), (S, response(event, [header]))]
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, S) == talk[1][1]


@pytest.mark.parametrize("beginning", ["dat", "data", "date:", "ids:", "x:", "eventual"])
def test_what_only_nearly_begins_like_an_event_stream_may_be_a_form(beginning: str) -> None:
    talk = [(C, request(target="/mcp")), (S, response(beginning.encode() + b"=1&token=abc"))]
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, S) == response(beginning.encode() + b"=1&token=***")


JSON_BODIES = [
    (
        b'{"access_token":"abc","token_type":"Bearer","expires_in":3600}',
        b'{"access_token":"***","token_type":"Bearer","expires_in":3600}',
    ),
    (b' \n{ "id_token" : "a\\"b\\\\" , "refresh_token": "c" }', b' \n{ "id_token" : "******" , "refresh_token": "*" }'),
    (b'{"access\\u005ftoken":"abc"}', b'{"access\\u005ftoken":"***"}'),
    (
        b'{"accessToken":"abc","apiKey":"d","clientSecret":"e"}',
        b'{"accessToken":"***","apiKey":"*","clientSecret":"*"}',
    ),
    (
        b'\xef\xbb\xbf{"a":{"password":"b","c":["}","{\\"",{"code":"x"}]},"password":"abc"}',
        b'\xef\xbb\xbf{"a":{"password":"b","c":["}","{\\"",{"code":"x"}]},"password":"***"}',
    ),
    (b'{"code":404,"token":null,"secret":true,"password":["x"],"assertion":{"code":"y"}}', None),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"token"},"token":"x"}', None),
    (b'{"result":{"access_token":"x","content":[{"code":"y"}]},"jsonrpc":"2.0","id":1}', None),
    (b'{"method":"tools/call","params":{"name":"login","arguments":{"password":"x"}},"jsonrpc":"2.0","id":1}', None),
    (b'[{"jsonrpc":"2.0","id":1},{"access_token":"x"}]', None),
    (
        b'{"registration_access_token":"abc","client_id":"x","client_secret_expires_at":0}',
        b'{"registration_access_token":"***","client_id":"x","client_secret_expires_at":0}',
    ),
    (b'{"token_endpoint":"http://h/token","code_challenge_methods_supported":["S256"]}', None),
    (b'{"sessionId":"x","session_id":"y","nextPageToken":"z"}', None),
    (b'{"a":"code","b":"\\"","code":"x"}{"code":"y"}', b'{"a":"code","b":"\\"","code":"*"}{"code":"*"}'),
    (b'{"code":"abc', b'{"code":"***'),
    (b'{"a":{"b":1,"code":"x"', None),
    (b'"code=abc"', None),
]


@pytest.mark.parametrize(("body", "kept"), JSON_BODIES)
@pytest.mark.parametrize("header", [JSON, "Content-Type: application/problem+json; charset=utf-8"])
def test_members_at_the_top_of_json(body: bytes, kept: bytes | None, header: str) -> None:
    talk = [(C, request(target="/mcp")), (S, response(body, [header]))]
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, S) == response(kept or body, [header])


@pytest.mark.parametrize("media", ["text/event-stream", "text/html", "application/octet-stream"])
@pytest.mark.parametrize("target", ["/mcp", "/token"])
def test_other_bodies_are_left_alone(media: str, target: str) -> None:
    body = b'data: {"access_token":"abc"}\n\ncode=abc&password=x\nAuthorization: Bearer x\n'
    talk = [(C, request(target=target)), (S, response(body, [f"Content-Type: {media}"]))]
    assert recorded(masked(talk), S) == talk[1][1]


def test_a_secret_over_several_chunks_of_a_body_is_one_secret() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    talk = [(C, request()), (S, head + b'13\r\n{"access_token":"ab\r\n2\r\ncd\r\n4\r\ne"} \r\n0\r\n\r\n')]
    expected = masked(talk)
    assert recorded(expected, S) == head + b'13\r\n{"access_token":"**\r\n2\r\n**\r\n4\r\n*"} \r\n0\r\n\r\n'
    assert {record["fp"] for record in records(expected)} == {fingerprint(b"abcde")}
    assert [record["length"] for record in records(expected)] == [2, 2, 1]
    for out in at_every_cut(talk):
        assert recorded(out, S) == recorded(expected, S)
        assert records(out) == records(expected)


def test_a_long_secret_costs_little_memory() -> None:
    body = b'{"access_token":"' + b"x" * 3000 + b'"}'
    chunked = b"".join(b"1\r\n" + body[n : n + 1] + b"\r\n" for n in range(len(body))) + b"0\r\n\r\n"
    talk = [(C, request()), (S, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked)]
    assert sum(record["length"] for record in records(masked(talk))) == 3000


def test_several_requests_on_one_connection() -> None:
    one = request(b'{"jsonrpc":"2.0"}', "/mcp", [JSON, "Authorization: Bearer abc"])
    two = request(b"code=abc", headers=[FORM])
    answer = response(b'{"access_token":"abc"}', [JSON])
    talk = [(C, one + two + one), (S, answer + answer), (S, answer)]
    out = masked(talk)
    assert b"abc" not in whole(out)
    assert [record["fp"] for record in records(out)] == [fingerprint(b"abc")] * 6


def test_trailers_are_headers_too() -> None:
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    talk = [(C, head + b"X-Auth-Token: abc\r\n\r\n")]
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, C) == head + b"X-Auth-Token: ***\r\n\r\n"


@pytest.mark.parametrize(
    "before",
    [
        b"\x00garbage\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"b" * 300_000 + b"\r\n",
    ],
)
def test_credential_lines_in_what_is_not_decoded(before: bytes) -> None:
    lost = b"Authorization: Bearer abc\r\nPOST /?token=def HTTP/9\r\nX: y\r\n"
    out = masked([(C, before), (C, lost)])
    assert recorded(out, C) == before + b"Authorization: Bearer ***\r\nPOST /?token=*** HTTP/9\r\nX: y\r\n"


def test_urls_in_any_line_of_what_is_not_decoded() -> None:
    """What is left over of a body may stand right before the next request."""
    talk = [(C, request(b"{}")), (C, b"x: y"), (C, request(target="/?code=abc"))]
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, C) == request(b"{}") + b"x: y" + request(target="/?code=***")


# -- compressed bodies of token endpoints ------------------------------------------------------------------------------

GZIP = "Content-Encoding: gzip"


@pytest.mark.parametrize(
    "target",
    [
        *("/token", "/oauth2/v1/token/", "/login/oauth/access_token?x=1", "/register", "/x/token.php"),
        *("/oauth2/v1/clients", "/oauth/clients", "/oidc/reg", "/connect/register", "/oauth", "/oauth2", "/v1/client"),
        *("/register/s6BhdRkqt3", "/oidc/reg/abc?x=1", "/oauth2/v1/clients/0oa"),
    ],
)
def test_a_compressed_answer_of_a_token_endpoint_is_left_out(target: str) -> None:
    talk = [(C, request(target=target)), (S, response(b"compressed", [GZIP]) + response(b"{}", [JSON]))]
    out = masked(talk)
    assert recorded(out, S) == response(b"compressed", [GZIP]).removesuffix(b"compressed") + response(b"{}", [JSON])
    assert [body for _, kind, _, body in out if kind == "gap"] == [{"bytes": 10, "why": "secret"}]
    for other in at_every_cut(talk):
        assert recorded(other, S) == recorded(out, S)
        assert sum(body["bytes"] for _, kind, _, body in other if kind == "gap") == 10


def test_what_handed_over_a_secret_makes_a_token_endpoint() -> None:
    ask = request(b"grant_type=refresh_token&refresh_token=abc", "/anything", [FORM])
    plain = request(b'{"jsonrpc":"2.0"}', "/anything", [JSON])
    answer = response(b"compressed", [GZIP])
    out = masked([(C, ask), (S, answer), (C, plain), (S, answer), (C, ask + plain), (S, answer + answer)])
    assert recorded(out, S).count(b"compressed") == 2
    assert [body["bytes"] for _, kind, _, body in out if kind == "gap"] == [10, 10]


def test_a_compressed_request_to_a_token_endpoint_is_left_out() -> None:
    out = masked([(C, request(b"compressed", "/token", [GZIP]) + request(b"code=abc", "/token", [FORM]))])
    assert recorded(out, C).endswith(b"code=***")
    assert b"compressed" not in whole(out)
    (record,) = records(out)
    assert record["start"] == len(recorded(out, C)) - 3  # offsets count what is recorded


def test_compressed_bodies_elsewhere_are_kept() -> None:
    answer = response(b"compressed", [GZIP])
    for target in ("/mcp", "/tokenize", "/token/count", "/registry", "/clients/x/mcp", "/oauth/mcp", "/register/1/mcp"):
        assert recorded(masked([(C, request(target=target)), (S, answer)]), S) == answer


def test_a_rewrite_after_what_was_left_out_keeps_its_place() -> None:
    masker = Masker(lambda: SALT)
    masker([*OPENINGS, (1, "chunk", C, request()), (2, "chunk", S, response(b"compressed", [GZIP]))])
    body = {"start": 500, "length": 3, "data": "new", "by": "mcpsniff"}
    assert masker([(3, "rewrite", S, body)]) == [(3, "rewrite", S, {**body, "start": 490})]


def test_secrets_in_what_left_instead_are_masked() -> None:
    masker = Masker(lambda: SALT)
    masker(OPENINGS)
    for data, kept in [
        ("A: b\r\nAuthorization: Basic abc\r\n", "A: b\r\nAuthorization: Basic ***\r\n"),
        ({"b64": "/w=="}, None),
    ]:
        (entry,) = masker([(1, "rewrite", C, {"start": 0, "length": 0, "data": data, "by": "x"})])
        assert entry[3]["data"] == (kept or data)


def test_a_message_that_somebody_changed_is_recorded_as_it_left() -> None:
    """Payloads are left alone, whatever in them looks like a line that an error quotes, or the target of a request."""
    masker = Masker(lambda: SALT)
    masker(OPENINGS)
    for data in (
        '{"a":1,"b":{"c":"d"}, "a b":"x","e":"http://f/?token=g&h=i"}',
        'id: 4\r\ndata: {"a":1,"b":"x"}\r\n\r\n',
        '[{"b":"x"}]',
    ):
        for by in ("addon", "mcpsniff"):
            body = {"start": 0, "length": 9, "data": data.replace(', "a b":"x"', "") if by == "mcpsniff" else data}
            assert masker([(1, "rewrite", C, {**body, "by": by})]) == [(1, "rewrite", C, {**body, "by": by})]


# -- losses ------------------------------------------------------------------------------------------------------------


def around_a_gap(before: bytes, size: int, after: bytes, channel: int = C) -> bytes:
    """What is recorded of ``after`` when ``size`` bytes before it were lost, the same at every cut."""
    found = {kept for _, kept in cut_around_a_gap(before, size, after, channel)}
    (kept,) = found
    return kept


def cut_around_a_gap(before: bytes, size: int, after: bytes, channel: int = C) -> Iterator[tuple[int, bytes]]:
    for place in range(len(after)):
        masker = Masker(lambda: SALT)
        ask = request(target="/mcp") if channel == S else b""
        out = masker([*OPENINGS, (1, "chunk", C, ask), (2, "chunk", channel, before)])
        gap = (3, "gap", channel, {"bytes": size, "why": "queue"})
        assert masker([gap]) == [gap]
        out = masker([(4, "chunk", channel, piece) for piece in (after[:place], after[place:]) if piece])
        assert not masker._failed
        yield place, recorded(out, channel)


def test_the_rest_of_a_secret_after_a_gap_is_hidden() -> None:
    kept = around_a_gap(b"GET / HTTP/1.1\r\nAuthorization: Bea", 4, b"ecret\r\nX-Api-Key: abc\r\n\r\n")
    assert kept == b"*****\r\nX-Api-Key: ***\r\n\r\n"
    assert around_a_gap(request(), 100, b"ecret\r\nA: b\r\n\r\n") == b"*****\r\nA: b\r\n\r\n"
    for place, kept in cut_around_a_gap(request(), 100, request()):
        if place == 0 or place > len("POST /"):  # a read that shows that a head begins there
            assert kept == request()


def test_a_body_with_a_gap_is_hidden_unless_it_is_json_rpc() -> None:
    form = request(b"a=1&code=abcdefgh", headers=[FORM])
    assert around_a_gap(form[:-8], 5, form[-3:] + request()) == b"***" + request()
    rpc = response(b'{"result":{"a":"bcdefgh"},"jsonrpc":"2.0","id":1}', [JSON])
    assert around_a_gap(rpc[:-30], 5, rpc[-25:], S) == rpc[-25:]
    lost = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n{"access_token":"a'
    for place, kept in cut_around_a_gap(lost, 9, b'ecret\r\n2\r\n"}\r\n0\r\n\r\n', S):
        assert b"*******" in kept
        assert kept == b"*******2\r\n**\r\n0\r\n\r\n" or place in {8, 9}  # half a chunk's size might be anything


def test_a_token_answer_whose_head_was_lost() -> None:
    kept = around_a_gap(request(), 100, b'{\n "access_token": "abc",\n "a": 1\n}\n')
    assert b"abc" not in kept


# -- bodies without HTTP framing ---------------------------------------------------------------------------------------

META = {
    "start": "POST /token?access_token=EX-TOK-1 HTTP/1.1",
    "headers": [
        ["Authorization", "bearer EX-TOK-2"],
        ["Content-Type", "application/x-www-form-urlencoded"],
        ["X-Name", "é"],
    ],
    "authority": "h:1",
}


def test_a_channel_of_one_body() -> None:
    masker = Masker(lambda: SALT)
    answer = {
        "start": "HTTP/1.1 200 OK",
        "headers": [["Content-Type", "application/json"], ["Location", "/#code=EX-TOK"]],
    }
    out = masker(
        [
            (1, "open", 4, {"kind": "http-request", "dir": "c2s", "conn": 1, "meta": META}),
            (2, "chunk", 4, b"code=EX-"),
            (3, "chunk", 4, b"TOK-6"),
            (4, "close", 4, {"how": "eof"}),
            (5, "open", 5, {"kind": "http-response", "dir": "s2c", "conn": 1, "of": 4, "meta": answer}),
            (6, "chunk", 5, b'{"access_token":"EX-TOK-7"}'),
            (7, "close", 5, {"how": "eof"}),
        ]
    )
    assert b"EX-TOK" not in whole(out)
    assert recorded(out, 4) == b"code=********"
    assert recorded(out, 5) == b'{"access_token":"********"}'
    meta = out[0][3]["meta"]
    assert meta["start"] == "POST /token?access_token=******** HTTP/1.1"
    assert meta["headers"] == [["Authorization", "bearer ********"], *META["headers"][1:]]
    assert (meta["authority"], META["headers"][0][1]) == ("h:1", "bearer EX-TOK-2")
    assert meta["masked"] == [
        {"what": "access_token", "fp": fingerprint(b"EX-TOK-1")},
        {"what": "Authorization", "fp": fingerprint(b"EX-TOK-2")},
    ]
    assert [(kind, channel) for _, kind, channel, _ in out if kind == "mask"] == [("mask", 4), ("mask", 5)]


@pytest.mark.parametrize(("target", "left"), [("/token", 0), ("/mcp", 10)])
def test_a_compressed_body_without_framing(target: str, left: int) -> None:
    masker = Masker(lambda: SALT)
    gzip = {"start": "HTTP/1.1 200 OK", "headers": [["Content-Encoding", "br"]]}
    out = masker(
        [
            (
                1,
                "open",
                4,
                {"kind": "http-request", "dir": "c2s", "conn": 1, "meta": {"start": f"GET {target} HTTP/1.1"}},
            ),
            (2, "open", 5, {"kind": "http-response", "dir": "s2c", "conn": 1, "of": 4, "meta": gzip}),
            (3, "chunk", 5, b"compressed"),
        ]
    )
    assert len(recorded(out, 5)) == left


# -- laws --------------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *(
            request(),
            request(b"code=abc&x=1", headers=[FORM]),
            request(b'{"token":"abc","x":{', "/?code=abc#d", [JSON]),
        ),
        *(
            response(b'{"token":"a\\"b","jsonrpc":"2.0"}', [JSON]),
            response(b"x" * 9, [GZIP]),
            b"HTTP/1.1 101 Up\r\n\r\n",
        ),
        *(b"POST / HTTP/1.1\r\n", b"Transfer-Encoding: chunked\r\n", b"Authorization: Bearer abc\r\n", b" folded\r\n"),
        *(
            b"Cookie:",
            b"Location: /?token=",
            b"\r\n",
            b"\n",
            b"\r",
            b'3\r\n{"c\r\n',
            b"0\r\n\r\n",
            b'":"',
            b"&code=",
            b"=%3Fcode%3D",
            b"%25",
            b"data:",
            b"[]=",
            b"{",
            b'"',
        ),
        *(b"HTTP/1.1 200 OK\r\n\r\n", b"Content-Type: application/json\r\n"),
    ]
)
STREAM = st.lists(PIECES | st.binary(max_size=5), max_size=8).map(b"".join)


@given(st.lists(st.tuples(st.sampled_from([C, S]), STREAM), max_size=8), st.booleans())
@settings(max_examples=300)
def test_only_secrets_change(talk: list[tuple[int, bytes]], closed: bool) -> None:
    """Lengths are equal and unmasked bytes unchanged, whatever passes; see `masking.assert_laws`."""
    masked(talk, closed=closed)


@given(STREAM, STREAM, st.lists(st.integers(0), max_size=5))
@settings(max_examples=200)
def test_the_reads_do_not_matter(asked: bytes, said: bytes, places: list[int]) -> None:
    def cut(channel: int, data: bytes) -> list[tuple[int, bytes]]:
        edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
        return [(channel, data[a:b]) for a, b in pairwise(edges) if a < b]

    expected = masked([(C, asked), (S, said)])
    out = masked([*cut(C, asked), *cut(S, said)])
    for channel in (C, S):
        assert recorded(out, channel) == recorded(expected, channel)
        assert records(out, channel) == records(expected, channel)


def structure(talk: list[tuple[int, bytes]]) -> list[tuple[object, ...]]:
    """What kinds of parts there are, and where."""
    http = Http1Connection(C, S)
    parts = [part for t, (channel, data) in enumerate(talk) for part in http.feed(t, channel, data)]
    parts += [part for channel in (C, S) for part in http.finish(99, channel)]
    return [
        (type(part), part.span if isinstance(part, Data) else part.spans, getattr(part, "framing", None))
        for part in parts
    ]


@given(st.lists(st.tuples(st.sampled_from([C, S]), STREAM), max_size=6))
@settings(max_examples=200)
def test_what_is_masked_is_read_as_before(talk: list[tuple[int, bytes]]) -> None:
    out = masked(talk)
    expected = structure(talk)
    if Undecoded not in [kind for kind, *_ in expected] and "gap" not in [kind for _, kind, *_ in out]:
        kept = [(channel, body) for _, kind, channel, body in out if kind == "chunk" and channel is not None]
        assert structure(kept) == expected


HOSTILE = {
    "string": b'{"token":"' + b"x" * 2_000_000,
    "escapes": b'{"a":"' + b'\\"' * 500_000,
    "nested": b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000,
    "open_objects": b'{"a":[' + b'{"b' * 200_000,
    "members": b"{" + b'"a":1,' * 50_000,
    "fields": b"a=1&code=b&" * 50_000,
    "key": b"a" * 2_000_000,
    "escapes_in_values": b"a=" + b"%3F%" * 200_000,
    "escaped_percents": b"a=%3Fb" + b"%25" * 100_000 + b"25" * 500_000,
    "json_key": b'{"' + b"a" * 2_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("read", [61, 1 << 16])
def test_time_is_linear_in_the_bytes(name: str, read: int) -> None:
    """Anything quadratic would meet the time-out."""
    body = HOSTILE[name][: 1 << 18 if read == 61 else None]
    masker = Masker(lambda: SALT)
    masker([*OPENINGS, (1, "chunk", C, request()), (2, "chunk", S, b"HTTP/1.1 200 OK\r\n\r\n")])
    for start in range(0, len(body), read):
        masker([(3, "chunk", S, body[start : start + read])])
    assert not masker._failed


@given(st.lists(st.tuples(st.sampled_from([C, S]), STREAM | st.integers(0, 30)), max_size=10))
def test_gaps_anywhere_harm_nothing(steps: list[tuple[int, bytes | int]]) -> None:
    masker = Masker(lambda: SALT)
    masker(OPENINGS)
    for t, (channel, step) in enumerate(steps):
        if isinstance(step, int):
            entry = (t, "gap", channel, {"bytes": step, "why": "queue"})
            assert masker([entry]) == [entry]
        else:
            out = masker([(t, "chunk", channel, step)])
            gone = sum(body["bytes"] for _, kind, _, body in out if kind == "gap")
            assert len(recorded(out, channel)) + gone == len(step)
    assert not masker._failed


def test_a_fault_of_ours_leaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    masker = Masker(lambda: SALT)
    masker(OPENINGS)
    monkeypatch.setattr("mcpsniff.proxy.mask_head.HeadScanner.scan", lambda *_: 1 / 0)
    out = masker(
        [(1, "chunk", C, b"GET / HTTP/1.1\r\n"), (2, "chunk", C, b"Cookie: a\r\n"), (3, "close", C, {"how": "eof"})]
    )
    assert out == [
        (1, "gap", C, {"bytes": 16, "why": "secret"}),
        (2, "gap", C, {"bytes": 11, "why": "secret"}),
        (3, "close", C, {"how": "eof"}),
    ]


def test_connections_that_are_over_are_forgotten() -> None:
    masker = Masker(lambda: SALT)
    for _ in range(100):
        masker([*OPENINGS, (1, "chunk", C, request(b"code=a", headers=[FORM])), (2, "chunk", S, response())])
        masker([(3, "close", C, {"how": "eof"}), (3, "close", S, {"how": "eof"})])
    assert not masker._channels
    assert not masker._connections


# -- the store's salt, and the way to the disk -------------------------------------------------------------------------


def test_a_store_keeps_its_salt_to_itself(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "captures"
    said: list[str] = []
    salt = store_salt(str(folder), said.append)
    assert len(salt) == 32
    assert store_salt(str(folder), said.append) == salt
    assert store_salt(str(tmp_path / "other"), said.append) != salt
    assert [path.name for path in folder.iterdir()] == [NAME]
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert said == []


@pytest.mark.parametrize("spoil", ["open", "short", "link", "folder"])
def test_a_salt_that_others_may_know_is_not_used(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / NAME
    if spoil == "link":
        (tmp_path / "else").write_bytes(b"x" * 32)
        path.symlink_to("else")
    elif spoil == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"x" * (32 if spoil == "open" else 5))
        path.chmod(0o640 if spoil == "open" else 0o600)
    said: list[str] = []
    salt = store_salt(str(tmp_path), said.append)
    assert len(salt) == 32
    assert salt != b"x" * 32
    assert len(said) == 1
    assert str(path) in said[0]


def test_nothing_reaches_the_disk_unmasked(tmp_path: Path) -> None:
    """Case B144, through the thread that stores."""
    recorder = Recorder()
    path = tmp_path / "x.mcpcap"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    header = {"run": "R", "started": "2026-11-29T10:00:00.000000Z"}
    said: list[str] = []
    storing = Storing(
        recorder,
        lambda: CaptureWriter(descriptor, str(path), header),
        said.append,
        open_masker=lambda: Masker(lambda: store_salt(str(tmp_path), said.append)),
    )
    for _, kind, channel, body in OPENINGS:
        recorder.mark(kind, channel, body)
    for channel, data in B144:
        recorder.append((recorder.clock(), CHUNK, channel, data))
        recorder.settle(len(data) + 256, bulk=False)
    recorder.append((recorder.clock(), CHUNK, C, b"GET / HTTP/1.1\r\nCookie: unfinished"))
    storing.start()
    assert storing.finish(10) == 0
    assert said == []
    text = path.read_text()
    assert "EX-TOK" not in text
    assert "unfinished" not in text
    lines = [json.loads(line) for line in text.splitlines()[1:]]
    assert sum(line[1] == "mask" for line in lines) == 10
    assert lines[-1][1:3] == ["mask", C]
