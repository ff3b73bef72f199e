"""What addons do to mcpsniff besides: exceptions that are hostile, hooks that block, threads and tasks that fail."""

import gc
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.hooks import strays, waiting
from mcpsniff.hooks.context import ctx
from mcpsniff.hooks.faults import broken, described
from tests.hooks.loaded import OLD, Loaded, looks_always, written
from tests.rules.staging import request

__all__ = ["looks_always"]
PATIENCE = 30
BLOCKS = "import threading\nnever = threading.Event()\n"


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def told() -> Iterator[list[str]]:
    said: list[str] = []
    strays._told.clear()
    before = threading.excepthook, sys.unraisablehook, ctx.say
    strays.tell(said.append)
    ctx.say = said.append
    yield said
    threading.excepthook, sys.unraisablehook, ctx.say = before


class _Meta(type):
    @property
    def __name__(cls) -> str:
        raise SystemExit(7)


class HostileError(Exception, metaclass=_Meta):
    def __str__(self) -> str:
        raise SystemExit(7)

    @property
    def __traceback__(self) -> Any:
        raise SystemExit(7)


def test_an_exception_that_raises_when_it_is_described_is_told_of() -> None:
    assert described(HostileError()) == "an exception"
    assert broken(HostileError(), "/x/addon.py") == "/x/addon.py: an exception"


def test_such_an_exception_ends_nothing(tmp_path: Path) -> None:
    bad = "class Bad(Exception):\n    def __str__(self):\n        raise SystemExit(7)\n"
    path = written(tmp_path / "addon.py", f"{bad}def mcp_edit(message):\n    raise Bad\n")
    stage = Loaded(path)
    stage.client(request(1, "ping"))
    assert stage.to_server()
    assert stage.said == [
        f"the addon addon failed in mcp_edit: {path}, line 5: Bad; messages pass as they are where it fails"
    ]
    with pytest.raises(UsageError, match="line 4: Bad"):
        Loaded(written(path, f"{bad}raise Bad\n"))


def test_what_is_no_json_undoes_no_earlier_edit(tmp_path: Path) -> None:
    masks = "def mcp_edit(message):\n    message.body['masked'] = 1\n    return message\n"
    for value in ("{1}", "float('nan')", "object()"):
        spoils = f"def mcp_edit(message):\n    message.body['bad'] = {value}\n    return message\n"
        stage = Loaded(written(tmp_path / "masks.py", masks), written(tmp_path / "spoils.py", spoils))
        stage.client(request(1, "ping"))
        assert stage.at_server()["masked"] == 1
        (said,) = stage.said
        assert "cannot be written as JSON" in said


def test_a_later_hook_of_the_file_answers_what_an_earlier_one_has_made(tmp_path: Path) -> None:
    text = """
        import mcpsniff
        class Asks:
            def mcp_edit(self, message):
                return [mcpsniff.request("own"), message]
        class Answers:
            def mcp_edit(self, message):
                assert message.direction == "c2s"
                return mcpsniff.answer(message, {}) if message.method == "own" else message
        addons = [Asks, Answers]
    """
    stage = Loaded(written(tmp_path / "addon.py", text))
    stage.client(request(1, "ping"))
    assert len(stage.to_server()) == 1
    assert stage.to_client() == []
    assert stage.said == []


@pytest.mark.parametrize("is_async", [False, True])
def test_running_and_done_that_block_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_async: bool
) -> None:
    monkeypatch.setattr("mcpsniff.hooks.addon.GRACE", 0.05)
    waits = "async def {0}():\n    await asyncio.sleep(999)\n" if is_async else "def {0}():\n    never.wait()\n"
    text = f"import asyncio\n{BLOCKS}{waits.format('running')}{waits.format('done')}"
    stage = Loaded(written(tmp_path / "addon.py", f"{text}def mcp_edit(message):\n    return message\n"))
    stage.editor.begin(print)
    assert stage.end() == []
    assert [said.split(" is still in ")[1][:7].strip() for said in stage.said] == ["running", "done af"]


@pytest.mark.usefixtures("looks_always")
def test_traffic_has_the_old_version_until_the_new_one_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpsniff.hooks.addon.WAIT", 0.0)
    says = "def mcp_edit(message):\n    message.body['by'] = {}\n    return message\n"
    path = written(tmp_path / "addon.py", says.format(1))
    stage = Loaded(path)
    gate = threading.Event()
    monkeypatch.setattr(sys, "gate_of_a_test", gate, raising=False)

    def by() -> int:
        stage.client(request(1, "ping"))
        return int(stage.at_server()["by"])

    written(path, "import sys\nsys.gate_of_a_test.wait(30)\n" + says.format(2), OLD + 1)
    assert [by(), by()] == [1, 1]
    gate.set()
    until(lambda: by() == 2)
    path.unlink()
    os.mkfifo(path)
    os.utime(path, (OLD + 2, OLD + 2))
    assert by() == 2
    path.unlink()  # whoever reads the files of modules, as Hypothesis does, would wait at it for ever


def test_an_addon_is_a_regular_file(tmp_path: Path) -> None:
    path = tmp_path / "addon.py"
    os.mkfifo(path)
    with pytest.raises(UsageError, match=r"addon\.py: it is no regular file"):
        Loaded(path)


def test_an_unknown_coding_has_no_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"addon\.py: SyntaxError: "):
        Loaded(written(tmp_path / "addon.py", "# coding: foo\n"))


def test_threads_and_tasks_that_fail_are_told_of_in_one_line(tmp_path: Path, told: list[str]) -> None:
    text = """
        import asyncio, threading
        def falls():
            1 / 0
        async def bad():
            1 / 0
        async def mcp_edit(message):
            threading.Thread(target=falls).start()
            asyncio.get_running_loop().create_task(bad())
            return message
    """
    path = written(tmp_path / "addon.py", text)
    stage = Loaded(path)
    ctx.say = told.append
    for number in range(3):
        stage.client(request(number, "ping"))
    until(lambda: len(told) == 2)
    assert sorted(told) == [
        f"a task of an addon failed: {path}, line 6: ZeroDivisionError: division by zero",
        f"a thread of an addon failed: {path}, line 4: ZeroDivisionError: division by zero",
    ]


@pytest.mark.parametrize(
    "ends",
    [
        "await asyncio.gather(leave())",
        "asyncio.create_task(leave())",
        "asyncio.get_running_loop().call_soon(sys.exit, 3)",
        "asyncio.get_running_loop().call_soon(interrupt)",
        "asyncio.get_running_loop().stop()",
    ],
)
def test_nothing_that_a_task_does_ends_the_loop(tmp_path: Path, told: list[str], ends: str) -> None:
    text = f"""
        import asyncio, sys
        async def leave():
            sys.exit(3)
        def interrupt():
            raise KeyboardInterrupt
        async def mcp_edit(message):
            if message.method == "end":
                {ends}
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            return message
    """
    stage = Loaded(written(tmp_path / "addon.py", text))
    for method in ("end", "ping"):
        stage.client(request(1, method))
        assert stage.at_server()["method"] == method
    gc.collect()  # a task whose exception nobody has asked for is told of then, and here
    assert "stop" in ends or stage.said + told


def test_no_descriptors_for_a_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str], recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(waiting, "_loops", [])
    stage = Loaded(written(tmp_path / "addon.py", "async def mcp_edit(message):\n    return message\n"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        stage.client(request(1, "ping"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert stage.to_server()
    (said,) = stage.said
    assert "Too many open files" in said
    assert told == []
    assert not [one for one in recwarn.list if one.category is RuntimeWarning]  # never awaited
