"""A capture is served over Streamable HTTP: sessions, refusals, bodies, and what carries no message."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.replay.serving import INITIALIZE, Client, over_http
from tests.replay.staging import answer, call, note, request, script_of
from tests.transcript.http_sessions import TROUBLE

OPEN = "@http\n@open 2025-11-25 recorded-id\n"
ROUTING = (
    "Accept",
    "Content-Type",
    "Authorization",
    "Mcp-Session-Id",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "Last-Event-ID",
)
PIPES = "@open 2025-11-25\n"


def said(value: Any) -> str:
    return json.dumps(value)


def recorded(asked: Any, answered: Any, more: str = "") -> str:
    return f"C> POST /mcp {said(asked)}\nS> 200 {said(answered)}\n{more}"


def test_each_client_gets_a_session_of_its_own_and_its_id_back() -> None:
    script = OPEN + recorded(call(3), answer(3, content="same"))

    async def act(client: Client) -> None:
        other = Client(client.server)
        assert (await client.open("a"))["id"] == "a"
        assert (await other.open(7))["id"] == 7
        ids = [one.headers["Mcp-Session-Id"] for one in (client, other)]
        assert len({*ids, "recorded-id"}) == 3
        for one in (client, other):
            came = await one.post(call("x"))
            assert (came.status, await came.json()) == (200, answer("x", content="same"))
        unknown = await client.post(call(9), Mcp_Session_Id="recorded-id")
        assert unknown.status == 404
        missing = await client.post(call(9), Mcp_Session_Id="")
        assert missing.status == 400
        assert (await missing.json())["error"]["message"].startswith("Bad Request: Mcp-Session-Id")
        assert (await client.request("DELETE")).status == 200  # nothing recorded
        assert (await client.post(call(9))).status == 404
        assert (await other.post(call(9))).status == 200
        other.close()

    assert over_http(script, act).matcher.missed == 0


def test_a_client_that_hung_up_when_it_had_seen_its_session_was_given_one() -> None:
    """And the next client is given the next opening, as it was recorded."""
    initialize = {**INITIALIZE, "id": 1}
    first = f"C> POST /mcp {said(initialize)}\nS> 200 STREAM\n    Mcp-Session-Id: given-up\nC> RESET\n"
    script = f"@http\n{first}@open 2025-11-25 recorded-id\n" + recorded(call(3), answer(3))

    async def act(client: Client) -> None:
        other = Client(client.server)
        given_up = await client.post(initialize)
        assert given_up.status == 200
        assert given_up.headers["mcp-session-id"]
        given_up.close()
        assert (await other.open(7))["id"] == 7
        assert other.headers["Mcp-Session-Id"] != given_up.headers["mcp-session-id"]
        other.close()

    over_http(script, act)


def test_a_session_that_was_ended_by_its_client_is_gone() -> None:
    script = OPEN + recorded(call(3), answer(3)) + "C> DELETE /mcp\nS> 204\n"

    async def act(client: Client) -> None:
        await client.open()
        gone = await client.request("DELETE")
        assert gone.status == 204
        assert "content-type" not in gone.headers
        assert (await client.post(call(4))).status == 404
        assert (await client.request("GET")).status == 404
        assert (await client.request("DELETE", Mcp_Session_Id="never-there")).status == 404
        del client.headers["Mcp-Session-Id"]
        await client.open()
        assert (await client.post(call(4))).status == 200

    over_http(script, act)


def test_a_server_that_gave_no_session_ids_gives_none() -> None:
    script = (
        "@http\n@open 2025-06-18 none\n"
        + recorded(call(1), answer(1, content=1))
        + recorded(call(2), answer(2, content=2))
    )

    async def act(client: Client) -> None:
        for _ in range(2):  # a client that opens a conversation begins at the beginning
            await client.open()
            assert "Mcp-Session-Id" not in client.headers
            came = [await (await client.post(call(5))).json() for _ in range(3)]
            assert [one["result"]["content"] for one in came] == [1, 2, 2]
        assert (await client.request("GET")).status == 405

    over_http(script, act)


def test_the_recorded_head_is_given_back_without_what_belonged_to_its_connection() -> None:
    script = f"""@http
C> POST /api/mcp {said(INITIALIZE)}
S> 200 {said(answer(0, protocolVersion="2025-11-25", capabilities={}, serverInfo={"name": "s", "version": "1"}))}
    MCP-Session-ID: recorded-id
    Content-Type: application/json; charset=utf-8
    X-Powered-By: old \u00e9
    X-Kept: yes
    Connection: close
    Date: Thu, 01 Jan 1970 00:00:00 GMT
    Server: old
@session recorded-id
C> POST /api/mcp {said(note("initialized"))}
S> 204
"""

    async def act(client: Client) -> None:
        for path in ("/mcp", "/api/mcp", "/api/mcp/"):
            first = await client.post(INITIALIZE, path)
            assert first.status == 200
            assert first.headers["content-type"] == "application/json; charset=utf-8"
            assert first.headers["server"] == "old"
            assert first.headers["x-kept"] == "yes"
            assert "x-powered-by" not in first.headers  # no UTF-8
            assert "1970" not in first.headers["date"]
            assert "connection" not in first.headers
            done = await client.post(note("initialized"), path, Mcp_Session_Id=first.headers["mcp-session-id"])
            assert done.status == 204
        assert (await client.post(INITIALIZE, "/elsewhere")).status == 404

    over_http(script, act)


def test_what_http_refused_is_refused_once_more_and_only_to_the_like_of_it() -> None:
    """The first request went without a token, one call had a wrong header; later ones were served."""
    refused = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no such version"}}
    script = f"""@http
C> POST /mcp {said(INITIALIZE)}
S> 401 who are you
    WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:8000/.well-known/x", scope="a"
@open 2025-11-25 recorded-id
C> POST /mcp {said(call(4))}
    MCP-Protocol-Version: 1999-01-01
S> 400 {said(refused)}
{recorded(call(5), answer(5, content="ok"))}"""

    async def act(client: Client) -> None:
        first = await client.post(INITIALIZE)
        assert (first.status, await first.body()) == (401, b"who are you")
        challenge = first.headers["www-authenticate"]
        assert challenge == f'Bearer resource_metadata="{client.server.origin}/.well-known/x", scope="a"'
        await client.open()
        served = await client.post(call("a"), MCP_Protocol_Version="2025-11-25")
        assert (served.status, (await served.json())["result"]["content"]) == (200, "ok")
        wrong = await client.post(call("b"), MCP_Protocol_Version="1999-01-01")
        assert (wrong.status, await wrong.json()) == (400, refused)
        served = await client.post(call("c"), MCP_Protocol_Version="2025-11-25")
        assert served.status == 200

    over_http(script, act)


def test_metadata_of_the_recorded_server_names_the_address_that_serves_now() -> None:
    body = {
        "resource": "http://127.0.0.1:9000/mcp",
        "authorization_servers": ["http://127.0.0.1:8000", "https://other"],
    }
    script = f"""@http
C> GET /.well-known/oauth-protected-resource/mcp
S> 404 not here
C> GET /.well-known/oauth-protected-resource
S> 200 {said(body)}
{OPEN.removeprefix("@http")}"""

    async def act(client: Client) -> None:
        found = await client.request("GET", "/.well-known/oauth-protected-resource")
        origin = client.server.origin
        assert await found.json() == {"resource": f"{origin}/mcp", "authorization_servers": [origin, "https://other"]}
        missing = await client.request("GET", "/.well-known/oauth-protected-resource/mcp")
        assert (missing.status, await missing.body()) == (404, b"not here")
        assert (await client.request("GET", "/.well-known/oauth-authorization-server")).status == 404

    over_http(script, act)


@pytest.mark.parametrize("recorded_stream", [True, False])
def test_the_accept_header_is_respected(*, recorded_stream: bool) -> None:
    answered = said(answer(3, content="ok"))
    reply = f"S> 200 STREAM\nS> EVENT {answered}\nS> END\n" if recorded_stream else f"S> 200 {answered}\n"
    script = OPEN + f"C> POST /mcp {said(call(3))}\n" + reply

    async def act(client: Client) -> None:
        await client.open()
        both = await client.post(call(4))
        assert both.headers["content-type"] == ("text/event-stream" if recorded_stream else "application/json")
        for accept in ("text/event-stream", "text/*;q=0.5, application/json;q=0"):
            (event,) = await (await client.post(call(4), Accept=accept)).events()
            assert event.message == answer(4, content="ok")
        assert await (await client.post(call(4), Accept="application/json")).json() == answer(4, content="ok")
        neither = await client.post(call(4), Accept="text/html")
        assert (neither.status, (await neither.json())["error"]["message"][:14]) == (406, "Not Acceptable")
        assert (await client.post(call(4), Accept="")).status == 200
        assert (await client.post(call(4), Accept="*/*")).status == 200

    over_http(script, act)


def test_what_was_never_recorded_is_a_json_rpc_error_and_the_session_goes_on() -> None:
    """B123."""

    async def act(client: Client) -> None:
        await client.open()
        came = await client.post(call("q", "other"))
        assert came.status == 200
        error = (await came.json())["error"]
        assert "other" in error["message"]
        assert error["data"]["nearest"]["method"] == "tools/call"
        assert (await client.post(note("never/heard/of"))).status == 202
        broken = await client.post(b'{"jsonrpc":')
        assert (broken.status, (await broken.json())["error"]["code"]) == (400, -32700)
        assert (await client.post(call(4))).status == 200

    assert over_http(OPEN + recorded(call(3), answer(3)), act).matcher.missed == 1


def test_a_batch_is_answered_by_a_batch() -> None:
    asked = [call(1, "a"), note("progress", progressToken=1, progress=1), call(2, "b")]
    script = f"""@http
@open 2025-03-26 recorded-id
C> POST /mcp {said(asked)}
S> 200 {said([answer(2, content="b"), answer(1, content="a")])}
"""

    async def act(client: Client) -> None:
        await client.open()
        came = await client.post([call("y", "b"), call("x", "a")])
        assert sorted(await came.json(), key=str) == [answer("x", content="a"), answer("y", content="b")]
        assert (await client.post([note("initialized"), note("initialized")])).status == 202

    over_http(script, act)


def test_requests_of_2026_07_28_need_no_session_and_headers_that_contradict_are_refused_as_recorded() -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    refused = {"jsonrpc": "2.0", "id": 5, "error": {"code": -32020, "message": "Mcp-Name does not match"}}
    asked = request(5, "tools/call", name="t", **meta)
    script = f"""@http
@modern
C> POST /mcp {said(asked)}
    Mcp-Name: other
S> 400 {said(refused)}
C> POST /mcp {said(asked)}
S> 200 {said(answer(5, resultType="complete"))}
"""

    async def act(client: Client) -> None:
        client.headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "t"}
        good = await client.post({**asked, "id": "n"})
        assert (good.status, await good.json()) == (200, answer("n", resultType="complete"))
        assert "mcp-session-id" not in good.headers
        bad = await client.post({**asked, "id": "n"}, Mcp_Name="another")
        assert (bad.status, await bad.json()) == (400, {**refused, "id": "n"})
        unknown = await client.post(request(1, "tools/list", **meta), Mcp_Method="tools/list", Mcp_Name="")
        assert (unknown.status, (await unknown.json())["error"]["code"]) == (404, -32601)
        for method in ("GET", "DELETE"):
            assert (await client.request(method)).status == 405

    over_http(script, act)


def test_a_probe_for_a_modern_server_is_no_miss_where_a_legacy_one_was_recorded() -> None:
    async def act(client: Client) -> None:
        probe = await client.post(request("p", "server/discover"), MCP_Protocol_Version="2026-07-28")
        assert probe.status == 400
        await client.open()

    assert over_http(OPEN, act).matcher.missed == 0


def test_pages_from_elsewhere_and_other_names_for_this_machine_are_kept_out() -> None:
    async def act(client: Client) -> None:
        for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example", "http://[::1"):
            assert (await client.post(INITIALIZE, Origin=origin)).status == 403, origin
        assert (await client.post(INITIALIZE, Host="rebound.example:80")).status == 403
        assert (await client.post(INITIALIZE, Host="localhost.evil.example")).status == 403
        for host in ("localhost", "LOCALHOST:8000", "[::1]:8000", "127.0.0.1"):
            assert (await client.post(INITIALIZE, Host=host)).status == 200, host
        page = await client.post(INITIALIZE, Origin="http://localhost:6274")
        assert page.status == 200
        assert page.headers["access-control-allow-origin"] == "http://localhost:6274"
        assert "Mcp-Session-Id" in page.headers["access-control-expose-headers"]
        asked = await client.request(
            "OPTIONS", Origin="http://localhost:6274", Access_Control_Request_Headers="content-type, mcp-session-id"
        )
        assert (asked.status, asked.headers["access-control-allow-headers"]) == (204, "content-type, mcp-session-id")
        assert "POST" in asked.headers["access-control-allow-methods"]

    over_http(OPEN, act)


def test_a_capture_of_pipes_gets_bodies_where_there_is_only_an_answer_and_streams_where_there_is_more() -> None:
    script = (
        PIPES
        + f"C> {said(call(3))}\nS> {said(answer(3, content='alone'))}\n"
        + f"S> {said(note('tools/list_changed'))}\n"
        + f"C> {said(request(4, 'tools/call', name='ask', _meta={'progressToken': 4}))}\n"
        + f"S> {said(note('progress', progressToken=4, progress=1))}\nS> not json\n"
        + f"S> {said(request(0, 'roots/list'))}\nC> {said(answer(0, roots=[]))}\n"
        + f"S> {said(answer(4, content='asked'))}\n"
    )

    async def act(client: Client) -> None:
        await client.open()
        alone = await client.post(call("a"))
        assert (alone.headers["content-type"], await alone.json()) == ("application/json", answer("a", content="alone"))
        stream = await client.request("GET")
        event = await stream.event()
        assert event is not None
        assert event.message == note("tools/list_changed")
        asking = await client.post(request("b", "tools/call", name="ask", _meta={"progressToken": "tok"}))
        assert asking.headers["content-type"] == "text/event-stream"
        progress, asked = await asking.event(), await asking.event()
        assert progress is not None
        assert asked is not None
        assert progress.message == note("progress", progressToken="tok", progress=1)
        assert asked.message["method"] == "roots/list"
        assert await asking.is_idle()
        assert (await client.post(answer(asked.message["id"], roots=[]))).status == 202
        assert [event.message for event in await asking.events()] == [answer("b", content="asked")]
        assert await stream.is_idle()

    assert over_http(script, act).tally.answers_same == 1


def test_an_answer_that_never_came_does_not_come_and_a_connection_that_broke_off_breaks_off() -> None:
    script = f"""{OPEN}C> POST /mcp {said(call(3, "never"))}
C2> POST /mcp {said(call(4, "breaks"))}
S2> EOF
C3> POST /mcp {said(call(5, "torn"))}
S3> 200 STREAM
S3> EVENT {said(note("message", level="info", data="x"))}
S3> RESET
C> EOF
"""

    async def act(client: Client) -> None:
        await client.open()
        never = await client.ask("POST", "", said(call("n", "never")).encode())
        assert await (await client.ask("POST", "", said(call("b", "breaks")).encode())).is_broken_off()
        torn = await client.post(call("t", "torn"))
        event = await torn.event()
        assert event is not None
        assert event.message["method"] == "notifications/message"
        assert await torn.is_broken_off()
        assert not await never.has_anything()

    over_http(script, act)


@pytest.mark.parametrize("name", ["trouble", "streamable", "modern"])
def test_the_recorded_requests_get_the_recorded_statuses_in_their_order(name: str) -> None:
    path = Path(__file__).parents[1] / "transcript" / "golden_http" / f"{name}.dialogue"
    script = script_of(TROUBLE if name == "trouble" else path.read_text())
    statuses: list[tuple[str, int | None, int]] = []

    async def act(client: Client) -> None:
        client.headers = {}
        sessions: dict[str, str] = {}
        asked = [message for talk in script.talks for message in talk.messages if message.direction == "c2s"]
        for web in script.webs:
            request, wanted = web.http.request, web.http.status
            if request is None or wanted == 101 or web.state == "open" or web.http.by is not None:
                continue
            headers = {name: sessions.get(value, value) for name, value in request.headers if name in ROUTING}
            bodies = [m.frame.payload for m in asked if m.http is web.http]
            body = bodies[0] if bodies else b""
            if wanted is None:
                assert await (await client.ask(web.http.method, web.http.target, body, **headers)).is_broken_off()
                continue
            came = await client.request(web.http.method, web.http.target, body, **headers)
            statuses.append((f"{web.number} {web.http.method} {web.http.target}", wanted, came.status))
            if web.http.session_given is not None:
                sessions[web.http.session_given] = came.headers["mcp-session-id"]

    over_http(script, act, timeout=0.1)
    assert len(statuses) >= 5
    assert [one for one in statuses if one[1] != one[2]] == []
