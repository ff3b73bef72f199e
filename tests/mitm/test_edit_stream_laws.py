"""Laws of an event stream that is edited in a streaming callback of mitmproxy, however it is cut."""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.hooks.actions import Later, Raw, Returned, Text, notification
from mcpsniff.hooks.editor import Editor
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.mitm.edit_stream import EditedStream
from mcpsniff.wire.frames import Span
from mcpsniff.wire.sse import EventSplitter

METHODS = ("same", "drop", "change", "more", "raw", "text", "later")
LINES = st.sampled_from(["\n", "\r\n", "\r"])


class Hook:
    """Does to a message what its method says."""

    name = "hook"

    def edit(self, message: Message, _lane: Any) -> Returned:
        match message.method:
            case "drop":
                return None
            case "change":
                message.body["method"] = "changed"
            case "more":
                return [notification("before"), message, notification("after")]
            case "raw":
                return Raw(b": raw\n\n")
            case "text":
                return Text(b"no JSON", message)
            case "later":
                return Later(message, 60.0)
        return message

    def edit_head(self, head: Any) -> None: ...
    def begin(self, remark: Any) -> None: ...
    def end(self) -> list[str]:
        return []


def event(method: str, end: str, *, odd: str) -> str:
    return f'{odd}{end}data: {{"jsonrpc":"2.0","method":"{method}"}}{end}{end}'


@st.composite
def streams(draw: st.DrawFn, methods: tuple[str, ...]) -> tuple[bytes, list[int]]:
    """A body of events, and where it is cut."""
    odd = st.sampled_from([": why", "id: 1", "retry: 5", "event: message", "x"])
    end = draw(LINES)
    events = [event(draw(st.sampled_from(methods)), end, odd=draw(odd)) for _ in range(draw(st.integers(0, 6)))]
    body = ("".join(events) + draw(st.sampled_from(["", "data: torn", ": hi\n\n"]))).encode()
    cuts = draw(st.lists(st.integers(0, len(body)), max_size=12))
    return body, sorted({0, len(body), *cuts})


def passed(body: bytes, cuts: list[int], hooks: list[Any]) -> tuple[bytes, list[dict[str, Any]]]:
    """What leaves of a body in these pieces, and the records of that."""
    editor, records = Editor(hooks, lambda _text: None), list[dict[str, Any]]()
    edited = EditedStream(
        editor,
        editor.talk("x"),
        lambda _data: None,
        is_ours=lambda: True,
        is_gone=lambda: False,
        put=records.append,
        endpoint=lambda _url: None,
    )
    pieces = [body[start:stop] for start, stop in pairwise(cuts)]
    out = [piece for data in [*filter(None, pieces), b""] for piece in edited(data)]
    assert b"" not in out  # that would end the body
    return b"".join(out), records


def applied(body: bytes, records: list[dict[str, Any]]) -> bytes:
    out, at = b"", 0
    for record in records:
        assert record["start"] >= at, records
        out += body[at : record["start"]] + record["data"].encode()
        at = record["start"] + record["length"]
    return out + body[at:]


def messages(body: bytes) -> list[bytes]:
    frames = EventSplitter(0, "s2c").feed(0, body, (Span(0, 0, len(body)),))
    return [bytes(frame.payload) for frame in frames if frame.payload]


@given(streams(("same",)))
@settings(max_examples=200, deadline=None)
def test_without_a_change_all_passes_as_it_came(stream: tuple[bytes, list[int]]) -> None:
    assert passed(*stream, [Hook()]) == (stream[0], [])


@given(streams(METHODS))
@settings(max_examples=400, deadline=None)
def test_what_leaves_is_what_came_with_the_records_applied(stream: tuple[bytes, list[int]]) -> None:
    out, records = passed(*stream, [Hook()])
    assert applied(stream[0], records) == out


@given(streams(METHODS))
@settings(max_examples=200, deadline=None)
def test_what_is_said_does_not_depend_on_the_cuts(stream: tuple[bytes, list[int]]) -> None:
    body, cuts = stream
    assert messages(passed(body, cuts, [Hook()])[0]) == messages(passed(body, [0, len(body)], [Hook()])[0])
