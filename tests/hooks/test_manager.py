"""Observing hooks: what they are told, in order, and that their faults are told once."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.hooks.addon import Addon
from mcpsniff.hooks.events import HOOKS, OBSERVING
from mcpsniff.hooks.loading import read
from mcpsniff.hooks.manager import Manager
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.session import Session
from tests.hooks.loaded import OLD, looks_always, written

__all__ = ["looks_always"]

CAPTURES = Path(__file__).resolve().parents[2] / "captures"

ALL = "\n".join(
    f"{'async ' if number % 2 else ''}def {name}(it):\n    told.append(({name!r}, it))"
    for number, name in enumerate(HOOKS)
    if HOOKS[name].group == OBSERVING
)


def told_by(path: Path, capture: str, said: list[str]) -> list[Addon]:
    addons = read([str(path)], [], said.append)
    manager = Manager(addons)
    manager.running()
    session = Session(open_capture(str(CAPTURES / f"{capture}.mcpcap")))
    told = manager.told_of(session.conversation)
    for events in session.events():
        told.feed(events)
    said += manager.done()
    return addons


def variable(addon: Addon, name: str) -> Any:
    return getattr(addon._version.script.module, name)


@pytest.mark.parametrize("capture", ["faults", "rail-http", "hostile", "weather"])
def test_hooks_are_told_of_every_event_in_order(tmp_path: Path, capture: str) -> None:
    said: list[str] = []
    (addon,) = told_by(written(tmp_path / "addon.py", f"told = []\n{ALL}\n"), capture, said)
    told = variable(addon, "told")
    events = [event for found in Session(open_capture(str(CAPTURES / f"{capture}.mcpcap"))).events() for event in found]
    kinds = {"Frame": "mcp_frame", "Message": "mcp_message", "Exchange": "mcp_exchange", "Finding": "mcp_finding"}
    kinds |= {"Stderr": "mcp_stderr", "Close": "mcp_close", "Edit": "mcp_rewrite"}
    expected = [(kinds[type(event).__name__], event) for event in events if type(event).__name__ in kinds]
    plain = [(name, it) for name, it in told if name in kinds.values()]
    assert [(name, repr(it)) for name, it in plain] == [(name, repr(it)) for name, it in expected]
    counts = Counter(name for name, _ in told)
    messages = Counter(event.kind for event in events if isinstance(event, Message))
    assert counts["mcp_request"] == messages["request"]
    assert counts["mcp_response"] == messages["response"] + messages["error"]
    assert counts["mcp_notification"] == messages["notification"]
    numbers = {event.conversation for event in events if isinstance(event, Message)} - {0}
    opened = [(at, it.number) for at, (name, it) in enumerate(told) if name == "mcp_open"]
    assert {number for _, number in opened} == numbers
    assert len(opened) == len(numbers)
    for at, number in opened:
        before = [it for name, it in told[:at] if name == "mcp_message"]
        assert number not in {it.conversation for it in before}
        assert told[at + 1][1].conversation == number
    assert said == []


def test_a_fault_is_told_once_and_the_other_hooks_are_called(tmp_path: Path) -> None:
    text = """
        called = []
        class First:
            def mcp_request(self, message):
                raise SystemExit(1)
        class Second:
            def mcp_request(self, message):
                called.append(message)
        addons = [First(), Second]
    """
    said: list[str] = []
    path = written(tmp_path / "addon.py", text)
    (addon,) = told_by(path, "weather", said)
    count = len(variable(addon, "called"))
    assert count > 3
    assert said == [
        f"the addon addon failed in mcp_request: {path}, line 5: SystemExit: 1",
        f"the addon addon failed {count} times in all",
    ]


def test_ctrl_c_is_not_the_addons(tmp_path: Path) -> None:
    path = written(tmp_path / "addon.py", "def mcp_request(message):\n    raise KeyboardInterrupt\n")
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        told_by(path, "weather", said)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        told_by(path, "weather", said)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len([text for text in said if "KeyboardInterrupt" in text]) == 1


@pytest.mark.usefixtures("looks_always")
def test_a_new_version_is_told_what_comes_after_it(tmp_path: Path) -> None:
    path = written(tmp_path / "addon.py", "told = []\ndef mcp_request(message):\n    told.append(message.n)\n")
    said: list[str] = []
    (addon,) = read([str(path)], [], said.append)
    manager = Manager([addon])
    session = Session(open_capture(str(CAPTURES / "weather.mcpcap")))
    told = manager.told_of(session.conversation)
    old = variable(addon, "told")
    for events in session.events():
        told.feed(events)
        if old and variable(addon, "told") is old:
            written(path, path.read_text() + "#\n", OLD + 1)
    assert len(old) == 1
    assert len(variable(addon, "told")) == 6


def test_what_was_changed_on_the_way_is_told(tmp_path: Path) -> None:
    text = "from mcpsniff import ctx\ndef mcp_rewrite(edit):\n    ctx.log.info(f'{edit.change} by {edit.by}')\n"
    said: list[str] = []
    manager = Manager(read([str(written(tmp_path / "addon.py", text))], [], said.append))
    lines = [
        b'{"mcpcap":1,"run":"x","part":1,"started":"2026-11-29T10:00:00Z","transport":"stdio"}',
        b'[0,"open",0,{"kind":"stdin","dir":"c2s","conn":0}]',
        b'[1,"chunk",0,"{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"x\\"}\\n"]',
        b'[2,"rewrite",0,{"start":0,"length":31,"data":"","by":"mine"}]',
    ]
    path = tmp_path / "edited.mcpcap"
    path.write_bytes(b"\n".join(lines) + b"\n")
    session = Session(open_capture(str(path)))
    told = manager.told_of(session.conversation)
    for events in session.events():
        told.feed(events)
    assert said == ["dropped by mine"]
