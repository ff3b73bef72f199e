"""An addon whose file changes: the next message has the new version, and a broken one changes nothing."""

import os
import threading
import time
from pathlib import Path

import pytest

from tests.hooks.loaded import OLD, Loaded, looks_always, written
from tests.rules.staging import request

__all__ = ["looks_always"]
pytestmark = pytest.mark.usefixtures("looks_always")
SAYS = "def mcp_edit(message):\n    message.body['by'] = {}\n    return message\n"


def by(stage: Loaded) -> int:
    stage.client(request(1, "ping"))
    number = stage.at_server()["by"]
    assert isinstance(number, int)
    return number


def test_the_next_message_has_the_new_version(tmp_path: Path) -> None:
    path = written(tmp_path / "addon.py", SAYS.format(1))
    stage = Loaded(path)
    assert by(stage) == 1
    written(path, SAYS.format(2), OLD + 1)
    assert by(stage) == by(stage) == 2
    # An editor that puts a new file in its place, which is as old and as large.
    written(tmp_path / "new", SAYS.format(3), OLD + 1)
    os.replace(tmp_path / "new", path)
    assert by(stage) == 3
    assert stage.said == [f"read {path} again"] * 2


def test_a_file_that_was_written_just_now_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "addon.py", SAYS.format(1))
    stage = Loaded(path)
    written(path, "", time.time() + 3600)  # its clock may be another one
    written(path, "def mcp_edit(mess", time.time())
    assert by(stage) == 1
    assert stage.said == []
    path.unlink()
    assert by(stage) == 1
    written(path, SAYS.format(2), OLD + 1)
    assert by(stage) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def mcp_edit(:\n", "cannot load the addon {path}, line 1: SyntaxError: invalid syntax"),
        ("\nraise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("x = 1\n", "{path} has no hook any more"),
        ("", "{path} has no hook any more"),
        (
            "def load(loader):\n    loader.add_option('kept', int, 1, '')\n" + SAYS.format(2),
            "--set kept needs integer, not 'text'",
        ),
        (
            "def configure(updated):\n    raise ValueError('not so')\n" + SAYS.format(2),
            "the addon refuses its options: {path}, line 2: ValueError: not so",
        ),
    ],
)
def test_a_broken_version_is_told_once_and_the_earlier_one_goes_on(tmp_path: Path, text: str, why: str) -> None:
    first = "def load(loader):\n    loader.add_option('kept', str, '', '')\n" + SAYS.format(1)
    path = written(tmp_path / "addon.py", first)
    stage = Loaded(path, settings=["kept=text"])
    written(path, text, OLD + 1)
    assert by(stage) == by(stage) == 1
    assert stage.said == [f"{why.format(path=path)}; its earlier version goes on"]
    written(path, first.replace("= 1", "= 3"), OLD + 2)
    assert by(stage) == 3


def test_a_changed_module_beside_it_is_read_too(tmp_path: Path) -> None:
    beside = written(tmp_path / "part_of_it.py", "number = 1\n")
    text = "import part_of_it\ndef mcp_edit(message):\n    message.body['by'] = part_of_it.number\n    return message\n"
    stage = Loaded(written(tmp_path / "addon.py", text))
    assert by(stage) == 1
    written(beside, "number = 2\n", OLD + 1)
    assert by(stage) == 2
    written(beside, "number = \n", OLD + 2)
    assert by(stage) == 2
    assert stage.said[-1].startswith(f"cannot load the addon {beside}, line 1: SyntaxError")
    written(beside, "number = 3\n", OLD + 3)
    assert by(stage) == 3


def test_the_new_version_has_the_options_and_the_old_one_ends_after_its_last_call(tmp_path: Path) -> None:
    text = """
        import asyncio
        from mcpsniff import ctx
        gate = asyncio.Event()
        def load(loader):
            loader.add_option("number", int, 0, "")
        def running():
            ctx.log.info("running {0}")
        def done():
            ctx.log.info("done {0}")
        async def mcp_edit(message):
            message.body["by"] = {0} * ctx.options.number
            if message.method == "wait":
                await gate.wait()
            return message
    """
    path = written(tmp_path / "addon.py", text.format(1))
    stage = Loaded(path, settings=["number=10"])
    waiting = threading.Thread(target=stage.client, args=(request(1, "wait"),))
    waiting.start()
    until = time.monotonic() + 30
    while not stage.lane.holds and time.monotonic() < until:
        time.sleep(0.001)
    release = stage.loaded.editing[0]._addon._version.hooks["mcp_edit"][0].__globals__["gate"]  # type: ignore[attr-defined]
    written(path, text.format(2), OLD + 1)
    stage.server(request(2, "ping"))
    assert stage.at_client()["by"] == 20
    assert stage.said == ["running 1", "running 2", f"read {path} again"]
    from mcpsniff.hooks.waiting import _loops

    _loops[0].call_soon_threadsafe(release.set)
    waiting.join(30)
    assert stage.at_server()["by"] == 10
    assert stage.said[3:] == ["done 1"]
    assert stage.end() == []
    assert stage.said[4:] == ["done 2"]


def test_hooks_of_another_kind_are_for_the_next_start(tmp_path: Path) -> None:
    path = written(tmp_path / "addon.py", SAYS.format(1))
    stage = Loaded(path)
    written(path, SAYS.format(2) + "def mcp_finding(finding):\n    pass\n", OLD + 1)
    assert by(stage) == 2
    assert stage.said[0] == "the addon addon now observes, which is for the next start"


def test_faults_are_told_anew_of_a_new_version(tmp_path: Path) -> None:
    path = written(tmp_path / "addon.py", "def mcp_edit(message):\n    1 / 0\n")
    stage = Loaded(path)
    for number in (1, 2):
        for _ in range(2):
            stage.client(request(1, "ping"))
        written(path, "def mcp_edit(message):\n    1 / 0\n#\n", OLD + number)
    assert len([text for text in stage.said if "ZeroDivisionError" in text]) == 2


def test_many_threads_and_a_new_version_at_each_message(tmp_path: Path) -> None:
    """Whoever reads the file anew, every message has one whole version."""
    path = written(tmp_path / "addon.py", SAYS.format(0))
    stage = Loaded(path)
    numbers: dict[str, list[int]] = {"c2s": [], "s2c": []}

    def talk(direction: str) -> None:
        other = Loaded.__new__(Loaded)
        other.__dict__.update(stage.__dict__)
        from mcpsniff.protocol.reading import JsonReader

        other._reader = JsonReader()
        for _ in range(200):
            other.say(direction, request(1, "ping"))
            (text,) = other._taken(direction)
            numbers[direction].append(int(text.rpartition(b":")[2].rstrip(b"}")))

    threads = [threading.Thread(target=talk, args=(direction,)) for direction in numbers]
    for thread in threads:
        thread.start()
    for number in range(1, 30):
        written(tmp_path / "new", SAYS.format(number), OLD + number)
        os.replace(tmp_path / "new", path)
    for thread in threads:
        thread.join(60)
    assert all(seen == sorted(seen) and len(seen) == 200 for seen in numbers.values())
    assert by(stage) == 29
    assert stage.end() == []
