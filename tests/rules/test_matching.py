"""Filter expressions on held messages: as `show --alone` has them, or refused with the reason."""

import re
import threading
from pathlib import Path

import pytest

from mcpsniff.hooks.actions import Returned
from mcpsniff.protocol.message import BATCH, Message
from mcpsniff.proxy.rules.matching import KNOWN, fields_of, matcher, quoted
from mcpsniff.transcript.filter import FilterError
from mcpsniff.transcript.filter.terms import EVENT_KINDS, FIELDS
from tests.filter.sample import SAMPLE
from tests.filter.selecting import messages, select
from tests.rules.staging import FakeLane, Stage, Watcher, call, request, result
from tests.sessions import decode
from tests.sessions import messages as all_messages

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "filter.md").read_text(encoding="utf-8")
EXPRESSIONS = [
    "tool:echo",
    "not tool:echo",
    "tool:get_*",
    "method:tools/call",
    "method:notifications/*",
    "prompt:greet",
    "uri:file:///notes/*",
    "dir:s2c",
    "dir:c2s kind:notification",
    "kind:request",
    "kind:response tool:*",
    "kind:error",
    "kind:invalid",
    "id:7",
    'id:"7"',
    "has:error",
    "has:error not kind:error",
    "latency:>500ms",
    "latency:300ms..1s tool:*",
    "size:>64k",
    "size:94",
    "hello",
    "text:北京",
    '"no such city"',
    "(tool:echo or kind:error) not hello",
    "flaw:*",
]


class Asking(Watcher):
    """Asks while the message is held: later more may be known."""

    def __init__(self, expression: str) -> None:
        super().__init__()
        self._holds = matcher(expression)

    def edit(self, message: Message, lane: FakeLane) -> Returned:
        return super().edit(message, lane) if self._holds(message) else message


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_is_true_of_the_messages_that_show_alone_has(expression: str) -> None:
    told = {message.n: message for message in all_messages(decode(SAMPLE))}
    wanted = [told[n].raw for n in messages(select(SAMPLE, expression, alone=True)) if told[n].kind != BATCH]
    asking = Asking(expression)
    Stage([asking]).play(SAMPLE)
    assert [message.raw for message in asking.seen] == wanted
    assert wanted, "an expression that matches nothing shows nothing"


def test_every_field_is_either_judged_or_refused_with_a_reason() -> None:
    example = {"severity": "error", "state": "open", "stream": "get", "auth": "*", "t": ">1s", "code": "MCP101"}
    for field in set(FIELDS) - KNOWN:
        with pytest.raises(FilterError, match=rf"{field}: cannot be asked here: \w+") as caught:
            matcher(f"tool:x {field}:{example.get(field, '1')}")
        assert caught.value.column == 8
    assert set(FIELDS) > KNOWN


@pytest.mark.parametrize(
    ("expression", "sentence", "meant"),
    [
        ("state:errored", "what becomes of a request", "kind:error"),
        ("state:answered", "what becomes of a request", "kind:response"),
        ("tool:x has:finding", "findings are made later", "has:error"),
        ("not (a or code:MCP101)", "findings are made later", ""),
        ("kind:batch", "of a batch each element", ""),
        ("flaw:what", "there is no flaw", ""),
        ("tol:x", "there is no field tol", "tool"),
        ("(tool:x", "this bracket is never closed", ""),
        ("", "the expression is empty", "tool:*"),
        ("latency:x", "does not begin with a number", ""),
    ],
)
def test_what_cannot_be_asked_is_refused_and_what_may_be_meant_is_said(
    expression: str, sentence: str, meant: str
) -> None:
    with pytest.raises(FilterError, match=re.escape(sentence)) as caught:
        matcher(expression)
    assert caught.value.suggestion == meant


def test_only_messages_are_held() -> None:
    for kind in EVENT_KINDS:
        if kind in ("request", "notification", "response", "error", "invalid"):
            matcher(f"kind:{kind}")
        elif kind != "batch":
            with pytest.raises(FilterError, match="is no message"):
                matcher(f"kind:{kind}")


def test_a_flaw_that_only_the_capture_tells_is_refused() -> None:
    from mcpsniff.wire.http1_parts import HTTP_FLAWS

    flaw = next(iter(HTTP_FLAWS))
    with pytest.raises(FilterError, match="is found later"):
        matcher(f"flaw:{flaw}")
    assert matcher("flaw:*")


def test_fields_of_an_expression() -> None:
    assert fields_of("TOOL:x or not hello") == {"tool", "text"}


@pytest.mark.parametrize("name", ["a", 'a "b"', "back\\slash", "stär*", "new\nline", "a(b)", "x:y", "and", "\t"])
def test_a_quoted_name_means_just_itself(name: str) -> None:
    holds = matcher(f"tool:{quoted(name)}")
    watcher = Watcher()
    stage = Stage([watcher])
    stage.client(call(1, name))
    stage.client(call(2, name + "x"))
    assert [holds(message) for message in watcher.seen] == [True, False]


def test_a_cancel_and_progress_belong_to_the_call() -> None:
    watcher = Watcher()
    stage = Stage([watcher])
    stage.client(request(1, "tools/call", name="slow", arguments={}, _meta={"progressToken": "p"}))
    stage.server({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p"}})
    stage.client({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    stage.client({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
    stage.server(result(1))
    assert list(map(matcher("tool:slow"), watcher.seen)) == [True, True, True, False, True]


def test_many_threads_may_ask_for_texts_at_once() -> None:
    watcher = Watcher()
    stage = Stage([watcher])
    for number in range(200):
        stage.client(call(number, "t", text=f"needle-{number % 2}-" + "x" * 2000))
    holds = matcher("needle-1-")
    wrong: list[int] = []

    def ask(offset: int) -> None:
        for _ in range(5):
            wrong.extend(n for n in range(offset, 200) if holds(watcher.seen[n]) != (n % 2 == 1))

    threads = [threading.Thread(target=ask, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
