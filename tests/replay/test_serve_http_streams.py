"""Event streams of a capture are served as they were: fields, order, ends, resumption, recorded bytes."""

import asyncio
import json

from mcpsniff.replay.script import Piece
from mcpsniff.replay.serve.web.blocks import Edit, cut_again
from tests.replay.serving import Client, over_http
from tests.replay.staging import answer, call, note, request

OPEN = "@http\n@open 2025-11-25 recorded-id\n"
LOG = note("message", level="info", data="x")
CHANGED = note("tools/list_changed")


def said(value: object) -> str:
    return json.dumps(value)


STREAMED = f"""{OPEN}C> POST /mcp {said(call(3))}
S> 200 STREAM
    X-Accel-Buffering: no
S> EVENT id=s1 retry=300
S> COMMENT still here
S> EVENT id=s2 event=message {said(LOG)}
S> EVENT event=ping 2026
S> EVENT id=s3 {{"jsonrpc":"2.0",⏎"id":3,⏎"result":{{}}}}
S> END
"""


def test_a_stream_keeps_names_ids_times_comments_and_lines_of_its_events() -> None:
    async def act(client: Client) -> None:
        await client.open()
        stream = await client.post(call("x"))
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["x-accel-buffering"] == "no"
        first, comment, log, ping, last = await stream.events()
        assert (first.data, first.id, first.retry) == (b"", "s1", 300)
        assert (comment.data, comment.comments) == (None, ("still here",))
        assert (log.message, log.id, log.name) == (LOG, "s2", "message")
        assert (ping.data, ping.name) == (b"2026", "ping")
        assert (last.data, last.id) == (b'{"jsonrpc":"2.0",\n"id":"x",\n"result":{}}', "s3")

    over_http(STREAMED, act)


def test_events_of_another_client_have_other_ids_and_each_resumes_its_own_stream_only() -> None:
    """B114."""

    async def act(client: Client) -> None:
        other = Client(client.server)
        found = []
        for one in (client, other):
            await one.open()
            found.append([event.id for event in await (await one.post(call(1))).events() if event.id is not None])
        assert found[0] == ["s1", "s2", "s3"]
        assert not set(found[0]) & set(found[1])
        resumed = await client.request("GET", Last_Event_ID="s2")
        assert [event.id for event in await resumed.events()] == [None, "s3"]
        foreign = await client.request("GET", Last_Event_ID=found[1][1])
        assert foreign.status == 405
        other.close()

    over_http(STREAMED, act)


POLLED = f"""{OPEN}C> POST /mcp {said(call(3))}
S> 200 STREAM
S> EVENT id=p1 retry=10
S> END
C2> GET /mcp
    Last-Event-ID: p1
S2> 200 STREAM
S2> EVENT id=p2 {said(LOG)}
S2> END
C3> GET /mcp
    Last-Event-ID: p2
S3> 200 STREAM
S3> EVENT id=p3 {said(answer(3, content="late"))}
S3> END
"""


def test_a_stream_that_the_server_ended_early_goes_on_where_the_client_resumes_it() -> None:
    async def act(client: Client) -> None:
        await client.open()
        for number in ("a", "b"):  # the second time with other event ids
            event_ids = []
            (priming,) = await (await client.post(call(number))).events()
            event_ids.append(priming.id)
            messages = []
            while len(messages) < 2:
                stream = await client.request("GET", Last_Event_ID=str(event_ids[-1]))
                assert stream.headers["content-type"] == "text/event-stream"
                (event,) = await stream.events()
                event_ids.append(event.id)
                messages.append(event.message)
            assert messages == [LOG, answer(number, content="late")]
        assert event_ids[0] != "p1"

    over_http(POLLED, act)


def test_a_client_that_lost_the_connection_resumes_after_what_it_has() -> None:
    async def act(client: Client) -> None:
        await client.open()
        stream = await client.post(request("a", "tools/call", name="t", arguments={}))
        event = await stream.event()
        assert event is not None
        stream.close()
        await asyncio.sleep(0.05)
        again = await client.request("GET", Last_Event_ID=str(event.id))
        came = [event.message for event in await again.events() if event.data and event.name == "message"]
        assert came == [LOG, answer("a")]

    over_http(STREAMED, act)


OWN_STREAM = f"""{OPEN}C2> GET /mcp
S2> 200 STREAM
S2> EVENT id=g1 retry=5
C> POST /mcp {said(call(3))}
S2> COMMENT before
S2> EVENT id=g2 {said(CHANGED)}
S2> COMMENT after
S2> EVENT id=g3 {said(LOG)}
S> 200 {said(answer(3))}
C3> POST /mcp {said(call(4, "later"))}
S2> EVENT {said(answer(4, content="on the other stream"))}
S3> 200 STREAM
S3> END
"""


def test_what_came_on_the_stream_of_the_get_comes_there_even_if_that_is_opened_later() -> None:
    async def act(client: Client) -> None:
        await client.open()
        assert await (await client.post(call("x"))).json() == answer("x")
        stream = await client.request("GET")
        first, before, changed, after, log = [await stream.event() for _ in range(5)]
        assert first is not None
        assert (first.id, first.retry) == ("g1", 5)
        assert before is not None
        assert before.comments == ("before",)
        assert changed is not None
        assert (changed.id, changed.message) == ("g2", CHANGED)
        assert after is not None
        assert after.comments == ("after",)
        assert log is not None
        assert (log.id, log.message) == ("g3", LOG)
        assert await (await client.post(call("y", "later"))).events() == []
        answered = await stream.event()
        assert answered is not None
        assert answered.message == answer("y", content="on the other stream")
        resumed = await client.request("GET", Last_Event_ID="g2")
        comment, again = await resumed.event(), await resumed.event()
        assert comment is not None
        assert again is not None
        assert again.id == "g3"

    over_http(OWN_STREAM, act)


def test_a_stream_that_was_not_offered_is_refused_as_it_was() -> None:
    async def act(client: Client) -> None:
        await client.open()
        refused = await client.request("GET")
        assert (refused.status, refused.headers["allow"], await refused.body()) == (405, "POST", b"no stream here")
        assert (await client.request("GET", Mcp_Session_Id="")).status == 405

    over_http(f"{OPEN}C2> GET /mcp\nS2> 405 no stream here\n    Allow: POST\n", act)


def test_recorded_gaps_are_kept_between_head_events_and_end() -> None:
    script = f"""{OPEN}C> POST /mcp {said(call(3))}
+ 0.1s
S> 200 STREAM
S> EVENT {said(LOG)}
+ 0.2s
S> EVENT {said(answer(3))}
S> END
C> DELETE /mcp
+ 0.15s
S> 200
"""

    async def act(client: Client) -> None:
        clock = asyncio.get_running_loop().time
        await client.open()
        began = clock()
        stream = await client.post(call(1))
        await stream.event()
        assert clock() - began > 0.09
        began = clock()
        await stream.event()
        assert clock() - began > 0.19
        began = clock()
        await client.request("DELETE")
        assert clock() - began > 0.14

    over_http(script, act, timing="original")


ODD = (
    OPEN
    + f"C> POST /mcp {said(call(3))}\n"
    + "S> 200 STREAM\n    -Transfer-Encoding\n"
    + r'S| b"\xef\xbb\xbfid: s1\r\nda"'
    + "\n"
    + r'S| b"ta:" b"{\"jsonrpc\":\"2.0\", \"i"'
    + "\n"
    + r'S| b"d\":3 ,\"result\":{\"x\":\"\xc3"'
    + "\n"
    + r'S| b"\xa9\"}}\r\nevent: message\r\n:c\r\n\r\n: end\r"'
    + '\nS| b"\\n\\r\\n"\nS> EOF\n'
)


def test_raw_bytes_are_sent_again_in_the_recorded_pieces_with_only_the_ids_exchanged() -> None:
    async def act(client: Client) -> None:
        await client.open()
        stream = await client.post(call("long-id"))
        await stream.events()
        assert stream.reads == [
            b"\xef\xbb\xbfid: s1\r\nda",
            b'ta:{"jsonrpc":"2.0", "i',
            b'd":"long-id" ,"result":{"x":"\xc3',
            b'\xa9"}}\r\nevent: message\r\n:c\r\n\r\n',
            b": end\r",
            b"\n\r\n",
        ]
        again = await client.post(call(3))
        await again.events()
        assert again.reads[0].startswith(b"\xef\xbb\xbfid: s1.")
        assert again.reads[1:3] == [b'ta:{"jsonrpc":"2.0", "i', b'd":3 ,"result":{"x":"\xc3']

    over_http(ODD, act, raw=True)


def test_raw_bodies_keep_their_pieces_and_white_space() -> None:
    body = '{ "jsonrpc":"2.0", "result" : {} , "id":3 }'
    script = f"{OPEN}C> POST /mcp {said(call(3))}\nS> 200 {body}\n    Transfer-Encoding: chunked\n"

    async def act(client: Client) -> None:
        await client.open()
        come = await client.post(call(12345))
        assert await come.body() == body.replace("3 }", "12345 }").encode()
        assert len(come.reads) == 2
        assert come.reads[0] == body[: len(body) // 2].encode()

    over_http(script, act, raw=True)


def test_a_cut_moves_with_what_is_exchanged_before_it() -> None:
    pieces = [Piece(1, b"abc"), Piece(2, b"def"), Piece(3, b"ghi")]

    def cut(*edits: Edit) -> list[tuple[int, bytes]]:
        return [(piece.t, piece.data) for piece in cut_again(pieces, edits)]

    assert cut() == [(1, b"abc"), (2, b"def"), (3, b"ghi")]
    assert cut(Edit(1, 2, b"BBB")) == [(1, b"aBBBc"), (2, b"def"), (3, b"ghi")]
    assert cut(Edit(2, 4, b"")) == [(1, b"ab"), (2, b"ef"), (3, b"ghi")]
    assert cut(Edit(1, 7, b"-")) == [(1, b"a"), (3, b"-hi")]
    assert cut(Edit(3, 3, b"+"), Edit(8, 9, b"")) == [(1, b"abc+"), (2, b"def"), (3, b"gh")]
