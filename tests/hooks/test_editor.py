"""The editor, without any transport: what leaves in the place of a frame, and beside it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcpsniff.hooks.actions import (
    Back,
    Cut,
    Drop,
    Headed,
    HttpHead,
    Raw,
    Returned,
    Told,
    answer,
    back,
    copy,
    notification,
    refuse,
    request,
)
from mcpsniff.hooks.editor import ADDED, ANSWER_KEPT, BACK, CHANGED, SAME, Edit, Editor, Outgoing
from mcpsniff.protocol.jsonrpc import BATCH_LIMIT
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.ndjson import LineSplitter

CALL = b'{"jsonrpc":"2.0", "id": 7,"method":"tools/call","params":{"name":"add","arguments":{"x":1.0}}}'
ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'


class Lane:
    transport = "stdio"
    is_gone = False

    @contextmanager
    def holding(self) -> Iterator[None]:
        yield

    def held(self, by: str, why: str = "") -> None:
        raise AssertionError

    def late(self, out: Outgoing) -> None:
        raise AssertionError


class Hook:
    """An interceptor that is a function."""

    def __init__(self, does: Callable[[Message], Returned], name: str = "hook") -> None:
        self.does, self.name = does, name
        self.seen: list[Message] = []

    def edit(self, message: Message, lane: object) -> Returned:
        self.seen.append(message)
        return self.does(message)

    def edit_head(self, head: HttpHead) -> None:
        head.set("x-seen", self.name)

    def begin(self, remark: Callable[[str], object]) -> None:
        remark(f"{self.name} begins")

    def end(self) -> list[str]:
        return [f"{self.name} ends"]


class Bench:
    """An editor with these hooks, a client and a server."""

    def __init__(self, *does: Callable[[Message], Returned] | Hook) -> None:
        self.hooks = [one if isinstance(one, Hook) else Hook(one) for one in does]
        self.said: list[str] = []
        self.editor = Editor(self.hooks, self.said.append)
        self.lanes = {"c2s": Lane(), "s2c": Lane()}
        self.reader = JsonReader()
        self.talk = self.editor.talk("pipes")

    def edit(self, line: bytes, direction: str = "c2s") -> Edit | None:
        (frame,) = LineSplitter(0, direction).feed(0, line + b"\n")
        return self.editor.edit(frame, self.talk, self.lanes[direction], self.reader)

    def leaving(self, line: bytes, direction: str = "c2s") -> list[tuple[str, bytes]]:
        edit = self.edit(line, direction)
        assert edit is not None
        return [(out.what, out.data) for out in edit.leaving]


def passes(message: Message) -> Returned:
    return message


def renamed(message: Message) -> Returned:
    message.body["params"]["name"] = "sub"
    return message


@pytest.mark.parametrize(
    "line",
    [CALL, b"", b"  \r", b"no json", b"\xff\xfe", b"[]", b"42", b"[" * 300 + b"]" * 300, b"[" + CALL + b" , 3 ]", b"{"],
)
def test_nothing_is_wanted_of_what_hooks_return_as_it_is(line: bytes) -> None:
    assert Bench(passes, passes).edit(line) is None


def test_without_hooks_everything_passes() -> None:
    assert Bench().edit(CALL) is None


def test_a_changed_body_changes_only_its_own_bytes() -> None:
    edit = Bench(renamed).edit(CALL)
    assert edit is not None
    assert (edit.by, edit.passes) == ("hook", True)
    assert [(out.what, out.data, out.by) for out in edit.leaving] == [
        (CHANGED, CALL.replace(b'"add"', b'"sub"'), "hook")
    ]


def test_a_change_that_is_taken_back_is_none() -> None:
    def there_and_back(message: Message) -> Returned:
        message.body["params"]["name"] = "add"
        return message

    assert Bench(renamed, there_and_back).edit(CALL) is None


@pytest.mark.parametrize("nothing", [None, [], Drop()])
def test_what_is_not_returned_is_dropped(nothing: Returned) -> None:
    edit = Bench(Hook(lambda _: nothing, "gate")).edit(CALL)
    assert edit == Edit("gate", "", [])
    assert not edit.passes


def test_a_reason_comes_along() -> None:
    assert Bench(lambda _: Drop("not today")).edit(CALL) == Edit("hook", "not today", [])
    told = Bench(lambda message: Told(message, "was held")).edit(CALL)
    assert told is not None
    assert [(out.what, out.why) for out in told.leaving] == [(SAME, "was held")]


def test_others_go_before_and_after_it() -> None:
    first, last = notification("n/first"), notification("n/last", {"a": 1})
    assert Bench(lambda message: [first, message, last]).leaving(CALL) == [
        (ADDED, b'{"jsonrpc":"2.0","method":"n/first"}'),
        (SAME, CALL),
        (ADDED, b'{"jsonrpc":"2.0","method":"n/last","params":{"a":1}}'),
    ]


def test_another_message_takes_its_place() -> None:
    assert Bench(lambda _: [notification("n/a"), notification("n/b")]).leaving(CALL) == [
        (CHANGED, b'{"jsonrpc":"2.0","method":"n/a"}'),
        (ADDED, b'{"jsonrpc":"2.0","method":"n/b"}'),
    ]


def test_twice_the_same_is_once_more() -> None:
    assert Bench(lambda message: [message, message]).leaving(CALL) == [(SAME, CALL), (ADDED, CALL)]
    assert Bench(lambda message: [message, copy(message)]).leaving(CALL) == [(SAME, CALL), (ADDED, CALL)]
    cut = Bench(lambda message: [Cut(message, 5), message]).edit(CALL)
    assert cut is not None
    assert [out.what for out in cut.leaving] == [CHANGED, ADDED]


def test_an_answer_in_the_servers_place() -> None:
    assert Bench(lambda message: answer(message, {"content": []}, "cached")).leaving(CALL) == [(BACK, ANSWER)]
    edit = Bench(lambda message: refuse(message, "no", data=[1])).edit(CALL)
    assert edit is not None
    assert not edit.passes
    (out,) = edit.leaving
    assert json.loads(out.data) == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32000, "message": "no", "data": [1]}}


def test_only_requests_are_answered() -> None:
    hook = Hook(passes)
    bench = Bench(hook)
    bench.edit(ANSWER, "s2c")
    with pytest.raises(ValueError, match="response"):
        answer(hook.seen[0], {})


def test_later_hooks_see_what_earlier_ones_have_made_and_no_answers() -> None:
    second = Hook(passes, "second")
    bench = Bench(lambda message: [notification("n/new"), message, Back(notification("n/back"))], second)
    bench.edit(CALL)
    assert [message.method for message in second.seen] == ["n/new", "tools/call"]
    dropping = Bench(lambda _: None, second)
    dropping.edit(CALL)
    assert len(second.seen) == 2


def test_who_has_changed_it_is_told_of_each() -> None:
    bench = Bench(Hook(lambda message: [notification("n/new"), message], "first"), Hook(renamed_call, "second"))
    edit = bench.edit(CALL)
    assert edit is not None
    assert next((out.what, out.by) for out in edit.leaving) == (ADDED, "first")


def renamed_call(message: Message) -> Returned:
    return renamed(message) if message.method == "tools/call" else message


def test_an_own_request_gets_an_id_and_its_answer_is_kept() -> None:
    bench = Bench(
        Hook(lambda message: [request("ping"), message] if message.method == "tools/call" else message, "ask")
    )
    (added, own), same = bench.leaving(CALL)
    assert added == ADDED
    name = json.loads(own)["id"]
    assert json.loads(own) == {"jsonrpc": "2.0", "id": name, "method": "ping"}
    assert re.fullmatch("mcpsniff-[0-9a-f]{8}-[0-9]+", name)
    assert same == (SAME, CALL)
    reply = b'{"jsonrpc":"2.0","id":"%s","result":{}}' % name.encode()
    assert bench.edit(reply, "c2s") is None  # the client's own word, to the server
    assert bench.edit(reply, "s2c") == Edit("ask", ANSWER_KEPT, [])
    assert bench.edit(reply, "s2c") is None  # a second answer is the server's fault
    assert bench.edit(ANSWER, "s2c") is None


def test_an_own_id_does_not_collide() -> None:
    bench = Bench(lambda message: [request("ping"), message] if message.id == "7" else message)
    before, number = json.loads(bench.leaving(CALL)[0][1])["id"].rsplit("-", 1)
    taken = f"{before}-{int(number) + 1}"
    assert bench.edit(CALL.replace(b'"id": 7', b'"id": "%s"' % taken.encode())) is None
    assert json.loads(bench.leaving(CALL)[0][1])["id"] == f"{before}-{int(number) + 2}"


def test_an_own_request_to_the_side_that_it_came_from() -> None:
    bench = Bench(lambda message: [back(request("roots/list")), message] if message.method == "tools/call" else message)
    (what, data), _ = bench.leaving(CALL)
    assert what == BACK
    reply = json.dumps({"jsonrpc": "2.0", "id": json.loads(data)["id"], "result": {"roots": []}}).encode()
    assert bench.edit(reply, "c2s") == Edit("hook", ANSWER_KEPT, [])


def test_a_message_knows_what_it_belongs_to() -> None:
    hook = Hook(passes)
    bench = Bench(hook)
    progress = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}'
    bench.edit(CALL.replace(b'"name"', b'"_meta":{"progressToken":"t"},"name"'))
    bench.edit(progress, "s2c")
    bench.edit(ANSWER, "s2c")
    bench.edit(ANSWER, "s2c")
    call, step, reply, again = hook.seen
    assert call.link is not None
    assert step.link is reply.link is call.link
    assert call.link.target == "add"
    assert again.link is None
    assert {message.conversation for message in hook.seen} == {bench.talk.number}


def test_what_json_does_not_have_passes_as_it_was_and_is_told_once() -> None:
    def impossible(message: Message) -> Returned:
        message.body["params"]["name"] = {1, 2}
        return message

    bench = Bench(impossible)
    assert [bench.edit(CALL), bench.edit(CALL)] == [None, None]
    (said,) = bench.said
    assert "cannot be written as JSON" in said


def test_headers_are_wanted_of_an_unchanged_message() -> None:
    bench = Bench(lambda message: Headed(message, {"x-trace": "1"}))
    bench.lanes["c2s"].transport = "http"
    edit = bench.edit(CALL)
    assert edit is not None
    assert [(out.what, dict(out.headers)) for out in edit.leaving] == [(SAME, {"x-trace": "1"})]


def test_raw_bytes_in_its_place_or_beside_it() -> None:
    edit = Bench(lambda message: [Raw(b"noise\n"), message]).edit(CALL)
    assert edit is not None
    assert [(out.what, out.action) for out in edit.leaving] == [(ADDED, Raw(b"noise\n")), (SAME, None)]
    edit = Bench(lambda _: Raw(b"half")).edit(CALL)
    assert edit is not None
    assert [(out.what, out.action) for out in edit.leaving] == [(CHANGED, Raw(b"half"))]


def test_who_holds_a_message_is_told_though_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("mcpsniff.hooks.passing.monotonic_ns", lambda: now[0])

    def slow(message: Message) -> Returned:
        now[0] += 2_000_000
        return message

    edit = Bench(Hook(passes, "quick"), Hook(slow, "slow"), Hook(passes, "third")).edit(CALL)
    assert edit is not None
    assert (edit.by, [(out.what, out.by, out.data) for out in edit.leaving]) == ("slow", [(SAME, "slow", CALL)])


# -- batches -----------------------------------------------------------------------------------------------------------

PING = b'{"jsonrpc":"2.0","id":8,"method":"ping"}'


def test_an_element_of_a_batch_goes_its_own_way() -> None:
    def edit(message: Message) -> Returned:
        if message.method == "ping":
            return answer(message, {})
        return renamed(message)

    line = b"[ " + PING + b" ,\t" + CALL + b" ]"
    assert Bench(edit).leaving(line) == [
        (CHANGED, b"[" + CALL.replace(b'"add"', b'"sub"') + b"]"),
        (BACK, b'{"jsonrpc":"2.0","id":8,"result":{}}'),
    ]


def test_what_stands_between_elements_stays() -> None:
    line = b"[ " + PING + b" ,\t" + CALL + b" ]"
    assert Bench(lambda message: message if message.method == "ping" else renamed(message)).leaving(line) == [
        (CHANGED, line.replace(b'"add"', b'"sub"'))
    ]


def test_a_batch_without_an_element_left_is_dropped() -> None:
    assert Bench(lambda _: None).edit(b"[" + PING + b"," + CALL + b"]") == Edit("hook", "", [])


def test_elements_that_nobody_looks_at_pass() -> None:
    notes = [b'{"jsonrpc":"2.0","method":"n/%d"}' % n for n in range(BATCH_LIMIT + 3)]
    edit = Bench(lambda message: None if message.method == "n/1" else message).edit(b"[" + b",".join(notes) + b"]")
    assert edit is not None
    assert json.loads(edit.leaving[0].data) == [json.loads(note) for k, note in enumerate(notes) if k != 1]


def test_a_held_batch_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("mcpsniff.hooks.passing.monotonic_ns", lambda: now[0])

    def slow(message: Message) -> Returned:
        now[0] += 2_000_000
        return message

    line = b"[ " + PING + b", " + CALL + b"]"
    assert Bench(slow).leaving(line) == [(SAME, line)]


def test_all_are_named_who_do_something_to_a_batch_or_to_one_message() -> None:
    def dropped(message: Message) -> Returned:
        return Drop(f"no {message.id}") if message.method == "ping" else message

    def told(message: Message) -> Returned:
        return Told(renamed(message), f"other {message.id}") if message.method != "ping" else message

    def again(message: Message) -> Returned:
        return Told(message, "late") if message.method != "ping" else message

    hooks = Hook(dropped, "drops"), Hook(told, "renames"), Hook(again, "delays")
    line = b"[" + PING + b"," + CALL + b"," + CALL.replace(b"7", b"9") + b"]"
    edit = Bench(*hooks).edit(line)
    assert edit is not None
    assert (edit.by, edit.why) == ("drops + renames + delays", "no 8; other 7; late; other 9; late")
    assert [(out.what, out.by, out.why) for out in edit.leaving] == [(CHANGED, edit.by, edit.why)]
    one = Bench(*hooks).edit(CALL)
    assert one is not None
    assert (one.by, one.why) == ("renames + delays", "other 7; late")


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_heads_beginning_and_end_reach_every_hook() -> None:
    bench = Bench(Hook(passes, "a"), Hook(passes, "b"))
    head = HttpHead("c2s", "POST", "/mcp", headers=[("X-Seen", "no")])
    remarks: list[Any] = []
    bench.editor.edit_head(head)
    bench.editor.begin(remarks.append)
    assert head.headers == [("x-seen", "b")]
    assert remarks == ["a begins", "b begins"]
    assert bench.editor.end() == ["a ends", "b ends"]


def test_conversations_are_apart() -> None:
    bench = Bench(passes)
    assert bench.editor.talk("pipes") is bench.talk
    assert bench.editor.talk("other").number != bench.talk.number


def test_a_hold_is_by_somebody_who_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("mcpsniff.hooks.passing.monotonic_ns", lambda: now[0])

    def takes(us: int) -> Callable[[Message], Returned]:
        def does(message: Message) -> Returned:
            now[0] += us * 1000
            return message

        return does

    bench = Bench(Hook(takes(300), "quick"), Hook(takes(600), "slower"), Hook(takes(200), "third"))
    edit = bench.edit(CALL)
    assert edit is not None
    assert (edit.by, [(out.what, out.by) for out in edit.leaving]) == ("slower", [(SAME, "slower")])
    noisy = Bench(Hook(passes, "first"), Hook(lambda message: [copy(message), message], "twice")).edit(CALL)
    assert noisy is not None
    assert [(out.what, out.by) for out in noisy.leaving] == [(ADDED, "twice"), (SAME, "twice")]
    quick = Bench(Hook(takes(10), "first"), Hook(takes(20), "second"))
    assert quick.edit(CALL) is None
    assert quick.editor.holder == "second"
