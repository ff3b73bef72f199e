"""Edit mode on pipes, in this process: what is received, what is forwarded and what is recorded, whatever hooks do."""

import base64
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.hooks.actions import (
    Back,
    Cut,
    Disconnect,
    Drop,
    Headed,
    HttpAnswer,
    HttpHead,
    Later,
    Paced,
    Raw,
    Returned,
    Stall,
    Text,
    Told,
    notification,
    request,
)
from mcpsniff.hooks.editor import Editor, Lane
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.pump import BROKEN, CUT, EOF, SEVERED
from mcpsniff.proxy.recorder import Recorder
from mcpsniff.proxy.relay import pipes_intake, pipes_lines
from mcpsniff.proxy.relay.pipes import BEHIND, EditPump

PATIENCE = 30


class Hook:
    name = "hook"

    def __init__(self, does: Callable[[Message, Lane], Returned]) -> None:
        self.edit = does

    def edit_head(self, head: HttpHead) -> None: ...

    def begin(self, remark: Callable[[str], object]) -> None: ...

    def end(self) -> list[str]:
        return []


class Wires:
    """Two edit pumps, as a session has them, with the client's and the server's ends of their pipes."""

    def __init__(self, does: Callable[[Message, Lane], Returned]) -> None:
        self.recorder = Recorder()
        self.said: list[str] = []
        self.ended: list[int] = []
        editor = Editor([Hook(does)], self.said.append)
        talk = editor.talk("pipes")
        self.null = os.open(os.devnull, os.O_RDWR)
        self.source, self.client_in = os.pipe()
        self.server_out, self.sink = os.pipe()
        self.back_source, self.server_in = os.pipe()
        self.client_out, self.back_sink = os.pipe()
        self.forth, self.back = (
            EditPump(
                source, sink, n, self.recorder, self.null, direction=direction, editor=editor, talk=talk,
                tell=self.ended.append,
            )
            for n, (source, sink, direction) in enumerate(
                ((self.source, self.sink, "c2s"), (self.back_source, self.back_sink, "s2c"))
            )
        )  # fmt: skip
        self.forth.peer, self.back.peer = self.back, self.forth
        self.threads = [threading.Thread(target=pump.run, daemon=True) for pump in (self.forth, self.back)]
        self.got = [b"", b""]
        self.readers = [
            threading.Thread(target=self._read, args=(n, end), daemon=True)
            for n, end in enumerate((self.server_out, self.client_out))
        ]
        self.open = {self.client_in, self.server_in, self.server_out, self.client_out, self.null}

    def _read(self, number: int, descriptor: int) -> None:
        while data := os.read(descriptor, 1 << 16):
            self.got[number] += data

    def send(self, *pieces: bytes, back: bool = False) -> None:
        for piece in pieces:
            rest = piece
            while rest:
                rest = rest[os.write(self.server_in if back else self.client_in, rest) :]

    def close(self, descriptor: int) -> None:
        if descriptor in self.open:
            self.open.remove(descriptor)
            os.close(descriptor)

    def finish(self) -> None:
        """Both sides end what they say; everything has arrived when this returns."""
        self.close(self.client_in)
        self.threads[0].join(PATIENCE)
        self.close(self.server_in)
        for thread in (*self.threads, *self.readers):
            thread.join(PATIENCE)
            assert not thread.is_alive()
        self._free()

    def _free(self) -> None:
        """Give all descriptors back: a law makes hundreds of these, and a pump leaves its own to the end."""
        for descriptor in (self.source, self.sink, self.back_source, self.back_sink, *self.open):
            os.close(descriptor)
        self.open.clear()
        for pump in (self.forth, self.back):
            pump._intake.close()

    def until(self, number: int, wanted: bytes) -> None:
        """Wait until one side has got something."""
        for _ in range(PATIENCE * 1000):
            if wanted in self.got[number]:
                return
            threading.Event().wait(0.001)
        raise AssertionError(self.got[number])

    def records(self) -> list[tuple[int, str, Any, Any]]:
        self.recorder.close()
        return self.recorder.take()[0]

    def bodies(self, kind: str, channel: int) -> list[Any]:
        return [body for _, what, number, body in self.records() if what == kind and number == channel]


def decoded(data: str | dict[str, str]) -> bytes:
    return data.encode() if isinstance(data, str) else base64.b64decode(data["b64"])


def what_left(records: list[tuple[int, str, Any, Any]], channel: int) -> bytes:
    """The recorded chunks of a channel with its rewrites applied."""
    data = b"".join(body for _, kind, number, body in records if kind == "chunk" and number == channel)
    rewrites = [body for _, kind, number, body in records if kind == "rewrite" and number == channel]
    out, at = b"", 0
    for body in sorted(rewrites, key=lambda body: body["start"]):
        assert body["start"] >= at
        out += data[at : body["start"]] + decoded(body["data"])
        at = body["start"] + body["length"]
    assert at <= len(data)
    return out + data[at:]


@contextmanager
def wires(does: Callable[[Message, Lane], Returned], *, reading: bool = True) -> Iterator[Wires]:
    both = Wires(does)
    for thread in both.threads + (both.readers if reading else []):
        thread.start()
    try:
        yield both
    finally:
        for descriptor in list(both.open - {both.null}):
            if descriptor in {both.client_in, both.server_in} or not reading:
                both.close(descriptor)
        for thread in both.threads:
            thread.join(PATIENCE)


def passes(message: Message, lane: Lane) -> Returned:
    return message


LINES = st.sampled_from(
    [
        b'{"jsonrpc":"2.0", "id":%d,"method":"tools/call","params":{"name":"a"}}' % n for n in (1, 2, 3)
    ]
    + [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":"mcpsniff-1","result":{}}',
        b'{"jsonrpc":"2.0","method":"n/x"}\r',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","method":"n/y"}]',
        b"",
        b" ",
        b"\xff\xfe{",
        b"a banner",
        b'{"jsonrpc":"2.0","method":"n/long","params":"' + b"x" * 70_000 + b'"}',
    ]
)  # fmt: skip


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Lines, cut anywhere; the last one may have no end."""
    data = b"".join(line + b"\n" for line in draw(st.lists(LINES, max_size=12)))
    if draw(st.booleans()):
        data += draw(LINES)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    pieces = [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    return [piece for piece in pieces if piece]


@settings(max_examples=60, deadline=None)
@given(streams(), streams())
def test_law_forwarded_is_received_when_nobody_edits(forth: list[bytes], back: list[bytes]) -> None:
    with wires(passes) as both:
        both.send(*forth)
        both.send(*back, back=True)
        both.finish()
    assert both.got == [b"".join(forth), b"".join(back)]
    assert [both.forth.outcome, both.back.outcome] == [EOF, EOF]
    assert [both.forth.passed, both.back.passed] == [len(data) for data in both.got]
    records = both.records()
    assert {kind for _, kind, _, _ in records} <= {"chunk", "hold"}
    assert [what_left(records, n) for n in (0, 1)] == both.got


ACTIONS: list[Callable[[Message], Returned]] = [
    lambda message: message,
    lambda message: message,
    lambda _: None,
    lambda message: [notification("n/before"), message, notification("n/after")],
    lambda message: [Back(notification("n/back")), message],
    lambda message: [message, Back(request("ping"))],
    lambda message: [message, request("ping")],
    lambda message: [message, message],
    lambda message: Told(message, "looked at"),
    lambda message: Headed(message, {"x": "y"}),
    lambda _: Raw(b"\xffnoise\n"),
    lambda message: [Raw(b"half"), message],
    lambda message: Cut(message, 9),
    lambda message: Cut(message, -9),
    lambda message: Paced(message, 50_000_000),
    lambda message: Later(message, 0.01),
    lambda message: Text(b"any text", message),
    lambda _: HttpAnswer(404),
    lambda _: Drop("gone"),
    lambda _: Raw(b""),
]


def changed(message: Message) -> Returned:
    if isinstance(message.body, dict):
        message.body["more"] = [1]
    return message


@settings(max_examples=150, deadline=None)
@given(streams(), streams(), st.lists(st.sampled_from([*ACTIONS, changed]), min_size=1, max_size=12))
def test_law_chunks_and_rewrites_are_what_left(
    forth: list[bytes], back: list[bytes], actions: list[Callable[[Message], Returned]]
) -> None:
    turns = {"c2s": 0, "s2c": len(actions) // 2}

    def edit(message: Message, lane: Lane) -> Returned:
        turns[message.direction] += 1
        return actions[turns[message.direction] % len(actions)](message)

    with wires(edit) as both:
        both.send(*forth)
        both.send(*back, back=True)
        both.finish()
    records = both.records()
    for channel, sent in enumerate((forth, back)):
        assert what_left(records, channel) == both.got[channel]
        noted = b"".join(body for _, kind, number, body in records if kind == "chunk" and number == channel)
        assert noted == b"".join(sent)


@settings(max_examples=40, deadline=None)
@given(streams(), st.integers(1, 6), st.sampled_from([Stall, Disconnect]))
def test_law_what_arrives_after_an_end_is_told_not_to_have_left(
    forth: list[bytes], turn: int, end: type[Stall | Disconnect]
) -> None:
    count = [0]

    def edit(message: Message, lane: Lane) -> Returned:
        count[0] += 1
        return [message, end("enough")] if count[0] == turn else message

    with wires(edit) as both:
        try:
            both.send(*forth)
        except BrokenPipeError:
            assert end is Disconnect
        both.close(both.client_in)
        both.threads[0].join(PATIENCE)
        if both.forth.stalled is not None:
            both.forth.cut()  # it would not end by itself
        both.finish()
    assert what_left(both.records(), 0) == both.got[0]
    assert both.forth.outcome in ({EOF, SEVERED} if end is Disconnect else {EOF, CUT})
    if both.forth.outcome == SEVERED:
        assert both.forth.severed_by == "broken off by hook"


@settings(max_examples=60, deadline=None)
@given(streams(), st.integers(20, 200))
def test_law_lines_that_are_too_long_pass_in_pieces(forth: list[bytes], limit: int) -> None:
    cutter = pipes_lines.Cutter(3, "c2s", limit=limit)
    out = b""
    ends = b""
    for t, piece in enumerate(forth):
        for part in cutter.feed(t, piece):
            out += part.data
            ends = b"" if part.ends_line else part.data
            if part.frame is not None:
                assert len(part.data) <= limit
                assert part.frame.spans[0][1:] == (len(out) - len(part.data), len(out))
                assert part.frame.payload == part.data.removesuffix(b"\n")
            assert cutter.kept <= limit
    out += b"".join(part.data for part in cutter.finish(99))
    assert out == b"".join(forth)
    assert not ends or not out.endswith(b"\n")


# -- single promises ---------------------------------------------------------------------------------------------------

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}\n'
NOTE = b'{"jsonrpc":"2.0","method":"n/x"}\n'


def test_a_line_that_is_too_long_is_told_and_nothing_gets_into_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EditPump, "limit", 100)

    def edit(message: Message, lane: Lane) -> Returned:
        return [Back(notification("n/back")), message] if message.direction == "c2s" else message

    with wires(edit) as both:
        both.send(b"x" * 500, back=True)
        both.until(1, b"x" * 500)
        both.send(CALL)
        both.send(b"y" * 500 + b"\n" + NOTE, back=True)
        both.finish()
    assert both.got[1].startswith(b"x" * 500 + b"y" * 500 + b"\n")
    assert sorted(both.got[1].splitlines()[1:]) == [b'{"jsonrpc":"2.0","method":"n/back"}', NOTE.strip()]
    (told,) = both.bodies("comment", 1)
    assert "unedited" in told["text"]
    assert told["text"] in both.said


def test_what_comes_while_a_message_is_held_is_noted_when_it_comes() -> None:
    release, held = threading.Event(), threading.Event()

    def edit(message: Message, lane: Lane) -> Returned:
        if message.method == "tools/call":
            with lane.holding():
                held.set()
                release.wait(PATIENCE)
        return message

    with wires(edit) as both:
        both.send(CALL)
        held.wait(PATIENCE)
        both.send(NOTE)
        wanted = len(CALL + NOTE)
        for _ in range(PATIENCE * 1000):
            if both.forth.received == wanted:
                break
            threading.Event().wait(0.001)
        both.send(NOTE, back=True)
        both.until(1, NOTE)  # the other direction goes on
        assert both.got[0] == b""
        assert both.forth.pending() == wanted
        threading.Event().wait(0.02)
        release.set()
        both.finish()
    assert both.got[0] == CALL + NOTE
    kinds = [(kind, body) for _, kind, channel, body in both.records() if channel == 0]
    assert [kind for kind, _ in kinds] == ["chunk", "chunk", "hold", "hold"]
    assert {**kinds[2][1], "us": 0} == {"start": 0, "length": len(CALL), "by": "hook", "us": 0}
    behind = {"start": len(CALL), "length": len(NOTE), "by": "hook", "why": BEHIND, "us": 0}
    assert {**kinds[3][1], "us": 0} == behind


def test_a_hold_is_told_when_it_begins_and_so_of_what_comes_behind_it() -> None:
    release, held = threading.Event(), threading.Event()

    def edit(message: Message, lane: Lane) -> Returned:
        if message.method == "tools/call":
            with lane.holding():
                lane.held("hook", "to think")
                held.set()
                release.wait(PATIENCE)
        return message

    with wires(edit) as both:
        both.send(CALL + NOTE)
        held.wait(PATIENCE)
        both.send(NOTE)
        for _ in range(PATIENCE * 1000):
            if both.forth.received == len(CALL + NOTE + NOTE):
                break
            threading.Event().wait(0.001)
        release.set()
        both.finish()
    assert both.got[0] == CALL + NOTE + NOTE
    size, more = len(CALL), len(NOTE)
    found = [(body["start"], body["length"], body["us"] > 0, body.get("why")) for body in both.bodies("hold", 0)]
    assert found[:3] == [(0, size, False, "to think"), (size, more, False, BEHIND), (size + more, more, False, BEHIND)]
    assert sorted(found[3:]) == [(0, size, True, None), (size, more, True, BEHIND), (size + more, more, True, BEHIND)]


@pytest.mark.parametrize(("seconds", "is_told"), [(0.003, False), (0.012, True)])
def test_nothing_is_said_of_a_busy_machine(seconds: float, is_told: bool) -> None:
    until: list[int] = []

    def edit(message: Message, lane: Lane) -> Returned:
        began = time.perf_counter()
        while time.perf_counter() < began + seconds:
            pass
        until.append(round((time.perf_counter() - began) * 1_000_000))
        return message

    with wires(edit) as both:
        both.send(CALL)
        both.finish()
    assert both.got[0] == CALL
    assert len(both.bodies("hold", 0)) == is_told or until[0] > 8_000  # it was a very busy one


def test_no_more_is_read_ahead_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes_intake, "AHEAD", 1000)
    release, held = threading.Event(), threading.Event()

    def edit(message: Message, lane: Lane) -> Returned:
        if message.method == "tools/call":
            with lane.holding():
                held.set()
                release.wait(PATIENCE)
        return message

    with wires(edit) as both:
        both.send(CALL)
        held.wait(PATIENCE)
        sender = threading.Thread(target=both.send, args=(b"x" * 99 + b"\n",) * 5000, daemon=True)
        sender.start()
        for _ in range(200):
            threading.Event().wait(0.001)
        assert both.forth.received < len(CALL) + 1000 + 65536 * 2
        release.set()
        sender.join(PATIENCE)
        both.finish()
    assert both.got[0] == CALL + (b"x" * 99 + b"\n") * 5000


def test_whoever_holds_a_message_learns_that_the_receiver_is_gone() -> None:
    seen: list[bool] = []

    def edit(message: Message, lane: Lane) -> Returned:
        with lane.holding():
            for _ in range(PATIENCE * 1000):
                seen.append(lane.is_gone)
                if seen[-1]:
                    break
                threading.Event().wait(0.001)
        return message

    with wires(edit, reading=False) as both:
        both.send(CALL)
        while not seen:
            threading.Event().wait(0.001)
        assert not seen[0]
        both.close(both.server_out)
        both.threads[0].join(PATIENCE)
        assert seen[-1]
        assert both.forth.outcome == BROKEN


def test_the_end_of_a_session_releases_what_is_held() -> None:
    def edit(message: Message, lane: Lane) -> Returned:
        with lane.holding():
            while not lane.is_gone:
                threading.Event().wait(0.001)
        return message

    with wires(edit) as both:
        both.send(CALL)
        both.forth.release()
        both.finish()
    assert both.got[0] == CALL


def test_what_is_left_of_a_line_goes_on_at_the_end() -> None:
    with wires(passes) as both:
        both.send(NOTE + b'{"half', back=True)
        both.until(1, NOTE)
        while both.back.received < len(NOTE) + 6 or both.back.pending():  # nobody waits for the rest of it
            threading.Event().wait(0.001)
        both.back.finish()
        both.finish()
    assert both.got[1] == NOTE + b'{"half'


def test_the_end_does_not_wait_for_a_line_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpsniff.proxy.relay.pipes.LAST_LINE", 3600)
    with wires(passes) as both:
        both.send(NOTE, back=True)
        both.until(1, NOTE)
        both.back.finish()
        both.finish()
    assert both.got[1] == NOTE


def test_an_answer_in_the_servers_place_does_not_wait_for_ever_for_a_client_that_writes_first() -> None:
    count = 3000
    with wires(lambda message, _: Back(notification("n/long", {"x": "y" * 200})), reading=False) as both:
        sender = threading.Thread(target=both.send, args=(CALL * 1,) * count, daemon=True)
        sender.start()
        sender.join(PATIENCE)  # 200 KB; a pipe holds 64
        assert not sender.is_alive()
        both.readers[0].start()
        both.readers[1].start()
        both.finish()
    assert both.got[1].count(b"n/long") == count


def test_a_hook_that_breaks_changes_nothing() -> None:
    def edit(message: Message, lane: Lane) -> Returned:
        raise RuntimeError("a bug of ours")

    with wires(edit) as both:
        both.send(CALL, CALL)
        both.finish()
    assert both.got[0] == CALL + CALL
    assert len(both.said) == 1
    assert "a bug of ours" in both.said[0]


def test_what_has_no_place_on_pipes_is_told_once_and_the_message_passes() -> None:
    with wires(lambda message, _: HttpAnswer(404) if message.id else Headed(message, {"a": "b"})) as both:
        both.send(CALL, CALL, NOTE, NOTE)
        both.finish()
    assert both.got[0] == CALL + CALL + NOTE + NOTE
    assert len(both.said) == 2


def test_a_slow_message_is_whole_and_told_before_it_leaves() -> None:
    with wires(lambda message, _: Paced(message, 2000.0, "slowly")) as both:
        both.send(CALL)
        both.until(0, CALL[:1])
        while not any(kind == "hold" for _, kind, _, _ in both.recorder._queue):
            threading.Event().wait(0.001)
        both.finish()
    assert both.got[0] == CALL
    (hold,) = both.bodies("hold", 0)
    assert hold["why"] == "slowly"
    assert hold["us"] >= len(CALL) / 2000.0 * 1_000_000


def test_an_answer_to_a_client_that_has_gone_ends_that_direction() -> None:
    with wires(lambda message, _: Back(notification("n/x")), reading=False) as both:
        both.close(both.client_out)
        both.send(CALL)
        for _ in range(PATIENCE * 1000):
            if both.ended:  # although its thread still waits for the server
                break
            threading.Event().wait(0.001)
        assert both.back.outcome == BROKEN
        assert both.ended == [1]
