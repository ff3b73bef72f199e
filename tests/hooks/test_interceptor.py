"""Edit hooks of addons: what they return, and that nothing that they do wrong reaches the traffic."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.hooks.actions import HttpHead
from mcpsniff.hooks.editor import SAME
from tests.hooks.loaded import Loaded, written
from tests.rules.staging import call, request, result

HEAD = "import asyncio\nimport sys\nimport mcpsniff\n"


def stage_of(tmp_path: Path, body: str, is_async: str = "") -> Loaded:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return Loaded(written(tmp_path / "addon.py", f"{HEAD}{is_async}def mcp_edit(message):\n{lines}\n"))


@pytest.mark.parametrize("is_async", ["", "async "])
def test_a_message_passes_is_changed_dropped_or_answered(tmp_path: Path, is_async: str) -> None:
    body = """
if message.method == "tools/call":
    message.body["params"]["name"] = "other"
    return mcpsniff.Told(message, "renamed")
if message.method == "drop":
    return None
if message.method == "refuse":
    return mcpsniff.refuse(message, "no", code=-32001)
if message.method == "around":
    return [mcpsniff.notification("before"), message, mcpsniff.notification("after", {"x": 1})]
return message
"""
    stage = stage_of(tmp_path, body, is_async)
    untouched = b'{"jsonrpc": "2.0", "id": 1.0, "method": "ping", "id": 1}'
    stage.client(untouched)
    assert stage.to_server() == [untouched]
    stage.client(b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "n": 1.0}}')
    assert stage.to_server() == [
        b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "other", "n": 1.0}}'
    ]
    stage.client(request(3, "drop"))
    assert stage.to_server() == []
    stage.client(request(4, "refuse"))
    assert stage.to_server() == []
    assert stage.at_client() == {"jsonrpc": "2.0", "id": 4, "error": {"code": -32001, "message": "no"}}
    stage.client(request(5, "around"))
    assert [json.loads(text)["method"] for text in stage.to_server()] == ["before", "around", "after"]
    assert stage.whys == ["addon: renamed", "addon", "addon", "addon"]
    assert stage.said == []


def test_who_changed_a_message_in_place_is_told_among_several(tmp_path: Path) -> None:
    text = "def mcp_edit(message):\n    message.body.setdefault('seen', 1)\n    return message\n"
    files = [
        written(tmp_path / "first.py", "def mcp_edit(message):\n    return message\n"),
        written(tmp_path / "second.py", text),
        written(tmp_path / "third.py", text),
    ]
    stage = Loaded(*files)
    stage.client(request(1, "ping"))
    assert stage.whys == ["second"]


BAD = {
    "raise KeyError('name')": "KeyError: 'name'",
    "sys.exit(4)": "SystemExit: 4",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "return mcp_edit(message)": "RecursionError: maximum recursion depth exceeded",
    "raise asyncio.CancelledError": "CancelledError",
    "raise TimeoutError": "TimeoutError",
    "return mcpsniff.answer(mcpsniff.notification('x'), {})": "ValueError: only a request can be answered",
}


@pytest.mark.parametrize("statement", BAD)
@pytest.mark.parametrize("is_async", ["", "async "])
def test_whatever_an_addon_raises_is_told_once_and_the_message_passes(
    tmp_path: Path, statement: str, is_async: str
) -> None:
    if is_async:
        statement = statement.replace("mcp_edit(message)", "await mcp_edit(message)")
    stage = stage_of(tmp_path, f"message.body['params'] = 'spoilt'\n{statement}", is_async)
    said = [call(1, "echo"), call(2, "echo"), b"no JSON", result(3)]
    for one in said[:3]:
        stage.client(one)
    stage.server(said[3])
    assert [json.loads(text) for text in stage.to_server()[:2]] == said[:2]
    assert stage.at_client() == said[3]
    assert {out.what for out in stage.outs} <= {SAME}  # it may have been held for long
    first = stage.said[0]
    assert first.startswith(f"the addon addon failed in mcp_edit: {tmp_path / 'addon.py'}, line ")
    wanted = BAD[statement.replace("await ", "")]
    assert wanted in first
    assert first.endswith("; messages pass as they are where it fails")
    # The third has no object to spoil, which is another fault, in another line.
    assert len(stage.said) == 2
    assert stage.end() == ["the addon addon failed 4 times in all"]


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("message.body", "a dict, which is neither a message nor anything that can be done with one"),
        ("True", "a bool, which"),
        ("'text'", "a str, which"),
        ("mcpsniff", "a module, which"),
        ("[message, None]", "a list with None, which"),
        ("mcpsniff.Cut(message, -1)", "Cut that keeps -1 bytes"),
        ("mcpsniff.Cut(message, 1.5)", "Cut that keeps 1.5 bytes"),
        ("mcpsniff.Cut(message, 'x')", "Cut that keeps a str bytes"),
        ("mcpsniff.Cut(message, -(10**5000))", "Cut that keeps a int bytes"),
        ("mcpsniff.Cut(None, 1)", "Cut whose message is None"),
        ("mcpsniff.Back(message.body)", "Back whose message is a dict"),
        ("mcpsniff.Raw('text')", "Raw whose data is a str, not bytes"),
        ("mcpsniff.Text('text')", "Text whose data is a str, not bytes"),
        ("mcpsniff.Paced(message, 0)", "Paced with 0 bytes per second"),
        ("mcpsniff.Paced(message, float('nan'))", "Paced with nan bytes per second"),
        ("mcpsniff.Later(message, -1)", "Later with -1 seconds"),
        ("mcpsniff.Headed(message, {'A': 'x\\r\\ny'})", "Headed whose headers are no mapping"),
        ("mcpsniff.Headed(message, {'A b': 'x'})", "Headed whose headers are no mapping"),
        ("mcpsniff.HttpAnswer(99)", "HttpAnswer with the status 99"),
        ("mcpsniff.HttpAnswer(404, {'a': 'b'})", "headers that are no pairs"),
        ("mcpsniff.HttpAnswer(404, [('a', 'b\\n')])", "headers that are no pairs"),
        ("mcpsniff.HttpAnswer(404, (), 'text')", "HttpAnswer whose body is a str, not bytes"),
        ("mcpsniff.Drop(1)", "Drop whose why is a int"),
    ],
)
def test_what_cannot_be_done_is_told_once_and_the_message_passes(tmp_path: Path, returned: str, text: str) -> None:
    stage = stage_of(tmp_path, f"message.body['spoilt'] = 1\nreturn {returned}")
    for number in (1, 2):
        stage.client(call(number, "echo"))
        assert stage.at_server() == call(number, "echo")
    (said,) = stage.said
    assert said.startswith(f"the addon addon: mcp_edit has returned {text}")
    assert said.endswith("; the message passes as it was")


def test_endless_different_complaints_end(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, "return mcpsniff.Cut(message, -message.body['id'])")
    for number in range(1, 50):
        stage.client(request(number, "ping"))
        assert stage.at_server()["id"] == number
    assert len(stage.said) == 20
    assert stage.end() == ["the addon addon failed 49 times in all"]
    stage = stage_of(tmp_path, "raise ValueError('x' * 100_000)")
    stage.client(request(1, "ping"))
    assert len(stage.said[0]) < 800


@pytest.mark.parametrize("value", ["message.body", "object()", "{1: 2}", "b'x'", "10**5000", "float('nan')", "Odd()"])
def test_a_body_that_is_no_json_harms_no_other_addon(tmp_path: Path, value: str) -> None:
    odd = """
        class Odd:
            def __deepcopy__(self, memo):
                raise ValueError
            def __eq__(self, other):
                raise ValueError
            __hash__ = None
        def mcp_edit(message):
            message.body["odd"] = VALUE
            return message
    """.replace("VALUE", value)
    files = [
        written(tmp_path / "first.py", odd),
        written(tmp_path / "second.py", "def mcp_edit(message):\n    return message\n"),
        written(tmp_path / "third.py", "def mcp_edit(message):\n    1 / 0\n"),
    ]
    stage = Loaded(*files)
    stage.client(request(1, "ping"))
    assert len(stage.to_server()) == 1
    *first, third = stage.said
    told = [said.startswith("the addon first: mcp_edit has returned what cannot be written as JSON") for said in first]
    assert told == ([] if value == "{1: 2}" else [True])  # a name is a text
    assert third.startswith("the addon third failed in mcp_edit")


def test_dropping_the_first_request_is_told(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, "message.body['x'] = 1")
    stage.client(request(1, "initialize"))
    assert stage.to_server() == []
    assert stage.said == [
        "the addon addon: mcp_edit returned None for initialize, which drops it: is a return missing?"
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 300 + b"]" * 300 + b"}",
        b'[{"jsonrpc":"2.0","id":1,"method":"x"}]',
        b'"text"',
    ],
)
def test_a_message_that_json_libraries_lose_passes_when_an_addon_fails(tmp_path: Path, raw: bytes) -> None:
    body = "if isinstance(message.body, dict):\n    message.body['x'] = 1\nraise ValueError"
    stage = stage_of(tmp_path, body)
    stage.client(raw)
    assert stage.to_server() == [raw]


def test_asynchronous_hooks_wait_in_one_thread_while_what_arrives_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpsniff.hooks.waiting.LONG", 0.0)
    monkeypatch.setattr("mcpsniff.hooks.waiting.LOOK", 0.005)
    text = """
        import asyncio
        import threading
        threads = set()
        gate = asyncio.Event()
        async def mcp_edit(message):
            threads.add(threading.current_thread())
            if message.method == "wait":
                await gate.wait()
            if message.method == "go":
                gate.set()
            return message
        def done():
            assert len(threads) == 1
    """
    stage = Loaded(written(tmp_path / "addon.py", text))
    waiting = threading.Thread(target=stage.client, args=(request(1, "wait"),))
    waiting.start()
    until = time.monotonic() + 30
    while not stage.lane.told and time.monotonic() < until:
        time.sleep(0.001)
    assert (stage.lane.holds, stage.lane.told) == (1, [("addon", "")])
    assert stage.to_server() == []
    stage.server(request(2, "go"))
    waiting.join(30)
    assert stage.to_server()
    assert stage.end() == []
    assert stage.said == []


def test_a_message_that_nobody_waits_for_any_more_is_let_go(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, "await asyncio.Event().wait()", "async ")
    stage.lane.is_gone = True
    stage.client(request(1, "ping"))
    assert stage.at_server() == request(1, "ping")
    assert stage.said == []


def head(**more: Any) -> HttpHead:
    return HttpHead("c2s", "POST", "/mcp", headers=[("Host", "a"), ("Accept", "*/*")], **more)


def test_a_head_is_changed_and_left_alone_where_the_hook_fails(tmp_path: Path) -> None:
    text = """
        def mcp_edit_head(head):
            head.set("X-Added", "1")
            if head.direction == "s2c":
                head.status = "404" if head.target == "/bad" else 404
                return
            if head.target == "/fails":
                raise ValueError("no")
            if head.target == "/splits":
                head.headers.append(("A", "x\\r\\nB: y"))
    """
    stage = Loaded(written(tmp_path / "addon.py", text))
    good, fails, splits = head(), head(), head()
    fails.target, splits.target = "/fails", "/splits"
    for one in (good, fails, splits):
        stage.editor.edit_head(one)
    assert good.headers[-1] == ("X-Added", "1")
    assert fails.headers == splits.headers == head().headers
    answer, bad = head(status=200), head(status=200)
    answer.direction = bad.direction = "s2c"
    bad.target = "/bad"
    for one in (answer, bad):
        stage.editor.edit_head(one)
    assert (answer.status, bad.status) == (404, 200)
    assert len(stage.said) == 3
    assert stage.said[0].endswith("line 8: ValueError: no; heads pass as they are where it fails")


def test_a_remark_goes_into_the_capture(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, "mcpsniff.ctx.remark('seen')\nreturn message")
    stage.client(request(1, "ping"))
    assert stage.remarks == ["seen"]
