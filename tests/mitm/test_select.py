"""What of a forward proxy's traffic is MCP: judged by content, however it is cut, and nothing else is kept."""

import gzip
import json
from typing import Any

import pytest
from mitmproxy.http import Headers, HTTPFlow, Request, Response
from mitmproxy.test.tflow import tclient_conn, tserver_conn

from mcpsniff.errors import UsageError
from mcpsniff.proxy.mitm.content import ENOUGH, JsonBody, StreamBody
from mcpsniff.proxy.mitm.hosts import Hosts
from mcpsniff.proxy.mitm.known import Known, parameter, split
from mcpsniff.proxy.mitm.select import Select, besides
from mcpsniff.proxy.mitm.tap import Verdict

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
STREAM = {"accept": "application/json, text/event-stream"}
DROP, KEEP, WAIT = Verdict.DROP, Verdict.KEEP, Verdict.WAIT


def asking(method: str, url: str, **headers: str) -> HTTPFlow:
    flow = HTTPFlow(tclient_conn(), tserver_conn())
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    flow.request = Request.make(method, url, headers=Headers([(k.encode(), v.encode()) for k, v in fields.items()]))
    flow.request.timestamp_end = 1.0
    return flow


def answered(flow: HTTPFlow, status: int = 200, **headers: str) -> HTTPFlow:
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    flow.response = Response.make(status, headers=Headers(fields))
    return flow


def verdict(select: Select, flow: HTTPFlow, body: bytes = b"", answer: bytes | None = None) -> Verdict:
    """Play one exchange; its response, if there is any, has the body ``answer``. WAIT at the end means dropped."""
    found = select.begin(flow)
    for direction, data in (("c2s", body), ("c2s", b""), ("s2c", b""), ("s2c", answer)):
        if found is not WAIT:
            return found
        if data is not None and (data or direction == "s2c" or flow.request.method == "POST"):
            found = select.more(flow, direction, data)
    return found


def select(*only: str, everything: bool = False) -> Select:
    return Select(Hosts(only), everything=everything)


def talking(url: str = "https://mcp.test/mcp") -> Select:
    """One that has seen MCP at ``url``."""
    judge = select()
    assert verdict(judge, asking("POST", url), PING) is KEEP
    return judge


def message(method: str, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, **more}).encode()


@pytest.mark.parametrize(
    ("body", "lenient", "expected"),
    [
        (PING, False, True),
        (b"\xef\xbb\xbf \n" + PING, False, True),
        (b"[" + PING + b"]", False, True),
        (message("tools/later"), False, True),
        (message("eth_call", params=[]), False, False),
        (message("x/y"), True, True),
        (message("x/y", params={"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}), False, True),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', False, True),
        (b'{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}', False, True),
        (b'{"model":"gpt","messages":[{"jsonrpc":"2.0"}]}', False, False),
        (b'{"a":"\\"jsonrpc\\":\\"2.0\\""}', True, False),
        (b"grant_type=refresh_token", True, False),
        (b"", True, False),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":{"a":"' + b"x" * ENOUGH, False, True),
        (b'{"jsonrpc":"2.0","method":"eth_call","params":{"a":"' + b"x" * ENOUGH, False, False),
        (b'{"x":"' + b"x" * ENOUGH, True, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"', False, True),
    ],
)
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_body_is_judged_by_what_it_says(body: bytes, lenient: bool, expected: bool, piece: int, coding: str) -> None:
    if piece < 100 < len(body) and len(body) > ENOUGH:
        pytest.skip("the same, but slow")
    sent = gzip.compress(body) if coding else body
    judge = JsonBody(coding, lenient=lenient)
    found: bool | None = None
    for at in range(0, len(sent), piece):
        found = judge.feed(sent[at : at + piece])
        if found is not None:
            break
    assert (judge.end() if found is None else found) is expected


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"event: message\ndata: " + PING + b"\n\n", True),
        (b": hello\n\nid: 1\n\ndata: " + PING + b"\n\n", True),
        (b"event: endpoint\ndata: /messages?s=1\n\n", True),
        (b'data: {"choices":[]}\n\n', False),
        (b"data: [DONE]\n\n", False),
        (b"data: hello\n\n", False),
        (b": keep-alive\n\n", None),
        (b":" + b"x" * ENOUGH + b"\n\n", False),
    ],
)
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_a_stream_is_judged_by_its_first_event(stream: bytes, expected: bool | None, piece: int) -> None:
    judge = StreamBody("", lenient=False)
    found = None
    for at in range(0, len(stream), piece):
        found = judge.feed(stream[at : at + piece])
        if found is not None:
            break
    assert found is expected


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        (asking("POST", "https://a.test/x", Mcp_Session_Id="1"), KEEP),
        (asking("GET", "https://a.test/.well-known/oauth-protected-resource", MCP_Protocol_Version="2025-06-18"), KEEP),
        (
            asking("OPTIONS", "https://a.test/x", Access_Control_Request_Headers="content-type, mcp-protocol-version"),
            KEEP,
        ),
        (asking("OPTIONS", "https://a.test/x", Access_Control_Request_Headers="content-type"), DROP),
        (asking("HEAD", "https://a.test/x"), DROP),
        (asking("POST", "https://a.test/x", Content_Type="application/x-www-form-urlencoded"), DROP),
        (asking("POST", "https://a.test/x", Content_Type="multipart/form-data; boundary=1"), DROP),
        (asking("POST", "https://a.test/x", Content_Type="application/json"), WAIT),
        (asking("GET", "https://a.test/.well-known/openid-configuration"), WAIT),
        (asking("GET", "https://a.test/x"), WAIT),
    ],
)
def test_a_head_may_be_enough(flow: HTTPFlow, expected: Verdict) -> None:
    assert select().begin(flow) is expected


def test_a_get_is_judged_by_its_response() -> None:
    def got(answer: bytes, kind: str = "text/event-stream") -> Verdict:
        return verdict(select(), answered(asking("GET", "https://a.test/sse"), content_type=kind), answer=answer)

    assert got(b"event: endpoint\ndata: /m\n\n") is KEEP
    assert got(b"data: news\n\n") is DROP
    assert got(PING, "application/json") is DROP
    assert verdict(select(), answered(asking("GET", "https://a.test/x"), 405, mcp_session_id="1")) is KEEP
    assert verdict(select(), answered(asking("DELETE", "https://a.test/x"), 204)) is DROP


def test_a_place_where_mcp_was_spoken_is_recorded_whatever_is_sent_there() -> None:
    judge = talking()
    assert verdict(judge, asking("POST", "https://mcp.test/mcp?x=1"), b"{broken") is KEEP
    assert verdict(judge, asking("DELETE", "https://mcp.test/mcp")) is KEEP
    assert verdict(judge, asking("GET", "https://MCP.test:443/mcp")) is KEEP
    assert verdict(judge, asking("POST", "https://mcp.test/login"), b'{"password":"x"}') is DROP
    assert verdict(judge, asking("POST", "http://mcp.test/mcp"), b"{broken") is DROP
    assert verdict(judge, asking("POST", "https://mcp.test/other"), message("ext/own")) is KEEP
    assert verdict(judge, asking("POST", "https://else.test/other"), message("ext/own")) is DROP
    assert verdict(judge, asking("POST", "https://else.test/other", **STREAM), message("ext/own")) is KEEP


def test_a_header_of_mcp_is_enough_whatever_the_body_is() -> None:
    """No other protocol has it. A form beside it makes its path no place of MCP: that is a token endpoint."""
    judge = select()
    flow = asking("POST", "https://a.test/x", Content_Type="application/json", MCP_Protocol_Version="2025-06-18")
    assert verdict(judge, flow, b'{"id":1,"method":"eth_call"}') is KEEP
    form = "application/x-www-form-urlencoded"
    assert verdict(judge, asking("POST", "https://a.test/t", Content_Type=form, MCP_Protocol_Version="1")) is KEEP
    assert verdict(judge, asking("POST", "https://a.test/x"), b"{broken") is KEEP
    assert verdict(judge, asking("POST", "https://a.test/t", Content_Type=form)) is DROP


def test_a_legacy_endpoint_is_a_place() -> None:
    judge = select()
    stream = answered(asking("GET", "http://a.test/sse"), content_type="text/event-stream")
    assert verdict(judge, stream, answer=b"event: endpoint\ndata: /messages?sid=1\n\n") is KEEP
    assert verdict(judge, asking("POST", "http://a.test/messages?sid=1"), b"{") is KEEP
    assert verdict(judge, asking("POST", "http://a.test/message"), b"{") is DROP


def test_oauth_is_recorded_where_it_belongs_to_a_server() -> None:
    judge = talking()
    resource = "https://mcp.test/.well-known/oauth-protected-resource/mcp"
    assert verdict(select(), asking("GET", resource)) is not KEEP
    assert verdict(judge, asking("GET", resource)) is KEEP
    assert verdict(judge, asking("GET", "https://as.test/.well-known/oauth-authorization-server")) is not KEEP
    judge.known.learn({"resource": "https://mcp.test/mcp", "authorization_servers": ["https://as.test/tenant"]})
    assert verdict(judge, asking("GET", "https://as.test/.well-known/oauth-authorization-server/tenant")) is KEEP
    assert verdict(judge, asking("GET", "https://as.test/tenant/.well-known/openid-configuration")) is KEEP
    token = asking("POST", "https://as.test/t0k", Content_Type="application/x-www-form-urlencoded")
    assert verdict(judge, token) is DROP
    judge.known.learn({"token_endpoint": "https://as.test/t0k", "authorization_endpoint": "https://as.test/go"})
    assert verdict(judge, token) is KEEP
    assert verdict(judge, asking("GET", "https://as.test/go?client_id=1")) is KEEP
    assert (
        verdict(judge, asking("POST", "https://as.test/go", Content_Type="application/x-www-form-urlencoded")) is DROP
    )
    assert verdict(judge, asking("GET", "https://as.test/account")) is not KEEP


@pytest.mark.parametrize(
    "junk", [None, [], 7, {"authorization_servers": 1, "token_endpoint": []}, {"token_endpoint": "x"}]
)
def test_a_document_that_is_none_teaches_nothing(junk: Any) -> None:
    known = Known()
    known.learn(junk)
    assert not known.belongs("POST", "https://as.test:443", "/token")


def test_a_challenge_names_the_document_and_lets_the_old_places_count() -> None:
    judge = talking()
    form = "application/x-www-form-urlencoded"
    assert verdict(judge, asking("POST", "https://mcp.test/token", Content_Type=form)) is DROP
    challenged = answered(asking("POST", "https://mcp.test/mcp"), 401)
    assert challenged.response is not None
    challenged.response.headers["www-authenticate"] = 'Bearer x="y", resource_metadata="https://meta.test/doc"'
    assert judge.begin(challenged) is KEEP
    judge.responseheaders(challenged)
    assert verdict(judge, asking("GET", "https://meta.test/doc")) is KEEP
    assert verdict(judge, asking("POST", "https://mcp.test/token", Content_Type=form)) is KEEP
    assert verdict(judge, asking("POST", "https://mcp.test/tokens", Content_Type=form)) is DROP


@pytest.mark.parametrize(
    ("location", "there"),
    [
        ("https://meta.test/doc?x=1", "https://meta.test/doc?x=1"),
        ("/elsewhere", "https://mcp.test/elsewhere"),
        ("../resource.json#a", "https://mcp.test/resource.json"),
    ],
)
def test_a_document_is_followed_to_where_it_is(location: str, there: str) -> None:
    judge = talking()
    asked = answered(asking("GET", "https://mcp.test/.well-known/oauth-protected-resource"), 307, location=location)
    assert judge.begin(asked) is KEEP
    judge.responseheaders(asked)
    assert verdict(judge, asking("GET", there)) is KEEP
    assert verdict(judge, asking("GET", there.replace(".test/", ".test/x"))) is not KEEP


def test_a_redirect_to_nowhere_leads_nowhere() -> None:
    judge = talking()
    for location in ("", "http://[", "javascript:alert(1)", "//", "https://a:b/"):
        asked = answered(asking("GET", "https://mcp.test/.well-known/oauth-protected-resource"), 302, location=location)
        assert judge.begin(asked) is KEEP
        judge.responseheaders(asked)


def test_a_document_is_learnt_as_it_streams_by_and_every_piece_passes() -> None:
    judge = talking()
    document = json.dumps({"authorization_servers": ["https://as.test"]}).encode()
    flow = answered(asking("GET", "https://mcp.test/.well-known/oauth-protected-resource"), content_encoding="gzip")
    assert judge.begin(flow) is KEEP
    assert flow.response is not None
    flow.response.stream = lambda data: data
    judge.responseheaders(flow)
    assert callable(flow.response.stream)
    sent = gzip.compress(document)
    assert [flow.response.stream(piece) for piece in (sent[:5], sent[5:], b"")] == [sent[:5], sent[5:], b""]
    assert judge.known.is_authorizing("https://as.test:443")
    broken = answered(asking("GET", "https://mcp.test/.well-known/oauth-protected-resource"), content_encoding="gzip")
    assert judge.begin(broken) is KEEP
    assert broken.response is not None
    broken.response.stream = lambda data: data
    judge.responseheaders(broken)
    assert callable(broken.response.stream)
    assert broken.response.stream(b"\x1f\x8bnonsense}") == b"\x1f\x8bnonsense}"


def test_only_and_everything() -> None:
    judge = select("a.test", everything=True)
    assert judge.begin(asking("GET", "https://a.test/x")) is KEEP
    assert judge.begin(asking("POST", "https://b.test/mcp", Mcp_Session_Id="1")) is DROP
    assert (list(judge.kept), list(judge.passed)) == (["https://a.test"], ["https://a.test", "b.test:443"])


def test_a_server_is_named_once() -> None:
    """A tunnel that went to it is no other one, nor is a request there that was not recorded."""
    kept = ["https://a.test", "http://b.test:81"]
    passed = ["a.test:443", "https://a.test", "b.test:81", "a.test:81", "c.test:443", "https://c.test", "d.test:1"]
    assert besides(passed, kept) == ["a.test:81", "https://c.test", "d.test:1"]


@pytest.mark.parametrize(
    ("word", "inside", "outside"),
    [
        (
            "a.test",
            [("a.test", 443), ("A.TEST", 8443), ("a.test.", 80)],
            [("b.a.test", 443), ("xa.test", 1), ("a.testx", 1)],
        ),
        ("*.a.test", [("b.a.test", 443), ("c.b.a.test", 80)], [("a.test", 443), ("xa.test", 443)]),
        ("a.test:8443", [("a.test", 8443)], [("a.test", 443), ("a.test", 84430)]),
        ("127.0.0.1", [("127.0.0.1", 80)], [("127.0.0.10", 80), ("127x0.0.1", 80)]),
        ("::1", [("::1", 80), ("[::1]", 80)], [("::11", 80)]),
        ("[::1]:443", [("::1", 443)], [("::1", 80)]),
    ],
)
def test_hosts(word: str, inside: list[tuple[str, int]], outside: list[tuple[str, int]]) -> None:
    hosts = Hosts([word])
    assert [place for place in inside if not hosts.has(*place)] == []
    assert [place for place in outside if hosts.has(*place)] == []


@pytest.mark.parametrize("word", ["", "https://a.test", "a.test/x", "*", "a*.test", "a b", "a:x", "[", "u@a"])
def test_what_names_no_host_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="--only takes a host"):
        Hosts([word])


def test_urls_and_challenges() -> None:
    assert split("HTTPS://As.Test/x?y#z") == ("https://as.test:443", "/x")
    assert split("http://[::1]:80") == ("http://[::1]:80", "/")
    assert [split(url) for url in (None, 3, "/x", "ftp://a", "http://", "http://a:x/", "http://[")] == [None] * 7
    assert parameter('Bearer a=b, resource_metadata="u,v", c="d"', "resource_metadata") == "u,v"
    assert parameter("Bearer Resource_Metadata=u, c=d", "resource_metadata") == "u"
    assert parameter('Bearer x_resource_metadata="u"', "resource_metadata") == ""
    assert parameter("Basic", "resource_metadata") == ""


@pytest.mark.parametrize("host", ["", "\x1b[31m", "a b"])
def test_a_host_header_that_names_no_host_leaves_the_exchange_with_the_one_that_is_reached(host: str) -> None:
    chosen = select()
    flow = asking("POST", "https://mcp.test/mcp", Host=host)
    assert verdict(chosen, flow, message("initialize")) is Verdict.KEEP
    assert all(chosen.kept)
