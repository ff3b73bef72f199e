"""Both directions of a connection read together: which response answers which request, and when HTTP ends."""

import pytest

from mcpsniff.wire.http1 import Data, End, Head, Http1Connection, Part, Undecoded
from tests.wire.http1_tools import heads

C, S = 4, 5
GET = b"GET /a HTTP/1.1\r\n\r\n"
HEAD = b"HEAD /b HTTP/1.1\r\n\r\n"
POST = b"POST /c HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
OK_TO_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


def talk(*steps: tuple[int, bytes | int]) -> list[Part]:
    """All parts of a connection; a number stands for a gap of so many bytes."""
    connection = Http1Connection(C, S)
    parts = []
    for t, (channel, step) in enumerate(steps):
        if isinstance(step, int):
            connection.gap(channel, step)
        else:
            parts += connection.feed(t, channel, step)
    return parts + connection.finish(99, C) + connection.finish(99, S)


def answered(parts: list[Part]) -> list[tuple[int | None, str | None]]:
    """Of each response: its status, and the target it answers."""
    return [(head.status, head.request and head.request.target) for head in heads(parts) if head.status]


def test_a_response_names_its_request() -> None:
    parts = talk((C, GET), (S, OK), (C, POST), (S, b"HTTP/1.1 100 Continue\r\n\r\n" + OK))
    assert answered(parts) == [(200, "/a"), (100, "/c"), (200, "/c")]
    assert all(part.flaws == () for part in parts if isinstance(part, Head | End))


def test_pipelined_requests_are_answered_in_order() -> None:
    parts = talk((C, GET + HEAD + POST), (S, OK + OK_TO_HEAD + OK))
    assert answered(parts) == [(200, "/a"), (200, "/b"), (200, "/c")]
    assert [head.framing for head in heads(parts) if head.status] == ["length", "none", "length"]


def test_byte_by_byte_in_turn() -> None:
    requests, responses = GET + HEAD + POST, OK + OK_TO_HEAD + OK
    steps = [(C, bytes([byte])) for byte in requests] + [(S, bytes([byte])) for byte in responses]
    assert answered(talk(*steps)) == [(200, "/a"), (200, "/b"), (200, "/c")]


def test_an_early_answer_belongs_to_the_request_that_is_still_being_sent() -> None:
    parts = talk((C, POST[:-1]), (S, OK), (C, POST[-1:]))
    assert answered(parts) == [(200, "/c")]


def test_a_response_without_a_request_is_flagged() -> None:
    parts = talk((C, GET), (S, OK + b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"))
    assert [head.flaws for head in heads(parts) if head.status] == [(), ("unasked-response",)]


@pytest.mark.parametrize("request_bytes", [b"\x00nonsense\r\n\r\n", b"GET /a HTTP/1.1\r\nHo", b"GET"])
def test_an_answer_to_what_could_not_be_read_is_not(request_bytes: bytes) -> None:
    parts = talk((C, request_bytes), (S, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
    assert [head.flaws for head in heads(parts) if head.status] == [()]


def test_an_upgrade_ends_http_in_both_directions() -> None:
    parts = talk(
        (C, b"GET /a HTTP/1.1\r\nUpgrade: h2c\r\n\r\n"),
        (S, b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x00\x01"),
        (C, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (S, OK),
    )
    assert [part.why for part in parts if isinstance(part, Undecoded)] == ["upgraded"] * 3
    assert [part.complete for part in parts if isinstance(part, End)] == [True, True]


def test_a_tunnel_ends_http_in_both_directions() -> None:
    ask = (C, b"CONNECT a:443 HTTP/1.1\r\n\r\n")
    parts = talk(ask, (S, b"HTTP/1.1 200 OK\r\n\r\n"), (C, b"\x16\x03\x01"), (S, b"\x16\x03\x03"))
    assert [part.why for part in parts if isinstance(part, Undecoded)] == ["tunnel", "tunnel"]

    refused = talk(ask, (S, b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), (C, GET), (S, OK))
    assert answered(refused) == [(403, "a:443"), (200, "/a")]


def test_http2_with_prior_knowledge_is_no_http1_in_either_direction() -> None:
    parts = talk((C, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), (S, b"\x00\x00\x12\x04\x00"), (C, b"\x00"), (S, OK))
    assert [part.why for part in parts if isinstance(part, Undecoded)] == ["http2"] * 4


def test_after_lost_responses_a_new_request_is_answered_next() -> None:
    parts = talk((C, GET), (S, len(OK)), (C, HEAD), (S, OK_TO_HEAD), (C, POST), (S, OK))
    assert answered(parts) == [(200, "/b"), (200, "/c")]


def test_a_response_lost_in_its_body_is_not_awaited_again() -> None:
    parts = talk((C, GET), (S, OK[:-1]), (S, 1), (C, HEAD), (S, OK_TO_HEAD))
    assert answered(parts) == [(200, "/a"), (200, "/b")]


def test_after_lost_requests_nothing_is_blamed() -> None:
    parts = talk((C, len(GET)), (S, OK), (C, POST), (S, OK))
    assert answered(parts) == [(200, None), (200, "/c")]
    assert all(head.flaws == () for head in heads(parts))


def test_no_more_requests_are_remembered_than_anybody_pipelines() -> None:
    connection = Http1Connection(C, S)
    for t in range(3000):
        connection.feed(t, C, GET)
    parts = [part for t in range(3000) for part in connection.feed(t, S, OK)]
    assert len(heads(parts)) == 3000
    assert [head.request is not None for head in heads(parts)] == [n < 1024 for n in range(3000)]
    assert sum(isinstance(part, Data) for part in parts) == 3000
