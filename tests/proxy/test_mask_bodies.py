"""Secrets in bodies of OAuth and of logins, whatever shape and type they come in, at any cut."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.proxy.mask import Masker
from mcpsniff.proxy.mask_body import is_token_path
from mcpsniff.proxy.mask_json import DEEPEST, TOO_DEEP
from tests.proxy.masking import (
    OPENINGS,
    SALT,
    C,
    S,
    Talk,
    at_every_cut,
    masked,
    recorded,
    records,
    request,
    response,
    whole,
)

FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"
GZIP = "Content-Encoding: gzip"


def answered(body: bytes, target: str = "/token", headers: tuple[str, ...] = (JSON,), ask: bytes = b"") -> bytes:
    """What is recorded of the body of an answer, the same at every cut."""
    return passed([(C, request(ask, target, [FORM] if ask else [])), (S, response(body, headers))], body)


def asked(body: bytes, header: str, target: str = "/anything") -> bytes:
    """What is recorded of the body of a request, the same at every cut."""
    return passed([(C, request(body, target, [header]))], body)


def passed(talk: Talk, body: bytes) -> bytes:
    """What is recorded of ``body``, which ends ``talk``: the same however it is cut."""
    *before, (channel, data) = talk
    head = len(data) - len(body)
    cuts = [[place] for place in range(head, len(data))] + [list(range(head, len(data)))]
    expected = masked(talk)
    for places in cuts:
        out = masked([*before, *((channel, data[a:b]) for a, b in pairwise([0, *places, len(data)]))])
        assert recorded(out, channel) == recorded(expected, channel)
        assert records(out) == records(expected)
    return recorded(expected, channel)[head:]


# -- JSON at every level -----------------------------------------------------------------------------------------------

SLACK = b'{"ok":true,"authed_user":{"id":"U1","access_token":"xoxp","token_type":"user"},"team":{"id":"T9"}}'

DEEP = [
    (SLACK, SLACK.replace(b"xoxp", b"****")),
    (b'{"a":[1,{"b":[{"refresh_token":"abc"}]}],"c":"d"}', b'{"a":[1,{"b":[{"refresh_token":"***"}]}],"c":"d"}'),
    (b'[{"access_token":"abc"},["x",{"id_token":"d"}]]', b'[{"access_token":"***"},["x",{"id_token":"*"}]]'),
    (
        b'{"password":["a",["b",7]],"token":{"value":"c","x":{"y":"d"}},"e":"f"}',
        b'{"password":["*",["*",7]],"token":{"value":"*","x":{"y":"*"}},"e":"f"}',
    ),
    (b'{"a":{"client\\u005fsecret":"a\\"b\\\\"}}', b'{"a":{"client\\u005fsecret":"******"}}'),
    (b'{"a":{}, "b":[] ,"c":[{}],"token" : "x"}', b'{"a":{}, "b":[] ,"c":[{}],"token" : "*"}'),
    (b'{"result":{"access_token":"abc"}}', b'{"result":{"access_token":"***"}}'),
    (b'{"d":{"code":"x"}}{"d":{"code":"y"}}', b'{"d":{"code":"*"}}{"d":{"code":"*"}}'),
    (b'{"a":{"token":"abc', b'{"a":{"token":"***'),
    (
        b'{"error":{"code":"invalid_grant","data":{"code":"x","token":"abc"}}}',
        b'{"error":{"code":"invalid_grant","data":{"code":"x","token":"***"}}}',
    ),
    (b'{"errors":[{"code":"E1"}],"data":{"code":"abc"}}', b'{"errors":[{"code":"E1"}],"data":{"code":"***"}}'),
    (
        b'{"verification_uri_complete":"https://h/device?user_code=AB-CD&x=1","u":"https:\\/\\/h\\/?a=1\\u0026code=abc\\u0026x"}',
        b'{"verification_uri_complete":"https://h/device?user_code=*****&x=1","u":"https:\\/\\/h\\/?a=1\\u0026code=**********"}',
    ),
    (
        b'{"u":"/cb\\u003fstate=1\\u0026c\\u006fde\\u003dabc","v":"\\ud83d?to\\nken=abc \\uzzzz?token=d"}',
        b'{"u":"/cb\\u003fstate=1\\u0026c\\u006fde\\u003d***","v":"\\ud83d?to\\nken=abc \\uzzzz?token=*"}',
    ),
    (b'{"active":true,"scope":"a b","sub":"me","code_challenge":"x","token_type":"Bearer","session_id":"s"}', None),
    (b'{"code":404,"data":{"token":null,"secret":true,"pin":[1]}}', None),
    (b'{"jsonrpc":"2.0","id":1,"result":{"token":"x"}}', None),
    (b'[{"jsonrpc":"2.0","id":1,"result":{"token":"x"}},{"token":"y"}]', None),
    (b'{"method":"tools/call","params":{"arguments":{"token":"x"}},"jsonrpc":"2.0","id":1}', None),
    (b'[{"method":"x","params":{"token":"x"},"jsonrpc":"2.0"}]', None),
]


@pytest.mark.parametrize(("body", "kept"), DEEP)
def test_all_levels_of_what_a_token_endpoint_answers(body: bytes, kept: bytes | None) -> None:
    assert answered(body) == (kept or body)


@pytest.mark.parametrize("ask", [b"code=abc", b"grant_type=client_credentials", b"x=1&client_assertion_type=y"])
def test_all_levels_where_the_request_says_what_it_is(ask: bytes) -> None:
    assert answered(SLACK, "/api/v1/do", ask=ask) == SLACK.replace(b"xoxp", b"****")
    assert answered(SLACK, "/api/v1/do", ask=b"x=1") == SLACK


def test_all_levels_after_a_secret_at_the_top() -> None:
    body = b'{"a":{"token":"p"},"access_token":"q","authed_user":{"access_token":"r"}}'
    assert answered(body, "/api") == b'{"a":{"token":"p"},"access_token":"*","authed_user":{"access_token":"*"}}'


def test_messages_keep_their_rules_where_credentials_are_handed_over() -> None:
    """A request that is a message has a message for an answer, in whatever order its members are."""
    message = b'{"method":"tools/call","params":{"token":"x"},"jsonrpc":"2.0","id":1}'
    answer = b'{"result":{"structuredContent":{"access_token":"x"}},"jsonrpc":"2.0","id":1}'
    talk = [(C, request(message, "/oauth2", [JSON])), (S, response(answer, [JSON])), (C, request(b"", "/oauth2"))]
    talk.append((S, response(SLACK, [JSON])))
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, C).startswith(talk[0][1])
        assert recorded(out, S) == talk[1][1] + response(SLACK.replace(b"xoxp", b"****"), [JSON])


def test_what_is_nested_too_deep_is_hidden() -> None:
    body = b'{"a":' + b"[" * (DEEPEST + 100) + b'{"token":"abc"}'
    out = masked([(C, request()), (S, response(body, [JSON]))])
    assert b"abc" not in whole(out)
    assert [record["what"] for record in records(out)] == [TOO_DEEP]
    level = b'{"a":' * (DEEPEST - 1) + b'{"token":"abc"}' + b"}" * (DEEPEST - 1)
    assert recorded(masked([(C, request()), (S, response(level, [JSON]))]), S).endswith(level.replace(b"abc", b"***"))


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"{'access_token': 'abc'}", 1),
        (b'{access_token:"abc"}', 1),
        (b'{"a":1 "token":"abc"}', 7),
        (b'{"token" = "abc"}', 9),
        (b"{\"a\":'abc'}", 5),
        (b'["a" "abc"]', 5),
        (b'{"a":-1.5e+3,/* abc */"b":1}', 13),
        (b'{\x00"\x00t\x00', 1),
    ],
)
def test_what_turns_out_to_be_no_json_is_hidden_from_there_on(body: bytes, shown: int) -> None:
    assert answered(body) == body[:shown] + b"*" * (len(body) - shown)
    assert answered(body, "/mcp") == body


@pytest.mark.parametrize("before", [b")]}',\n", b"for(;;);", b"callback(", b"var x = ", b"a=b&c="])
def test_json_after_something_else(before: bytes) -> None:
    assert answered(before + SLACK + b");", headers=("X: y",)) == before + SLACK.replace(b"xoxp", b"****") + b");"


def test_braces_in_a_form() -> None:
    assert answered(b"a=x{y}&code={z&b=c{&token=d", headers=("X: y",)) == b"a=x{y}&code=**&b=c{&token=*"


# -- registration, introspection, revocation, devices, pushed requests -------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        *("/introspect", "/token/introspection", "/revoke", "/oauth2/revoke_token", "/par", "/ext/par/request"),
        *("/device_authorization", "/login/device/code", "/v1/device/authorize", "/oauth2/devicecode", "/bc-authorize"),
        *("/api/oauth.v2.access", "/api/oauth.access", "/pushed_authorization_request", "/token/exchange"),
        *("/realms/r/clients-registrations/openid-connect", "/realms/r/clients-registrations/openid-connect/c1"),
        *("/authorize?response_mode=form_post&x=1", "https://h.test/token?x=1", "/oauth/request_token"),
    ],
)
def test_paths_where_credentials_are_handed_over(target: str) -> None:
    assert is_token_path(target)


@pytest.mark.parametrize(
    "target", ["/mcp", "/sse", "/api/exchange/mcp", "/device/7", "/parts", "/authorize", "/x?u=/token", "/decode"]
)
def test_paths_where_none_are(target: str) -> None:
    assert not is_token_path(target)


def test_a_registration() -> None:
    ask = b'{"redirect_uris":["http://h/cb"],"client_name":"c","jwks":{"keys":[]}}'
    body = b'{"client":{"client_id":"c1","client_secret":"s","registration_access_token":"t"},"redirect_uris":["http://h/cb"]}'
    talk = [(C, request(ask, "/anywhere", [JSON])), (S, response(body, [JSON]))]
    for out in [masked(talk), *at_every_cut(talk)]:
        assert recorded(out, C) == talk[0][1]
        assert recorded(out, S).endswith(body.replace(b'"s"', b'"*"').replace(b'"t"', b'"*"'))


# -- types that are odd, or not there ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "media",
    ["text/plain", "text/html", "application/octet-stream", "image/png", "text/javascript", "application/xml", None],
)
def test_any_type_where_credentials_are_handed_over(media: str | None) -> None:
    headers = (f"Content-Type: {media}",) if media else ()
    assert answered(SLACK, headers=headers) == SLACK.replace(b"xoxp", b"****")
    assert answered(b"access_token=abc&scope=x", headers=headers) == b"access_token=***&scope=x"
    header = headers[0] if headers else "X: y"
    assert asked(b"client_id=c&client_secret=abc", header, "/token") == b"client_id=c&client_secret=***"
    assert asked(b'{"a":{"code":"abc"}}', header, "/token") == b'{"a":{"code":"***"}}'


@pytest.mark.parametrize("media", ["text/plain", "text/html", "application/json", "x"])
def test_json_at_the_top_of_any_text_elsewhere(media: str) -> None:
    kept = b"abc" if media == "x" else b"***"
    assert answered(b'{"access_token":"abc"}', "/api", (f"Content-Type: {media}",)) == b'{"access_token":"%s"}' % kept


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("application/jwt", b"eyJhbGciOiJub25lIn0.e30."),
        ("application/token-introspection+jwt; x=y", b"eyJ"),
        ("application/ace+cbor", b"\xa1\x01\x43abc"),
        ("application/json; charset=utf-16", '{"access_token":"abc"}'.encode("utf-16")),
        ("application/json", b"\x00\x7b"),
    ],
)
def test_what_cannot_be_read_where_credentials_are_handed_over_is_hidden(media: str, body: bytes) -> None:
    header = f"Content-Type: {media}"
    assert answered(body, headers=(header,)) == b"*" * len(body)
    assert answered(body, "/mcp", headers=("Content-Type: application/ace+cbor",)) == body


# -- multipart/form-data -----------------------------------------------------------------------------------------------


def multipart(*parts: tuple[str, str], boundary: str = "X-b0", end: str = "\r\n") -> bytes:
    lines = []
    for head, value in parts:
        lines += ["--" + boundary, head, "", value]
    return end.join([*lines, f"--{boundary}--", ""]).encode()


def part(name: str, value: str, more: str = "") -> tuple[str, str]:
    return (f'Content-Disposition: form-data; name="{name}"{more}', value)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize(
    "header", ['Content-Type: multipart/form-data; boundary="X-b0"', "Content-Type: multipart/form-data", "X: no type"]
)
def test_parts_of_a_form(header: str, end: str) -> None:
    named = [("client_id", "c"), ("client_secret", "s3cret"), ("code", "--X-b"), ("refresh_token", "r\r\n-t")]
    kept = [("client_id", "c"), ("client_secret", "******"), ("code", "--X-b"), ("refresh_token", "*\r\n-*")]
    body = multipart(*[part(*one) for one in named], part("note", "see /?x=1&code=abc"), end=end)
    expected = multipart(*[part(*one) for one in kept], part("note", "see /?x=1&code=***"), end=end)
    assert asked(body, header) == expected


@pytest.mark.parametrize(
    "head",
    [
        "content-disposition:form-data;name=token",
        'CONTENT-DISPOSITION: form-data; filename="x.txt"; NAME = "token"',
        "Content-Type: text/plain\r\nContent-Disposition: form-data; name*=UTF-8''access%5Ftoken",
        'Content-Disposition: form-data;\r\n name="token"',
        'Content-Disposition: form-data; name="user[token]"',
        'Content-Disposition: form-data; filename="' + "x" * 2000 + '"; name="x"',
    ],
)
def test_how_a_part_may_be_named(head: str) -> None:
    header = "Content-Type: multipart/form-data; boundary=X-b0"
    body = multipart((head, "abc"), part("grant", "abc"))
    if len(head) > 1000:
        out = masked([(C, request(body, "/", [header]))])
        assert recorded(out, C).endswith(multipart((head, "***"), part("grant", "abc")))
    else:
        assert asked(b"preamble\r\n" + body, header) == b"preamble\r\n" + multipart((head, "***"), part("grant", "abc"))


def test_a_form_that_is_said_to_be_multipart() -> None:
    """As HAR files have it where they keep fields as a list."""
    header = "Content-Type: multipart/form-data; boundary=X-b0"
    assert asked(b"a=b&client_secret=abc&c=d", header) == b"a=b&client_secret=***&c=d"
    body = b"code=abc\r\n" + multipart(part("note", "x"))
    assert asked(body, header) == b"code=*****" + multipart(part("note", "x"))


def test_a_multipart_request_makes_its_answer_one_that_hands_over() -> None:
    body = multipart(part("grant_type", "client_credentials"))
    talk = [
        (C, request(body, "/do", ["Content-Type: multipart/form-data; boundary=X-b0"])),
        (S, response(SLACK, [JSON])),
    ]
    assert b"xoxp" not in whole(masked(talk))


# -- pages -------------------------------------------------------------------------------------------------------------

POSTED = (
    b'<!DOCTYPE html><form method="post" action="http://h/cb?state=1&amp;code=[abc]"><input type="hidden" name="code" '
    b'value="[def]"/><INPUT NAME=state VALUE=s1><input name = "id_token" value=\'[a"b]\'></form>'
)
SCRIPT = (
    b'<script>if (a<b && "<input name=code value=x>") location = "/cb?code=[abc]&state=1";</script>'
    b"<input name=code value=[y]>"
)
PAGES = [
    POSTED,
    SCRIPT,
    b'<input value="[abc]" type=hidden name=code>',
    b'<input type="submit" value="Continue"><input name value=[abc] >',
    b'<meta http-equiv=refresh content="0;url=/cb#access_token=[abc]&amp;x=1"><a href=/?token=[d]>1 < 2</a>',
    b'<!-- <input name="code" value="[abc]"> --><p title="a>b">x',
    b'<p>no secret: code=1, value="x"</p><select><option value=1></select>',
]
"""Secrets stand in brackets."""


def without_brackets(body: bytes) -> tuple[bytes, bytes]:
    """What is sent, and what is to be recorded of it."""
    kept = re.sub(rb"\[(.*?)\]", lambda found: b"*" * len(found[1]), body)
    return body.replace(b"[", b"").replace(b"]", b""), kept


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("target", "media"),
    [("/authorize", "text/html; charset=utf-8"), ("/login", "text/html"), ("/login", "x"), ("/a", "")],
)
def test_fields_and_addresses_in_pages(page: bytes, target: str, media: str) -> None:
    body, kept = without_brackets(page)
    assert answered(body, target, (f"Content-Type: {media}",)) == kept


def test_a_page_that_begins_with_text() -> None:
    page = b'Wait <input name="code" value="abc">'
    assert answered(page, "/authorize", ("Content-Type: text/html",)) == page.replace(b"abc", b"***")


def test_elements_with_telling_names_where_credentials_are_handed_over() -> None:
    """As GitHub answers, if it is asked to."""
    page = (
        b'<?xml version="1.0"?>\n<OAuth><scope>a</scope><access_token>(abc)</access_token>'
        b'<o:id_token x="1"><(![CDATA[d]]>)</o:id_token></OAuth>'
    )
    body = page.replace(b"(", b"").replace(b")", b"")
    kept = page.replace(b"(abc)", b"***").replace(b"(![CDATA[d]]>)", b"*" * 12)
    headers = ("Content-Type: application/xml",)
    assert answered(body, headers=headers) == kept
    assert answered(body, "/mcp", headers=headers) == body


# -- what is compressed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("media", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_compressed_form_is_left_out_wherever_it_goes(media: str) -> None:
    talk = [(C, request(b"compressed", "/any", [f"Content-Type: {media}", GZIP])), (S, response(SLACK, [JSON]))]
    out = masked(talk)
    assert b"compressed" not in whole(out)
    assert b"xoxp" not in whole(out)


def test_a_compressed_event_stream_and_a_compressed_message_stay() -> None:
    message = b'{"jsonrpc":"2.0","id":1,"method":"x"}'
    talk = [(C, request(message, "/oauth", [JSON])), (S, response(b"compressed", [GZIP, JSON]))]
    talk += [(C, request(b"", "/oauth")), (S, response(b"compressed", [GZIP, "Content-Type: text/event-stream"]))]
    out = masked(talk)
    assert recorded(out, S).count(b"compressed") == 2


# -- URLs and headers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("/cb?code=abc&state=xyz&iss=h&hmac=def", "/cb?code=***&state=xyz&iss=h&hmac=***"),
        ("/o?X-Goog-Signature=abc&Expires=1", "/o?X-Goog-Signature=***&Expires=1"),
        ("/cb?request_uri=urn:x&nonce=n&session_state=s", "/cb?request_uri=urn:x&nonce=n&session_state=s"),
    ],
)
def test_parameters_of_callbacks(target: str, kept: str) -> None:
    out = masked([(C, request(target=target))])
    assert recorded(out, C) == request(target=kept)


@pytest.mark.parametrize(
    ("header", "is_hidden"),
    [
        *[(name, True) for name in ("X-Amzn-Oidc-Data", "OAuth-Client-Attestation", "OAuth-Client-Attestation-PoP")],
        *[(name, True) for name in ("Proxy-Authorization", "Api-Key", "X-Api-Key", "X-Auth-Token", "Cookie", "DPoP")],
        *[(name, False) for name in ("X-Hub-Signature", "X-Hub-Signature-256", "DPoP-Nonce", "Proxy-Authenticate")],
    ],
)
def test_headers(header: str, is_hidden: bool) -> None:
    out = masked([(C, request(headers=[f"{header}: EX-TOK"]))])
    assert (b"EX-TOK" not in whole(out)) == is_hidden


# -- bodies without HTTP framing ---------------------------------------------------------------------------------------


def through_channels(target: str, ask: tuple[str, bytes], answer: tuple[str, bytes]) -> list[Any]:
    """An exchange as the engine on mitmproxy, its addon and ``import`` record it."""
    masker = Masker(lambda: SALT)
    out = []
    for channel, (media, body) in ((4, ask), (5, answer)):
        kind, direction = ("http-request", "c2s") if channel == 4 else ("http-response", "s2c")
        start = f"POST {target} HTTP/2.0" if channel == 4 else "HTTP/2.0 200"
        meta = {"start": start, "headers": [["content-type", media]]}
        out += masker([(1, "open", channel, {"kind": kind, "dir": direction, "conn": 1, "of": 4, "meta": meta})])
        for place in range(len(body)):
            out += masker([(2, "chunk", channel, body[place : place + 1])])
        out += masker([(3, "close", channel, {"how": "eof"})])
    return out


def test_channels_of_one_body() -> None:
    form, html = multipart(part("code", "EX-TOK")), b'<input name="code" value="EX-TOK">'
    deep = SLACK.replace(b"xoxp", b"EX-TOK")
    for target, ask, answer in [
        ("/token", ("", b"x=1"), ("text/html", deep)),
        ("/do", ("multipart/form-data; boundary=X-b0", form), ("application/json", deep)),
        ("https://h/do?x", ("text/plain", b"grant_type=password&x=1"), ("text/x", deep)),
        ("/authorize", ("", b""), ("text/html", html)),
        ("/anything", ("application/json", b'{"redirect_uris":[]}'), ("", b'{"a":[{"client_secret":"EX-TOK"}]}')),
    ]:
        out = through_channels(target, ask, answer)
        assert b"EX-TOK" not in b"".join([recorded(out, 4), recorded(out, 5)])
        assert len(recorded(out, 5)) == len(answer[1])
    message = b'{"result":{"token":"EX-TOK"},"jsonrpc":"2.0","id":1}'
    out = through_channels("/oauth", ("", b'{"jsonrpc":"2.0","id":1,"method":"x"}'), ("application/json", message))
    assert recorded(out, 5) == message


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Invalid header line: b'Authorization Bearer abc'", "Invalid header line: b'Authorization***********'"),
        (
            "it (Bad HTTP request line: b'GET /?code=abc HTTP/9')",
            "it (Bad HTTP request line: b'GET******************')",
        ),
        ("""b"it's \\" x" and b'' b'x' a""", """b"it*******" and b'' b'x' a"""),
        ("Invalid header line: b'X-Key abc", "Invalid header line: b'X-Key****"),
        ("line: b'" + "x" * 33 + "'", "line: b'" + "*" * 33 + "'"),
        ("web'x y' and 'x y'", "web'x y' and 'x y'"),
    ],
)
def test_lines_that_are_quoted_in_what_is_told(text: str, kept: str) -> None:
    masker = Masker(lambda: SALT)
    masker(OPENINGS)
    rewrite = {"start": 0, "length": 0, "by": "mcpsniff"}
    told = [
        (1, "comment", None, {"text": text, "by": "mcpsniff"}),
        (2, "rewrite", C, {**rewrite, "data": text}),
        (3, "close", C, {"how": "reset", "error": text}),
    ]
    assert masker(told) == [
        (1, "comment", None, {"text": kept, "by": "mcpsniff"}),
        (2, "rewrite", C, {**rewrite, "data": kept}),
        (3, "close", C, {"how": "reset", "error": kept}),
    ]


# -- laws --------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["access_token", "token", "code", "client_secret", "a", "x\\y", 'q"', "expires_in", "scope"])
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="?&#;%"), max_size=4)
TELLING = ("token", "secret", "code")
TREE = st.recursive(
    st.none() | st.booleans() | st.integers() | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def hidden(value: Any, *, is_secret: bool = False) -> Any:
    """A tree without the strings that are secret: what the masker is to leave, computed from the parsed tree."""
    if isinstance(value, str):
        return "" if is_secret else value
    if isinstance(value, list):
        return [hidden(item, is_secret=is_secret) for item in value]
    if isinstance(value, dict):
        return {name: hidden(item, is_secret=is_secret or name.endswith(TELLING)) for name, item in value.items()}
    return value


@given(st.dictionaries(NAMES, TREE, max_size=4) | st.lists(TREE, max_size=4), st.booleans(), st.data())
@settings(max_examples=200)
def test_exactly_the_secrets_of_any_tree_are_hidden(tree: Any, ascii_only: bool, data: st.DataObject) -> None:
    body = json.dumps(tree, ensure_ascii=ascii_only).encode()
    answer = response(body, [JSON])
    places = data.draw(st.lists(st.integers(1, len(answer) - 1), max_size=6, unique=True))
    pieces = [(S, answer[a:b]) for a, b in pairwise([0, *sorted(places), len(answer)])]
    out = masked([(C, request()), *pieces])
    masks = records(out, S)
    offset = len(answer) - len(body)
    kept = bytearray(recorded(out, S)[offset:])
    for record in sorted(masks, key=lambda record: -record["start"]):
        place = record["start"] - offset
        del kept[place : place + record["length"]]
    assert json.loads(kept) == hidden(tree)


PIECES = st.sampled_from(
    [
        *(b"--X-b0\r\n", b"--X", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b'Content-Disposition: form-data; name="code"'),
        *(
            b"<input name=",
            b"code",
            b' value="',
            b'"',
            b"'",
            b">",
            b"<",
            b"/",
            b"</script>",
            b"<script>",
            b"<token>",
            b"<!--",
        ),
        *(
            b'{"',
            b'":',
            b'"token":"',
            b"[",
            b"]",
            b"{",
            b"}",
            b",",
            b"\\u0026",
            b"\\",
            b"?code=",
            b"&amp;code=",
            b"%3Fcode%3D",
        ),
        *(b'"jsonrpc":"2.0"', b'"params":', b'"error":', b'"code"', b"abc", b" ", b"=", b"grant_type=x&", b"\xff"),
    ]
)
BODY = st.lists(PIECES | st.binary(max_size=3), max_size=16).map(b"".join)
MEDIA = st.sampled_from(["", "application/json", "text/html", "multipart/form-data", "image/png", "application/jwt"])


HALF = st.tuples(MEDIA, BODY)


@given(st.sampled_from(["/token", "/mcp"]), HALF, HALF, st.lists(st.integers(0), max_size=8))
@settings(max_examples=300)
def test_the_reads_do_not_matter(
    target: str, ask: tuple[str, bytes], answer: tuple[str, bytes], places: list[int]
) -> None:
    """Lengths and all that is no secret stay (see `masking.assert_laws`), and cuts change nothing."""
    talk = [
        (C, request(ask[1], target, [f"Content-Type: {ask[0]}"])),
        (S, response(answer[1], [f"Content-Type: {answer[0]}"])),
    ]
    expected = masked(talk)
    pieces = []
    for channel, data in talk:
        edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
        pieces += [(channel, data[a:b]) for a, b in pairwise(edges) if a < b]
    out = masked(pieces)
    assert [recorded(out, channel) for channel in (C, S)] == [recorded(expected, channel) for channel in (C, S)]
    assert [records(out, channel) for channel in (C, S)] == [records(expected, channel) for channel in (C, S)]


HOSTILE = {
    "strings in lists": b"[" + b'"a",' * 50_000,
    "escapes": b'{"a":"' + b"\\u0026" * 30_000,
    "secret escapes": b'{"a":"?code=' + b"\\u0026" * 30_000,
    "objects": b"[" + b'{"a":{"token":"b"}},' * 8_000,
    "delimiters": b"--b\r\n\r\n" + b"--b\r\n" * 30_000,
    "a long line": b"--b\r\n" + b"a" * 100_000,
    "a long value": b'--b\r\nX: y; name="code"\r\n\r\n' + b"a\n" * 8_000,
    "tags": b"<a b=c " * 30_000,
    "open tags": b"<" * 200_000,
    "a long attribute": b'<input name="' + b"a" * 100_000,
    "slashes": b"<a " + b"/ " * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("read", [61, 1 << 16])
def test_time_is_linear_in_the_bytes(name: str, read: int) -> None:
    """Anything quadratic would meet the time-out."""
    body = HOSTILE[name][: 1 << 15 if read == 61 else None]
    masker = Masker(lambda: SALT)
    masker([*OPENINGS, (1, "chunk", C, request()), (2, "chunk", S, b"HTTP/1.1 200 OK\r\n\r\n")])
    for start in range(0, len(body), read):
        masker([(3, "chunk", S, body[start : start + read])])
    assert not masker._failed


@pytest.mark.parametrize("beginning", [b"\x00\x01", b"\x89PNG\r\n\x1a\n", b"abc\x08", b"\xff\x02" * 8])
def test_a_body_that_is_no_text_is_not_looked_into_however_it_is_cut(beginning: bytes) -> None:
    body = beginning + b"&token=abcdefgh&a=1"
    talk = [(C, request(body, "/mcp"))]
    for out in at_every_cut(talk):
        assert recorded(out, C).endswith(body)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"a=1&token=\x00\x01secret\x02", ()),
        (b"a" * 64 + b"=\x00&token=secret", ()),
        (b"a=\x00&token=secret", ("Content-Type: application/x-www-form-urlencoded",)),
        (b'{"a":"\x00","token":"secret"}', ()),
    ],
)
def test_a_byte_that_no_text_has_does_not_uncover_what_is_one_nevertheless(
    body: bytes, headers: tuple[str, ...]
) -> None:
    for out in at_every_cut([(C, request(body, "/mcp", headers))]):
        assert b"secret" not in whole(out)


# -- JSON Web Keys -----------------------------------------------------------------------------------------------------

RSA = '{"kty":"RSA","n":"n","e":"AQAB","d":"<S>","p":"<S>","q":"<S>","dp":"<S>","dq":"<S>","qi":"<S>","kid":"1"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"client_name":"c","jwks":{"keys":[' + RSA + ',{"k":"<S>","kty":"oct","alg":"HS256"}]}}',
        '{"redirect_uris":[],"jwks":{"keys":[{"d":"<S>","crv":"P-256","kty":"EC","x":"x","y":"y"}]}}',
        '{"cnf":{"jwk":{"d":"<S>","kty":"OKP","x":"x"}},"d":"stays"}',
        '{"jwks":{"keys":[{"kty":"RSA","n":"n","oth":[{"r":"<S>","d":"<S>","t":"<S>"}]}]},"p":"stays","k":["stays"]}',
        RSA,
        '{"redirect_uris":["http://h/cb"],"software_statement":"<S>","software_id":"i"}',
    ],
)
def test_the_private_parts_of_keys_and_signed_statements_are_hidden(text: str) -> None:
    secret = "c2VjcmV0LXNlY3JldA"
    got = asked(text.replace("<S>", secret).encode(), JSON, "/register")
    assert got.decode() == text.replace("<S>", "*" * len(secret))


def test_a_member_called_like_the_part_of_a_key_stays_elsewhere() -> None:
    body = b'{"jwks":{"keys":[]},"d":"1","filter":{"k":"v","q":"w"},"p":["x"]}'
    assert asked(body, JSON, "/register") == body
