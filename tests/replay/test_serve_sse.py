"""A capture is served over HTTP+SSE: an endpoint for each client, one stream for everything."""

import json
from urllib.parse import urljoin

import pytest

from tests.replay.serving import INITIALIZE, Answer, Client, over_http
from tests.replay.staging import answer, call, note, request

LOG = note("message", level="info", data="x")
CHANGED = note("tools/list_changed")


def said(value: object) -> str:
    return json.dumps(value)


RECORDED = f"""@http
@sse
S9> COMMENT ping
C> POST /messages?sessionId=1 {said(request(3, "tools/call", name="t", arguments={}, _meta={"progressToken": 3}))}
S> 202 Accepted
S9> EVENT event=message {said(note("progress", progressToken=3, progress=1))}
S9> EVENT {said(request(0, "roots/list"))}
C2> POST /messages?sessionId=1 {said(answer(0, roots=[]))}
S2> 200 thanks
S9> EVENT id=e1 {said(answer(3))}
"""


async def opened(client: Client, *, path: str = "/sse") -> tuple[Answer, str]:
    """The stream of a client, and its endpoint."""
    stream = await client.request("GET", path, Accept="text/event-stream")
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
    event = await stream.event()
    assert event is not None
    assert event.name == "endpoint"
    return stream, (event.data or b"").decode()


async def message(stream: Answer) -> object:
    while True:
        event = await stream.event()
        assert event is not None
        if event.data:
            return event.message


@pytest.mark.parametrize("timing", ["none", "x100"])
def test_everything_comes_on_the_stream_under_the_ids_of_the_client(timing: str) -> None:
    async def act(client: Client) -> None:
        stream, endpoint = await opened(client)
        assert endpoint.startswith("/messages?sessionId=")
        assert len(endpoint) > 50
        accepted = await client.post({**INITIALIZE, "id": "i"}, endpoint)
        assert (accepted.status, await accepted.body()) == (202, b"Accepted")
        first = await message(stream)
        assert isinstance(first, dict)
        assert first["id"] == "i"
        await client.post(note("initialized"), endpoint)
        asked = request("q", "tools/call", name="t", arguments={}, _meta={"progressToken": "tok"})
        assert (await client.post(asked, endpoint)).status == 202
        assert await message(stream) == note("progress", progressToken="tok", progress=1)
        roots = await message(stream)
        assert isinstance(roots, dict)
        assert await stream.is_idle()
        thanked = await client.post(answer(roots["id"], roots=[]), endpoint)
        assert (thanked.status, await thanked.body()) == (200, b"thanks")
        assert await message(stream) == answer("q")

    assert over_http(RECORDED, act, over_sse=True, timing=timing).tally.answers_same == 1


def test_clients_have_endpoints_of_their_own_which_end_with_the_stream() -> None:
    async def act(client: Client) -> None:
        one, first = await opened(client)
        other, second = await opened(client)
        assert first != second
        await client.post({**INITIALIZE, "id": 1}, first)
        await client.post({**INITIALIZE, "id": 2}, second)
        assert [json.dumps(await message(stream))[:26] for stream in (one, other)] == [
            '{"jsonrpc": "2.0", "id": 1',
            '{"jsonrpc": "2.0", "id": 2',
        ]
        one.close()
        while (refused := await client.post({**INITIALIZE, "id": 1}, first)).status == 202:
            pass
        assert refused.status == 404
        assert (await client.post({**INITIALIZE, "id": 3}, second)).status == 202
        assert (await client.post(INITIALIZE, "/messages?sessionId=1")).status == 404
        assert (await client.post(INITIALIZE)).status == 405  # a client that looks for Streamable HTTP
        assert (await client.request("GET", "/mcp")).status == 404

    over_http(RECORDED, act, over_sse=True)


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ("/msg/?session_id=abc&x=1", "/msg/?session_id=NAME&x=1"),
        ("http://127.0.0.1:8000/messages?sessionId=1", "ORIGIN/messages?sessionId=NAME"),
        ("messages", "messages?sessionId=NAME"),
    ],
)
def test_the_endpoint_is_spelt_as_recorded(recorded: str, wanted: str) -> None:
    script = f"""@http
C9> GET /events/sse
S9> 200 STREAM
S9> COMMENT hello
S9> EVENT event=endpoint {recorded}
C> POST {urljoin("/events/sse", recorded.removeprefix("http://127.0.0.1:8000"))} {said(request(1, "ping"))}
S> 202 Accepted
S9> EVENT {said(answer(1))}
"""

    async def act(client: Client) -> None:
        stream = await client.request("GET", "/events/sse", Accept="text/event-stream")
        hello, event = await stream.event(), await stream.event()
        assert hello is not None
        assert hello.comments == ("hello",)
        assert event is not None
        endpoint = (event.data or b"").decode()
        name = next(iter(client.server._legacy._sessions))
        assert endpoint == wanted.replace("NAME", name).replace("ORIGIN", client.server.origin)
        path = urljoin("/events/sse", endpoint.removeprefix(client.server.origin))
        assert (await client.post(request("p", "ping"), path)).status == 202
        assert await message(stream) == answer("p")

    over_http(script, act, over_sse=True)


def test_a_capture_of_streamable_http_is_served_over_sse_and_the_other_way_round() -> None:
    streamable = f"""@http
@open 2025-11-25 recorded-id
C2> GET /mcp
S2> 200 STREAM
C> POST /mcp {said(call(3))}
S> 200 STREAM
S> EVENT id=s1
S> EVENT id=s2 {said(LOG)}
S2> EVENT id=g1 {said(CHANGED)}
S> EVENT id=s3 {said(answer(3))}
S> END
"""

    async def over_one(client: Client) -> None:
        stream, endpoint = await opened(client)
        await client.post(INITIALIZE, endpoint)
        await message(stream)
        assert (await client.post(call("x"), endpoint)).status == 202
        assert [await message(stream) for _ in range(3)] == [LOG, CHANGED, answer("x")]

    async def over_many(client: Client) -> None:
        await client.open()
        stream = await client.request("GET")
        asked = request("q", "tools/call", name="t", arguments={}, _meta={"progressToken": 9})
        reply = await client.post(asked)
        first, roots = await message(reply), await message(reply)
        assert first == note("progress", progressToken=9, progress=1)
        assert isinstance(roots, dict)
        assert (await client.post(answer(roots["id"], roots=[]))).status == 202
        assert [event.message for event in await reply.events()] == [answer("q")]
        assert await stream.is_idle()

    over_http(streamable, over_one, over_sse=True)
    over_http(RECORDED, over_many)


PROBED = f"""@http
C> POST /sse {said(INITIALIZE)}
S> 405 no
@sse
C> POST /messages?sessionId=1 {said(call(3))}
S> 202 Accepted
S9> EVENT {said(answer(3))}
"""


@pytest.mark.parametrize("over_sse", [True, False])
def test_that_another_transport_was_tried_first_refuses_nothing_on_the_right_one(over_sse: bool) -> None:
    async def act(client: Client) -> None:
        if not over_sse:
            assert (await client.post(INITIALIZE)).status == 200
            return
        assert (await client.post(INITIALIZE)).status == 405
        _, endpoint = await opened(client)
        assert (await client.post(INITIALIZE, endpoint)).status == 202

    over_http(PROBED, act, over_sse=over_sse)


def test_what_makes_a_stream_one_that_can_be_resumed_is_no_event_of_http_sse() -> None:
    script = f"""@http
@open 2025-11-25 recorded-id
C> POST /mcp {said(call(3))}
S> 200 STREAM
S> EVENT id=s1 retry=300
S> COMMENT here
S> EVENT id=s2 {said(answer(3))}
S> END
"""

    async def act(client: Client) -> None:
        stream, endpoint = await opened(client)
        await client.post(call("a"), endpoint)
        comment, last = await stream.event(), await stream.event()
        assert comment is not None
        assert (comment.data, comment.comments) == (None, ("here",))
        assert last is not None
        assert (last.message, last.id) == (answer("a"), "s2")

    over_http(script, act, over_sse=True)


def test_what_mcpsniff_had_refused_is_an_error_on_the_stream() -> None:
    script = f"{RECORDED}C3> POST /messages?sessionId=1 {said(call(4, 'refused'))}\nM3> 502 no\n"

    async def act(client: Client) -> None:
        stream, endpoint = await opened(client)
        assert (await client.post(call("a", "refused"), endpoint)).status == 202
        error = await message(stream)
        assert isinstance(error, dict)
        assert (error["id"], "gave status 502" in error["error"]["message"]) == ("a", True)

    over_http(script, act, over_sse=True)
