"""Responses that were torn, empty or malformed are served as they were, and recorded bytes at their own moments."""

import asyncio
import json
import time

import pytest

from tests.replay.serving import Answer, Client, over_http
from tests.replay.staging import answer, call, note

OPEN = "@http\n@open 2025-11-25 recorded-id\n"
LOG = note("message", level="info", data="x")
STREAM_HEAD = r"S| b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'"


def said(value: object) -> str:
    return json.dumps(value)


def chunk(data: bytes) -> str:
    return f"S| {b'%x' % len(data) + b'\r\n' + data + b'\r\n'!r}\n"


async def rest_of(response: Answer) -> bytes:
    """What comes until the connection ends, without a last chunk or all of its length."""
    try:
        while await response.chunk():
            pass
    except (asyncio.IncompleteReadError, ConnectionError):
        return b"".join(response.reads)
    raise AssertionError("the response is whole")


def test_the_lf_of_a_crlf_stays_where_it_was_read_and_framed() -> None:
    parts = [b"data: " + said(LOG).encode() + b"\r\n\r", b"\ndata: " + said(LOG).encode() + b"\r", b"\n\r", b"\n"]
    parts += [b"\r\ndata: " + said(answer(3)).encode() + b"\r\n\r", b"\n"]
    script = f"{OPEN}C> POST /mcp {said(call(3))}\n{STREAM_HEAD}\n{''.join(map(chunk, parts))}S> END\n"

    async def act(client: Client) -> None:
        await client.open()
        stream = await client.post(call(3))
        assert await stream.body() == b"".join(parts)
        reads = list(stream.reads)
        assert reads[:2] == [parts[0], b"\n"]
        assert reads[-2:] == [parts[4].removeprefix(b"\r\n"), b"\n"]

    over_http(script, act, raw=True)


def test_recorded_pieces_come_at_their_own_moments() -> None:
    parts = [
        b"data: " + said(LOG).encode()[:10],
        said(LOG).encode()[10:] + b"\n",
        b"\ndata: ",
        said(answer(3)).encode(),
    ]
    whole = chunk(parts[0]) + "+ 200ms\n" + chunk(parts[1]) + "+ 200ms\n" + chunk(parts[2]) + "+ 200ms\n"
    script = f"{OPEN}C> POST /mcp {said(call(3))}\n{STREAM_HEAD}\n{whole}{chunk(parts[3] + b'\n\n')}S> END\n"
    body = said(answer(4)).encode()
    script += f"C> POST /mcp {said(call(4, 'body'))}\nS| {b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'!r}\n"
    script += f"S| {b'Content-Length: %d\r\n\r\n' % len(body) + body[:9]!r}\n+ 300ms\nS| {body[9:]!r}\n"

    async def act(client: Client) -> None:
        await client.open()
        stream = await client.post(call(3))
        moments = []
        while await stream.chunk():
            moments.append(time.monotonic())
        assert b"".join(stream.reads) == b"".join(parts) + b"\n\n"
        assert moments[-1] - moments[0] > 0.5  # 0.6 in the recording; at the end of the block they would come at once
        assert moments[1] - moments[0] > 0.15
        response = await client.post(call(4, "body"))
        began = time.monotonic()
        assert await response.body() == body
        assert time.monotonic() - began > 0.25

    over_http(script, act, raw=True, timing="original")


def test_a_response_that_was_cut_is_cut_at_the_same_place() -> None:
    torn = b'data: {"jsonrpc":"2.0","id":3,"res'
    script = f"""{OPEN}C> POST /mcp {said(call(3, "stream"))}
{STREAM_HEAD}
{chunk(b"data: " + said(LOG).encode() + b"\n\n")}{chunk(torn)}S> EOF
C2> POST /mcp {said(call(4, "body"))}
S2| b'HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 99\\r\\n\\r\\n{{"jsonrpc":'
S2> EOF
C3> GET /.well-known/x
S3| b'HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: 99\\r\\n\\r\\nhalf of it'
S3> RESET
"""

    async def act(client: Client) -> None:
        await client.open()
        for _ in range(2):
            stream = await client.post(call("a", "stream"))
            assert (await rest_of(stream)).endswith(torn)
            body = await client.post(call("b", "body"))
            assert (body.status, body.headers["content-length"]) == (200, "99")
            assert await body.until_end() == b'{"jsonrpc":'
            half = await client.request("GET", "/.well-known/x")
            assert await half.until_end() == b"half of it"

    for raw in (True, False):
        over_http(script, act, raw=raw)


def test_a_202_without_a_body_to_a_request_is_given_again_and_the_answer_comes_where_it_came() -> None:
    script = f"""{OPEN}C> POST /mcp {said(call(3, "elsewhere"))}
S> 202
C2> GET /mcp
S2> 200 STREAM
S2> EVENT {said(answer(3, done=True))}
C> POST /mcp {said(call(4, "never"))}
S> 202
"""

    async def act(client: Client) -> None:
        await client.open()
        for name in ("elsewhere", "never"):
            taken = await client.post(call("a", name))
            assert (taken.status, taken.headers.get("content-type")) == (202, None)
            assert taken.headers["content-length"] == "0"
        stream = await client.request("GET")
        event = await stream.event()
        assert event is not None
        assert event.message == answer("a", done=True)

    over_http(script, act)


def test_what_is_no_answer_but_was_meant_as_one_comes_under_the_live_id() -> None:
    both = {"jsonrpc": "2.0", "id": 3, "result": {}, "error": None}
    script = f"""{OPEN}C> POST /mcp {said(call(3, "body"))}
S> 200 {said(both)}
C> POST /mcp {said(call(4, "stream"))}
S> 200 STREAM
S> EVENT {said({**both, "id": 4})}
S> END
C> POST /mcp {said(call(5, "array"))}
S> 200 [ {said(answer(5))} ]
"""

    async def act(client: Client) -> None:
        await client.open()
        assert await (await client.post(call("a", "body"))).json() == {**both, "id": "a"}
        (event,) = await (await client.post(call("b", "stream"))).events()
        assert event.message == {**both, "id": "b"}
        assert await (await client.post(call("c", "array"))).body() == f"[ {said(answer('c'))} ]".encode()

    for raw in (True, False):
        over_http(script, act, raw=raw)
    over_pipe = f"@open 2025-11-25\nC> {said(call(3, 'body'))}\nS> {said(both)}\n"

    async def over_other(client: Client) -> None:
        await client.open()
        assert await (await client.post(call("a", "body"))).json() == {**both, "id": "a"}

    over_http(over_pipe, over_other)


def test_what_mcpsniff_had_answered_itself_is_no_answer_of_the_server(capfd: pytest.CaptureFixture[str]) -> None:
    script = f"""{OPEN}C> POST /mcp {said(call(3))}
M> 502 bad gateway
C2> POST /mcp {said(call(4))}
S2> 200 {said(answer(4))}
C3> POST /mcp {said(call(5, "only"))}
M3> 403 no
C4> GET /.well-known/y
M4> 403 no
C5> GET /.well-known/long
S5> 200 {"x" * 100_000}
"""

    async def act(client: Client) -> None:
        client.server.tell()
        await client.open()
        assert await (await client.post(call("a"))).json() == answer("a")
        left_out = await client.post(call("b", "only"))
        assert left_out.status == 200
        assert "mcpsniff itself gave status 403" in (await left_out.json())["error"]["message"]
        assert (await client.request("GET", "/.well-known/y")).status == 404
        assert (await client.request("GET", "/.well-known/long")).headers["content-length"] == "2048"

    stage = over_http(script, act)
    told = capfd.readouterr().err
    assert "3 responses that mcpsniff itself had given are left out" in told
    (lack,) = [lack.text for lack in stage.script.lacks]
    assert (
        lack
        == "of the response of HTTP exchange 7 (GET /.well-known/long) no more than the first 2,048 bytes are served"
    )
    assert lack in told


def test_a_batch_of_the_server_is_the_same_batch_and_a_part_of_it_alone_is_none() -> None:
    script = f"""@http
@open 2025-03-26 recorded-id
C> POST /mcp {said([call(3, "a"), call(4, "b")])}
S> 200 [ {said(answer(3))} , {said(answer(4))} ]
C> POST /mcp {said([call(5, "c")])}
S> 200 STREAM
S> EVENT [ {said(answer(5))}  ]
S> END
"""

    async def act(client: Client) -> None:
        await client.open()
        both = await client.post([call("x", "a"), call("y", "b")])
        assert await both.body() == f"[ {said(answer('x'))} , {said(answer('y'))} ]".encode()
        assert await (await client.post(call("z", "a"))).json() == answer("z")
        (event,) = await (await client.post([call("v", "c")])).events()
        assert event.data == f"[ {said(answer('v'))}  ]".encode()

    for raw in (True, False):
        over_http(script, act, raw=raw)
