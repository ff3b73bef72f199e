"""When events came that have no times of their own."""

from mcpsniff.importers.heard import Half, Heard
from mcpsniff.importers.streams import Asked, place
from tests.importers.talk import event, said

STREAM = [("Content-Type", "text/event-stream; charset=utf-8")]


def heard(began: int, ended: int, body: bytes = b"", answer: bytes = b"", method: str = "POST") -> Heard:
    asked = Half(f"{method} /mcp HTTP/1.1", [], body, began, began + 1)
    return Heard("", "", "http", "a", asked, Half("HTTP/1.1 200 OK", STREAM, answer, began + 2, ended))


def placed(stream: Heard, *others: Heard) -> list[int]:
    place(stream, Asked([stream, *others]), 1_000)
    assert stream.response is not None
    assert b"".join(piece for _, piece in stream.response.pieces) == stream.response.body
    return [at for at, _ in stream.response.pieces]


def test_an_answer_on_another_stream_comes_after_its_request_and_what_follows_after_it() -> None:
    events = event(method="x") + event(id=4, result={}) + event(method="y") + event(id=5, result={})
    stream = heard(0, 900, answer=events, method="GET")
    posts = [heard(100, 110, said(id=5, method="a")), heard(300, 310, said(id=4, method="b"))]
    assert placed(stream, *posts) == [2, 302, 302, 302]
    assert stream.response is not None
    assert stream.response.is_untimed


def test_the_answer_to_its_own_post_ends_a_stream_and_needs_no_remark() -> None:
    stream = heard(0, 50, said(id=1, method="tools/call"), b": alive\n\n" + event(id=1, result={}))
    assert placed(stream) == [2, 50]
    assert stream.response is not None
    assert not stream.response.is_untimed


def test_equal_ids_of_two_clients_are_taken_one_after_the_other() -> None:
    stream = heard(0, 900, answer=event(id=1, result={}) + event(id=1, result={}), method="GET")
    posts = [heard(10, 20, said(id=1, method="a")), heard(40, 50, said(id=1, method="a"))]
    assert placed(stream, *posts) == [12, 42]


def test_a_request_of_the_server_stands_at_the_beginning_so_that_its_answer_follows() -> None:
    stream = heard(0, 900, answer=event(id=9, method="ping"), method="GET")
    assert placed(stream, heard(5, 6, said(id=9, result={}))) == [2]


def test_line_ends_of_any_kind_and_a_cut_event_are_kept() -> None:
    body = b"data: 1\r\n\r\ndata: 2\r\rdata: 3\n\ndata: 4\r\n"
    stream = heard(0, 10, answer=body)
    assert len(placed(stream)) == 4
