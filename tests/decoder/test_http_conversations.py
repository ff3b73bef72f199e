"""Which conversation a message over HTTP belongs to, what begins and ends one, and what is no fault of anybody."""

import pytest

from mcpsniff.capture.records import Header, Record
from mcpsniff.checks import ERROR, WARNING
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.conversation import ACTIVE, CLOSING, UNKNOWN
from mcpsniff.wire.frames import Frame, Span
from tests.decoder.told import codes, exchanges, facts, https, messages, outcomes, played
from tests.dialogue import Played
from tests.sessions import decode


def conversations(dialogue: Played) -> list[int]:
    return [message.conversation for message in messages(dialogue.events)]


def faults(dialogue: Played) -> list[str]:
    return codes(dialogue.events, ERROR, WARNING)


def http_facts(dialogue: Played) -> list[tuple[int, str]]:
    return [(event.exchange.number, fact.name) for event in https(dialogue.events, last=False) for fact in event.facts]


def decoder_after(dialogue: Played) -> Decoder:
    decoder = Decoder()
    decode(dialogue.records, decoder=decoder)
    return decoder


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_session_goes_over_all_connections_and_ends_with_delete() -> None:
    dialogue = played(
        """
        @open 2025-11-25
        C2> GET /mcp
        S2> 200 STREAM
        C3> POST /mcp $call(1)
        S3> 200 $result(1)
        S2> EVENT $note(notifications/tools/list_changed)
        C3> DELETE /mcp
        S3> 200
        S2> END
        C> POST /mcp $call(2)
        S> 404
        """
    )

    assert set(conversations(dialogue)) == {1}
    assert http_facts(dialogue) == [(6, "session-ended"), (6, "ended-unanswered")]
    assert decoder_after(dialogue).conversation.state == CLOSING


def test_two_sessions_of_one_server_are_two_conversations() -> None:
    dialogue = played(
        """
        C> POST /mcp $initialize
        C2> POST /mcp $initialize
        S2> 200 $welcome
            Mcp-Session-Id: two-two-two
        S> 200 $welcome
            Mcp-Session-Id: one-one-one
        @session one-one-one
        C> POST /mcp $note(notifications/initialized)
        S> 202
        C> POST /mcp $call(1,a)
        @session two-two-two
        C2> POST /mcp $note(notifications/initialized)
        S2> 202
        C2> POST /mcp $call(1,b)
        S2> 200 $result(1)
        S> 200 $result(1)
        """
    )

    assert outcomes(dialogue.events)[2:] == ["a 1 answered 4→4", "b 1 answered 6→6"]
    assert [one.conversation for one in exchanges(dialogue.events) if one.target == "a"] == [1]
    assert [one.conversation for one in exchanges(dialogue.events) if one.target == "b"] == [2]
    assert "MCP401" not in codes(dialogue.events)


def test_after_a_404_the_client_begins_anew() -> None:
    dialogue = played(
        """
        @open 2025-11-25 first-session
        C> POST /mcp $call(1)
        S> 404 {"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}
        @session
        @version
        @open 2025-11-25 second-session
        C> POST /mcp $call(1)
        S> 200 $result(1)
        """
    )

    assert outcomes(dialogue.events)[1:] == ["t 1 errored 3→3", "initialize 0 answered 4→4", "t 1 answered 6→6"]
    assert conversations(dialogue) == [1] * 5 + [2] * 5


def test_a_404_with_method_not_found_ends_no_session() -> None:
    dialogue = played(
        """
        @open 2025-11-25
        C> POST /mcp $call(1)
        S> 404 {"jsonrpc":"2.0","error":{"code":-32601,"message":"no such method"},"id":1}
        C> POST /mcp $call(2)
        S> 200 $result(2)
        """
    )

    assert (4, "session-ended") not in http_facts(dialogue)
    assert outcomes(dialogue.events)[1:] == ["t 1 errored 3→3", "t 2 answered 4→4"]


def test_a_session_that_nobody_began_was_begun_before() -> None:
    """The proxy was started under a client that goes on with its session."""
    dialogue = played("@session older\n@version 2025-06-18\nC> POST /mcp $call(7)\nS> 200 $result(7)")
    conversation = decoder_after(dialogue).conversation

    assert (conversation.state, conversation.revision, conversation.joined_late) == (UNKNOWN, "2025-06-18", True)
    assert http_facts(dialogue) == [(1, "session-unknown")]
    assert "MCP301" not in codes(dialogue.events)


@pytest.mark.parametrize("place", ["", "C2> GET /mcp\nS2> 200 STREAM\n"])
def test_a_request_without_its_session_still_belongs_to_it(place: str) -> None:
    dialogue = played(f"@open 2025-11-25\n{place}@session\nC> POST /mcp $call(1)\nS> 400 Bad Request")

    assert set(conversations(dialogue)) == {1}
    assert "session-missing" in [name for _, name in http_facts(dialogue)]


def test_another_session_id_on_an_error_is_no_new_session() -> None:
    """Python servers send a fresh one with each 400."""
    dialogue = played(
        """
        @open 2025-11-25
        C> POST /mcp $call(1)
        S> 400 {"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request"}}
            Mcp-Session-Id: useless
        C> POST /mcp $call(2)
        S> 200 $result(2)
        """
    )

    assert set(conversations(dialogue)) == {1}
    assert http_facts(dialogue) == [(3, "session-changed")]


# -- without sessions --------------------------------------------------------------------------------------------------


def test_without_sessions_it_is_the_latest_conversation_at_that_place() -> None:
    dialogue = played(
        """
        @open 2025-11-25 none
        C2> POST /mcp $call(1)
        S2> 200 $result(1)
        C3> GET /mcp
        S3> 405
        """
    )

    assert set(conversations(dialogue)) == {1}
    assert faults(dialogue) == []


def test_two_clients_of_a_server_without_sessions_are_not_mixed_up_on_their_connections() -> None:
    dialogue = played(
        """
        @open 2025-11-25 none
        C2> POST /mcp $initialize
        + 2s
        C> POST /mcp $call(1,a)
        S> 200 $result(1)
        C3> POST /mcp $call(1,b)
        S3> 200 $result(1)
        S2> 200 $welcome
        C2> POST /mcp $call(1,c)
        S2> 200 $result(1)
        """
    )

    assert [one.conversation for one in exchanges(dialogue.events) if one.target == "a"] == [1]
    assert [one.conversation for one in exchanges(dialogue.events) if one.target == "c"] == [2]
    assert faults(dialogue) == [], "whose the third connection is cannot be known, so nobody is blamed"


def test_a_client_of_a_server_without_sessions_that_opened_before() -> None:
    dialogue = played("@version 2025-06-18\nC> POST /mcp $call(1)\nS> 200 $result(1)")

    assert "MCP301" not in codes(dialogue.events), "its header says that a version was agreed on"


def test_a_client_that_never_opens_is_told() -> None:
    assert "MCP301" in codes(played("C> POST /mcp $call(1)\nS> 200 $result(1)").events)


# -- HTTP+SSE ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("/messages?sessionId=1", "/messages?sessionId=1"),
        ("messages?sessionId=1", "/base/messages?sessionId=1"),
        ("http://127.0.0.1:8000/base/m?s=1#there", "/base/m?s=1"),
        ("?session_id=1", "/base/sse?session_id=1"),
        (" /m ", "/m"),
    ],
)
def test_posts_to_the_endpoint_belong_to_the_stream_that_named_it(endpoint: str, target: str) -> None:
    dialogue = played(
        f"""
        C9> GET /base/sse
        S9> 200 STREAM
        S9> EVENT event=endpoint {endpoint}
        C> POST {target} $initialize
        S> 202 Accepted
        S9> EVENT $welcome
        """
    )

    assert outcomes(dialogue.events) == ["initialize 0 answered 2→1"]
    assert https(dialogue.events, last=False)[0].exchange.stream_kind == "legacy"


def test_two_streams_with_endpoints_of_their_own_are_two_conversations() -> None:
    dialogue = played(
        """
        C8> GET /sse
        S8> 200 STREAM
        S8> EVENT event=endpoint /messages?sessionId=a
        C9> GET /sse
        S9> 200 STREAM
        S9> EVENT event=endpoint /messages?sessionId=b
        C> POST /messages?sessionId=a $initialize
        S> 202
        C> POST /messages?sessionId=b $initialize
        S> 202
        S9> EVENT $welcome
        S8> EVENT $welcome
        """
    )

    assert outcomes(dialogue.events) == ["initialize 0 answered 3→1", "initialize 0 answered 4→2"]
    assert {one.conversation for one in exchanges(dialogue.events)} == {1, 2}
    assert not [fact for message in messages(dialogue.events) for fact in facts(message)]


def test_the_stream_ends_the_session() -> None:
    dialogue = played("@sse\nC9> EOF\nC> POST /messages?sessionId=1 $call(1)\nS> 404 Could not find session")
    conversation = decoder_after(dialogue).conversation

    assert (conversation.state, conversation.client_left_at is not None) == (CLOSING, True)
    assert faults(dialogue) == []


def test_posts_to_an_endpoint_that_was_named_before_the_capture() -> None:
    dialogue = played("C> POST /messages/?session_id=00ff $call(5)\nS> 202 Accepted")
    conversation = decoder_after(dialogue).conversation

    assert (conversation.joined_late, conversation.endpoint) == (True, "/messages/?session_id=00ff")
    assert faults(dialogue) == []


# -- 2026-07-28 --------------------------------------------------------------------------------------------------------


def test_what_a_modern_server_declares_is_known_to_the_requests_at_one_place() -> None:
    dialogue = played("@modern\nC2> POST /mcp $modern(1)\nS2> 200 $complete(1)\nC3> POST /other $modern(1)\nS3> 401")
    decoder = decoder_after(dialogue)

    assert conversations(dialogue) == [1, 1, 1, 1, 2]
    assert (decoder.conversation.state, decoder.conversation.server_capabilities) == (ACTIVE, {"tools": {}})


def test_a_probe_by_server_discover_is_no_fault() -> None:
    dialogue = played(
        """
        @version 2026-07-28
        C> POST /mcp {"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":$ENVELOPE}}
        S> 400 {"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No session"},"id":null}
        @version
        @open 2025-11-25
        C> POST /mcp $call(1)
        S> 200 $result(1)
        """
    )
    conversation = decoder_after(dialogue).conversation

    assert faults(dialogue) == []
    assert set(conversations(dialogue)) == {1}, "it goes on where nothing was granted"
    assert (conversation.era, conversation.revision) == ("legacy", "2025-11-25")


def test_two_eras_on_one_endpoint_are_two_conversations() -> None:
    dialogue = played("@open 2025-11-25\n@session\n@modern\nC> POST /mcp $modern(1)\nS> 200 $complete(1)")

    assert conversations(dialogue) == [1, 1, 1, 2, 2, 2, 2]
    assert faults(dialogue) == []


# -- beginnings that fail ----------------------------------------------------------------------------------------------


def test_a_token_is_asked_for_first() -> None:
    dialogue = played(
        """
        C> POST /mcp $initialize
        S> 401 {"error":"invalid_token"}
            WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:8000/.well-known/oauth-protected-resource"
        C> GET /.well-known/oauth-protected-resource
            Accept: */*
        S> 200 {"resource":"http://127.0.0.1:8000/mcp","authorization_servers":["http://127.0.0.1:8000"]}
        C> POST /register {"client_name":"c","redirect_uris":["http://127.0.0.1/cb"]}
            Accept: */*
        S> 201 {"client_id":"x"}
        C> POST /token grant_type=authorization_code
            Accept: */*
            Content-Type: application/x-www-form-urlencoded
        S> 200 {"access_token":"******","token_type":"Bearer"}
        @open 2025-11-25
        """
    )

    assert set(conversations(dialogue)) == {1}
    assert [event.conversation for event in https(dialogue.events)] == [1, None, None, None, 1, 1]
    assert outcomes(dialogue.events) == ["initialize 0 abandoned 1→", "initialize 0 answered 5→5"]


def test_what_mcpsniff_answers_is_its_own() -> None:
    dialogue = played("C> POST /mcp $initialize\nM> 502 nobody is there\nC> EOF\n@open 2025-11-25")
    first = https(dialogue.events)[0]

    assert (first.exchange.by, first.exchange.status, first.state) == ("mcpsniff", 502, "complete")
    assert first.answered.size == len("nobody is there")
    assert faults(dialogue) == ["MCP556"]


def test_a_connection_without_a_byte_is_nothing() -> None:
    dialogue = played("C> EOF\nC2> RESET")
    assert [event for event in dialogue.events if type(event).__name__ != "Close"] == []


# -- captures that lack something --------------------------------------------------------------------------------------


def test_a_later_part_goes_on_in_the_middle_of_a_stream() -> None:
    """What cannot be read is nobody's fault."""
    about = {"kind": "tcp", "conn": 0, "meta": {"upstream": "http://127.0.0.1:8000"}}
    channels = {"0": {"dir": "c2s", "offset": 200, **about}, "1": {"dir": "s2c", "offset": 900, **about}}
    header = Header("run", 2, "2026-11-29T10:00:00.000000Z", transport="http", channels=channels)
    event = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
    said = [
        Record(1, "chunk", 1, b'0","result":{}}\n\n\r\n%x\r\n%b\r\n' % (len(event), event)),
        Record(2, "chunk", 0, b"POST /mcp HTTP/1.1\r\nMcp-Session-Id: s\r\nContent-Length: 40\r\n\r\n"),
        Record(3, "chunk", 0, b'{"jsonrpc":"2.0","id":9,"method":"ping"}'),
    ]
    events = decode(said, decoder=Decoder(header, joined_late=True))

    assert [message.method for message in messages(events)] == ["ping"]
    assert codes(events) == []


def test_nobody_is_blamed_for_what_the_capture_lacks() -> None:
    dialogue = played(
        """
        @open 2025-11-25
        C> POST /mcp $call(1)
        G> S 120 queue
        C2> POST /mcp $call(2)
        S2> 200 $result(2)
        S> EOF
        C3> POST /mcp {"jsonrpc":"2.0","id":"unknown","result":{}}
        S3> 202
        """
    )
    (lost,) = [one for one in exchanges(dialogue.events) if one.key == 1]

    assert (lost.state, lost.unseen) == ("abandoned", True)
    assert faults(dialogue) == ["MCP902"]
    assert https(dialogue.events)[2].state == "lost"


def test_what_is_no_http_is_told_once() -> None:
    dialogue = played('C| b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + b"\\x00" * 9\nS| b"\\x00" * 9\nC| b"more"')
    told = [event for event in https(dialogue.events) if event.state == "undecoded"]

    assert [event.why for event in told] == ["http2"]
    assert [event.conversation for event in told] == [None]


def test_a_tunnel_ends_the_exchange_that_opened_it() -> None:
    dialogue = played(
        'C> GET /ws\n    Upgrade: websocket\nS| b"HTTP/1.1 101 Switching Protocols\\r\\n\\r\\n\\x81\\x05hello"'
    )
    (told,) = https(dialogue.events)

    assert (told.state, told.exchange.status) == ("complete", 101)
    assert [fact.name for fact in told.facts] == ["tunnel"]


# -- messages that were recorded as such -------------------------------------------------------------------------------


def test_bodies_recorded_with_their_heads_are_the_same_exchanges() -> None:
    """As the mitmproxy engine writes them: one channel for each body."""
    about = {"authority": "example.org", "scheme": "https"}
    json_type, stream = ["content-type", "application/json"], ["content-type", "text/event-stream"]
    ask = {"start": "POST /mcp HTTP/2.0", "headers": [json_type, ["mcp-session-id", "s"]], **about}
    say = {"start": "HTTP/2.0 200 OK", "headers": [stream], **about}
    said = [
        Record(1, "open", 0, {"kind": "http-request", "dir": "c2s", "conn": 4, "meta": ask}),
        Record(2, "chunk", 0, b'{"jsonrpc":"2.0","id":1,'),
        Record(3, "chunk", 0, b'"method":"ping"}'),
        Record(4, "close", 0, {"how": "eof"}),
        Record(5, "open", 1, {"kind": "http-response", "dir": "s2c", "conn": 4, "of": 0, "meta": say}),
        Record(6, "chunk", 1, b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'),
        Record(7, "close", 1, {"how": "eof"}),
    ]
    events = decode(said)
    (http,) = https(events)

    assert outcomes(events) == ["ping 1 answered 1→1"]
    assert (http.state, http.exchange.method, http.exchange.path, http.exchange.status) == (
        "complete",
        "POST",
        "/mcp",
        200,
    )
    assert (http.exchange.authority, http.exchange.connection) == ("https://example.org", 4)
    assert [message.frame.spans for message in messages(events)] == [((0, 0, 40),), ((1, 0, 44),)]


def test_a_recorded_response_that_goes_on_from_an_earlier_part() -> None:
    head = {"start": "HTTP/2.0 200 OK", "headers": [["content-type", "text/event-stream"]], "authority": "h"}
    channels = {"5": {"kind": "http-response", "dir": "s2c", "conn": 1, "of": 4, "meta": head, "offset": 70}}
    header = Header("run", 2, "2026-11-29T10:00:00.000000Z", transport="forward", channels=channels)
    said = [
        Record(1, "chunk", 5, b'of it"}\n\ndata: {"jsonrpc":"2.0","method":"x"}\n\n'),
        Record(2, "close", 5, {"how": "eof"}),
    ]
    events = decode(said, decoder=Decoder(header, joined_late=True))

    assert [event.n for event in events if hasattr(event, "n")][:3] == [1, 2, 3]
    assert [(message.method, message.frame.spans) for message in messages(events)] == [("x", ((5, 79, 117),))]
    assert [event.state for event in https(events, last=False)] == ["streaming", "lost"]


def test_places_in_a_recorded_body_are_those_of_its_bytes_in_the_capture_also_after_a_gap() -> None:
    """Bytes that a gap tells of are in no chunk and count in no offset (docs/capture-format.md, Offsets)."""
    ask = {"start": "POST /mcp HTTP/2.0", "headers": [["content-type", "application/json"]], "authority": "h"}
    say = {"start": "HTTP/2.0 200 OK", "headers": [["content-type", "text/event-stream"]]}
    events = decode(
        [
            Record(1, "open", 0, {"kind": "http-request", "dir": "c2s", "conn": 4, "meta": ask}),
            Record(2, "chunk", 0, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
            Record(3, "close", 0, {"how": "eof"}),
            Record(4, "open", 1, {"kind": "http-response", "dir": "s2c", "conn": 4, "of": 0, "meta": say}),
            Record(5, "chunk", 1, b": one\n\n"),
            Record(6, "gap", 1, {"bytes": 1000, "why": "disk"}),
            Record(7, "chunk", 1, b"\n\n: two\n\n"),
            Record(8, "close", 1, {"how": "eof"}),
        ]
    )

    last = [event for event in events if isinstance(event, Frame) and event.channel == 1][-1]
    assert last.spans == (Span(1, 9, 16),)


def test_a_recorded_request_without_a_response_is_over_when_it_broke_off() -> None:
    ask = {"start": "POST /mcp HTTP/2.0", "headers": [["content-type", "application/json"]], "authority": "h"}
    events = decode(
        [
            Record(1, "open", 0, {"kind": "http-request", "dir": "c2s", "conn": 4, "meta": ask}),
            Record(2, "chunk", 0, b'{"jsonrpc":"2.0","id":1,'),
            Record(3, "close", 0, {"how": "reset"}),
        ]
    )

    assert [(event.state, event.ended_by) for event in https(events)] == [("aborted", "client")]


def test_an_event_of_an_exchange_says_what_was_known_when_it_was_told() -> None:
    """The exchange itself goes on changing."""
    dialogue = played("@sse\nC9> EOF")
    begun, *_, ended = [event for event in https(dialogue.events, last=False) if event.exchange.number == 1]

    assert (begun.state, begun.stream, begun.conversation, begun.answered.messages) == ("streaming", "get", None, 0)
    assert (ended.state, ended.stream, ended.conversation, ended.answered.messages) == ("aborted", "legacy", 1, 1)
    assert (begun.ended_by, ended.ended_by) == (None, "client")
    assert begun.answered.wire < ended.answered.wire == begun.exchange.answered.wire
