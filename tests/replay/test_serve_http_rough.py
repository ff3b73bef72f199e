"""Clients that leave, stall, hurry or speak oddly neither end the replay nor get in each other's way."""

import asyncio
import gc
import json
import time
from typing import Any

import pytest

from mcpsniff.replay.serve.report import report_lines
from mcpsniff.replay.serve.web.log import AHEAD_BYTES, Block, EventIds, StreamLog
from tests.replay.serving import INITIALIZE, Answer, Client, over_http
from tests.replay.staging import answer, call, note, request

OPEN = "@http\n@open 2025-11-25 recorded-id\n"
LOG = note("message", level="info", data="x")
LONG = "y" * 100_000


def said(value: Any) -> str:
    return json.dumps(value)


TWO_CALLS = f"""{OPEN}C> POST /mcp {said(call(3))}
S> 200 {said(answer(3))}
C> POST /mcp {said(call(4, "streamed"))}
S> 200 STREAM
S> EVENT {said(LOG)}
S> EVENT {said(answer(4))}
S> END
C2> GET /mcp
S2> 200 STREAM
S2> COMMENT open
"""


def test_requests_on_one_connection_are_answered_in_order_even_if_they_come_at_once() -> None:
    async def act(client: Client) -> None:
        await client.open()
        first = await client.ask("POST", "", said(call(1)).encode())
        second = await client.ask("POST", "", said(call(2, "streamed")).encode(), on=first)
        third = await client.ask("HEAD", "", on=first)
        fourth = await client.ask("POST", "", said(call(5)).encode(), on=first)
        assert (await (await first.head()).json())["id"] == 1
        assert [event.message for event in await (await second.head()).events()] == [LOG, answer(2)]
        assert (await third.head()).status == 405
        assert (await (await fourth.head()).json())["id"] == 5

    over_http(TWO_CALLS, act)


def test_odd_methods_targets_and_heads_are_refused_and_nothing_breaks() -> None:
    async def act(client: Client) -> None:
        for method in ("HEAD", "PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"):
            refused = await client.request(method)
            assert (refused.status, "POST" in refused.headers["allow"]) == (405, True), method
        for path in ("/", "/mcp/more", "/%2e%2e/mcp", "//mcp", "/mcp%00"):
            assert (await client.request("GET", path)).status in (400, 404, 405), path
        assert (await client.post(b"", Content_Type="text/plain")).status in (400, 202)
        assert (await client.post(b"\xff\xfe{", Content_Type="")).status == 400
        assert (await client.post(b"[]")).status == 400
        assert (await client.post(b'"text"')).status == 400
        assert (await client.post(b"[" * 100_000)).status == 400
        garbage = await client.ask("GET /mcp HTTP/9.9\r\n\r\nnonsense")
        assert (await garbage.head()).status == 400
        await client.open()
        assert (await client.post(call(1))).status == 200

    over_http(TWO_CALLS, act)


def test_a_client_that_leaves_in_the_middle_harms_nobody() -> None:
    script = f"""{OPEN}C> POST /mcp {said(call(3, "waits"))}
S> 200 STREAM
S> EVENT {said(request(0, "roots/list"))}
C2> POST /mcp {said(answer(0, roots=[]))}
S2> 202
S> EVENT {said(LOG)}
S> EVENT {said(answer(3))}
S> END
"""

    async def act(client: Client) -> None:
        await client.open()
        for _ in range(3):
            stream = await client.post(call("a", "waits"))
            asked = await stream.event()
            assert asked is not None
            stream.writer.transport.abort()
            await asyncio.sleep(0.02)
            assert (await client.post(answer(asked.message["id"], roots=[]))).status == 202
        half = await client.ask("POST", "", b"", Content_Length="100", Content_Type="application/json")
        half.writer.transport.abort()
        stream = await client.post(call("b", "waits"))
        asked = await stream.event()
        assert asked is not None
        await client.post(answer(asked.message["id"], roots=[]))
        assert [event.message for event in await stream.events()] == [LOG, answer("b")]

    over_http(script, act)


def test_in_2026_07_28_leaving_cancels_what_was_asked_for() -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    script = f"""@http
@modern
C> POST /mcp {said(request(5, "tools/call", name="t", **meta))}
S> 200 STREAM
S> EVENT {said(LOG)}
+ 30s
S> EVENT {said(answer(5))}
S> END
"""

    async def act(client: Client) -> None:
        headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "t"}
        stream = await client.post(request(1, "tools/call", name="t", **meta), **headers)
        assert await stream.event() is not None
        stream.close()
        while not client.stage.tally.stopped:
            await asyncio.sleep(0.01)

    over_http(script, act, timing="original")


def test_many_streams_stay_open_side_by_side_and_end_with_the_server() -> None:
    streams: list[Answer] = []

    async def act(client: Client) -> None:
        for number in range(200):
            one = Client(client.server)
            await one.open(number)
            streams.append(await one.request("GET"))
        for stream in streams:
            event = await stream.event()
            assert event is not None
            assert event.comments == ("open",)
        await client.open()
        assert (await client.post(call(1))).status == 200
        began = time.monotonic()
        await client.server.stop()
        assert time.monotonic() - began < 5
        for stream in streams:
            assert await stream.event() is None
            stream.close()

    over_http(TWO_CALLS, act)


def test_a_slow_reader_holds_up_only_what_is_said_to_it() -> None:
    many = "".join(f"S> EVENT {said(note('message', level='info', data=LONG))}\n" for _ in range(60))
    script = f"{TWO_CALLS}C3> POST /mcp {said(call(6, 'much'))}\nS3> 200 STREAM\n{many.replace('S>', 'S3>')}"
    script += f"S3> EVENT {said(answer(6))}\nS3> END\n"

    async def act(client: Client) -> None:
        await client.open()
        slow = await client.post(call("s", "much"))
        slow.stall()
        ids, waiting = client.server.house.writer.ids, 0
        while not waiting:
            await asyncio.sleep(0.1)
            logs = [one for one in gc.get_objects() if isinstance(one, StreamLog) and one.ids is ids]
            waiting = max(log.waiting for log in logs)
        assert waiting <= AHEAD_BYTES + 2 * len(LONG)
        assert (await client.post(call(1))).status == 200
        slow.go_on()
        assert len(await slow.events()) == 61

    over_http(script, act)


def test_a_log_keeps_what_waits_within_bounds_and_what_was_read_for_a_while() -> None:
    async def act() -> None:
        log = StreamLog(EventIds(), waits=True)
        for number in range(100):
            await log.put(Block((b"x" * 1_000_000,), f"e{number}"))
        dropped = log.ids.dropped
        assert dropped > 80
        log.finish()
        got = [block.id async for block in log.follow()]
        assert got == [f"e{number}" for number in range(dropped, 100)]
        place = log.ids.place("e98")
        assert place is not None
        assert [block.id async for block in log.follow(place[1] + 1)] == ["e99"]
        with pytest.raises(ConnectionError):
            await log.put(Block((b"late",)))

    asyncio.run(act())


def test_streams_that_have_ended_are_forgotten_when_they_are_many() -> None:
    async def act() -> None:
        ids = EventIds()
        for number in range(100):
            log = StreamLog(ids, waits=True)
            await log.put(Block((b"x" * 900_000,), f"e{number}"))
            await log.put(Block((b"y",), f"f{number}"))
            log.finish()
            assert len([block async for block in log.follow()]) == 2
        resumable = []
        for number in range(100):
            place = ids.place(f"e{number}")
            assert place is not None
            resumable.append([block.id async for block in place[0].follow(place[1] + 1)])
        assert resumable[0] == []
        assert resumable[-1] == ["f99"]
        assert 20 < sum(map(bool, resumable)) < 40

    asyncio.run(act())


def test_a_stream_whose_reader_never_came_holds_nobody_up() -> None:
    async def act() -> None:
        log = StreamLog(EventIds())
        for _ in range(3):
            waiting = asyncio.ensure_future(log.put(Block((b"x" * AHEAD_BYTES * 2,))))
            await asyncio.sleep(0)
            if not waiting.done():
                log.abandon()
        with pytest.raises(ConnectionError):
            await waiting

    asyncio.run(act())


def test_a_second_reader_takes_over_and_the_first_gets_nothing_any_more() -> None:
    async def act(client: Client) -> None:
        await client.open()
        first = await client.request("GET")
        assert await first.event() is not None
        second = await client.request("GET")
        assert await second.event() is not None
        assert await first.is_idle()
        for stream in (first, second):
            stream.close()
        await asyncio.sleep(0.05)
        third = await client.request("GET")
        assert await third.event() is not None

    over_http(TWO_CALLS, act)


def test_a_bug_of_ours_is_a_500_for_the_client_and_told_once_and_the_others_are_served_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def act(client: Client) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(client.server.house.clients, "state", 1 / 2)
            for _ in range(2):
                assert (await client.post(INITIALIZE)).status == 500
        await client.open()
        assert (await client.post(call(1))).status == 200

    with pytest.raises(TypeError):
        over_http(TWO_CALLS, act)
    assert capfd.readouterr().err.count("this is a bug in mcpsniff, please report it: TypeError") == 1


def test_a_body_that_cannot_be_read_is_refused_and_harms_nobody() -> None:
    async def act(client: Client) -> None:
        for coding in ("br", "gzip", "deflate", "zstd"):
            for path in ("", "/sse", "/elsewhere"):
                refused = await client.post(b"{junk}", path, Content_Encoding=coding)
                assert refused.status in ((400, 404) if path else (400, 415)), (coding, path)  # 400: said by aiohttp
        torn = await client.ask("POST", "", Transfer_Encoding="chunked", Content_Type="application/json")
        torn.writer.write(b"zz\r\n{}\r\n")
        assert (await torn.head()).status == 400
        await client.open()
        assert (await client.post(call(1))).status == 200

    over_http(TWO_CALLS, act)


def test_a_path_at_which_nothing_is_served_is_answered_with_those_at_which_something_is() -> None:
    async def act(client: Client) -> None:
        for path in ("/sse", "/nope", "/.well-known/oauth-protected-resource"):
            refused = await client.request("GET", path)
            assert refused.status == 404
            assert f"it is served at {client.server.origin}/mcp" in (await refused.json())["error"]["message"]

    stage = over_http(TWO_CALLS, act)
    assert stage.tally.elsewhere == 2
    assert "mcpsniff:   2 HTTP requests to paths at which nothing is served" in report_lines(stage)


def test_an_empty_batch_is_no_request() -> None:
    async def act(client: Client) -> None:
        await client.open()
        refused = await client.post(b"[]")
        assert (refused.status, (await refused.json())["error"]["code"]) == (400, -32600)

    over_http(TWO_CALLS, act)
