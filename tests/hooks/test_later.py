"""Messages that go on after the next one, and texts in the place of messages."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from mcpsniff.hooks.actions import HttpHead, Later, Returned, Text
from mcpsniff.hooks.editor import ADDED, CHANGED, SAME, Edit, Editor, Lane, Outgoing
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.frames import Frame

LONG = 60.0


class Way:
    """A lane whose messages go into a list."""

    is_gone = False

    def __init__(self, transport: str = "stdio") -> None:
        self.transport = transport
        self.left: list[Outgoing] = []
        self.told: list[tuple[str, str]] = []
        self.is_late = threading.Event()

    def holding(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def held(self, by: str, why: str = "") -> None:
        self.told.append((by, why))

    def late(self, out: Outgoing) -> None:
        self.left.append(out)
        self.is_late.set()


class Hook:
    """An interceptor that does what a function says."""

    name = "hook"

    def __init__(self, edit: Callable[[Message], Returned]) -> None:
        self._edit = edit

    def edit(self, message: Message, lane: Lane) -> Returned:
        return self._edit(message)

    def edit_head(self, head: HttpHead) -> None:
        pass

    def begin(self, remark: Callable[[str], object]) -> None:
        pass

    def end(self) -> list[str]:
        return []


def notification(name: str) -> bytes:
    return f'{{"jsonrpc":"2.0","method":"{name}"}}'.encode()


def edit(editor: Editor, lane: Way, name: str, framing: str = "line") -> Edit | None:
    text = notification(name)
    frame = Frame(1, "s2c", framing, (), 0, 0, text, len(text))
    return editor.edit(frame, editor.talk("one"), lane, JsonReader())


def keeping(seconds: float, *, other: Returned = None) -> Editor:
    def later(message: Message) -> Returned:
        if message.method == "drop":
            return None
        return Later(message, seconds, "why") if message.method == "first" else message

    return Editor([Hook(later)], lambda text: None)


def left(edit: Edit | None) -> Iterator[tuple[str, bytes]]:
    assert edit is not None
    return ((out.what, out.data) for out in edit.leaving)


def test_the_next_message_of_a_stream_overtakes() -> None:
    editor, lane = keeping(LONG), Way()
    held = edit(editor, lane, "first")
    assert held == Edit("hook", "why", [])
    passed = edit(editor, lane, "second")
    assert passed is not None
    assert (passed.by, passed.why) == ("hook", "why")
    assert list(left(passed)) == [(SAME, notification("second")), (ADDED, notification("first"))]
    assert edit(editor, lane, "third") is None
    assert editor.flush(lane) == lane.left == []


def test_what_is_dropped_or_another_stream_does_not_overtake() -> None:
    editor, lane = keeping(LONG), Way()
    edit(editor, lane, "first")
    assert edit(editor, lane, "drop") == Edit("hook", "", [])
    edit(editor, lane, "first")
    assert list(left(edit(editor, lane, "second"))) == [
        (SAME, notification("second")),
        (ADDED, notification("first")),
        (ADDED, notification("first")),
    ]


def test_it_leaves_when_its_time_is_up() -> None:
    editor, lane = keeping(0.01), Way()
    edit(editor, lane, "first")
    assert lane.is_late.wait(LONG)
    assert [(out.what, out.data, out.why) for out in lane.left] == [(ADDED, notification("first"), "why")]
    assert edit(editor, lane, "second") is None
    assert editor.flush(lane) == []


def test_it_leaves_at_the_end_of_the_stream() -> None:
    editor, lane = keeping(LONG), Way()
    edit(editor, lane, "first")
    assert [out.data for out in editor.flush(lane)] == [notification("first")]
    assert editor.flush(lane) == lane.left == []


def test_it_leaves_once_whoever_lets_it_leave() -> None:
    """The end of the stream waits for what was given to the lane in another thread."""
    for _ in range(30):
        editor, lane = keeping(0.001), Way()
        edit(editor, lane, "first")
        time.sleep(0.0009)
        flushed = editor.flush(lane)
        assert len(flushed) + len(lane.left) == 1


def test_another_stream_of_http_overtakes_before_the_end() -> None:
    editor, one, other = keeping(LONG), Way("http"), Way("http")
    edit(editor, one, "first")
    flushed: list[Outgoing] = []
    ending = threading.Thread(target=lambda: flushed.extend(editor.flush(one)))
    ending.start()
    assert edit(editor, other, "second") is None
    ending.join(LONG)
    assert [out.data for out in flushed + one.left] == [notification("first")]


def test_a_body_of_its_own_waits_for_another_one() -> None:
    editor, lane = keeping(LONG), Way("http")
    held: list[Edit | None] = []
    waiting = threading.Thread(target=lambda: held.append(edit(editor, lane, "first", "body")))
    waiting.start()
    while waiting.is_alive():
        assert edit(editor, Way("http"), "second", "body") is None
        waiting.join(0.01)
    (one,) = held
    assert one is not None
    assert (one.why, list(left(one))) == ("why", [(SAME, notification("first"))])


def test_a_body_of_its_own_waits_no_longer_than_it_may() -> None:
    held = edit(keeping(0.01), Way("http"), "first", "body")
    assert list(left(held)) == [(SAME, notification("first"))]


def test_a_text_leaves_in_the_place_of_a_message_or_beside_it() -> None:
    editor = Editor([Hook(lambda message: [Text(b"noise"), Text(b'{"half', message, "torn")])], lambda text: None)
    edited = edit(editor, Way(), "any")
    assert edited is not None
    assert [(out.what, out.data, out.action, out.why) for out in edited.leaving] == [
        (ADDED, b"noise", None, ""),
        (CHANGED, b'{"half', None, "torn"),
    ]


def test_reasons_are_told_together() -> None:
    one, other = Hook(lambda message: Later(message, 0, "one")), Hook(lambda message: Text(b"x", message, "other"))
    last = Hook(lambda message: None)
    edited = edit(Editor([other, last], lambda text: None), Way(), "any")
    assert edited is not None
    assert (edited.by, edited.why) == ("hook", "other")
    assert edit(Editor([one], lambda text: None), Way("http"), "any", "body") is not None
