"""A session with break points without a transport: messages come in threads, as they do in the shells."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Thread
from typing import Any

from mcpsniff.cli.attach_link import Link
from mcpsniff.hooks.editor import Edit, Editor
from mcpsniff.hooks.talk import Talk
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.breaks.point import BreakPoints
from mcpsniff.proxy.breaks.reading import breaks_from
from mcpsniff.wire.frames import Frame
from tests.proxy.wrapped import wait_for

CALL = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1.0}}}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class Lane:
    """One direction; how often somebody waited on purpose in it."""

    transport = "stdio"

    def __init__(self) -> None:
        self.is_gone = False
        self.waits = 0
        self.told: list[tuple[str, str]] = []

    def holding(self) -> Any:
        self.waits += 1
        return nullcontext()

    def held(self, by: str, why: str = "") -> None:
        self.told.append((by, why))


class Passing:
    """A message on its way through the editor, in a thread of its own."""

    def __init__(self, session: "Session", raw: bytes, direction: str = "c2s", lane: Lane | None = None) -> None:
        self.lane = lane or Lane()
        self.edit: Edit | None = None
        self._frame = Frame(0, direction, "line", (), 0, 0, raw, len(raw))
        self._session = session
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.edit = self._session.editor.edit(self._frame, self._session.talk, self.lane, JsonReader())

    def ended(self) -> Edit | None:
        """Wait for what became of it."""
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.edit

    @property
    def is_waiting(self) -> bool:
        return self.thread.is_alive()


class Session:
    """Break points and an editor."""

    def __init__(self, *expressions: str, timeout: float | None = None, labels: Sequence[str] = ("time",)) -> None:
        self.said: list[str] = []
        self.points: BreakPoints = breaks_from(expressions, timeout, "stdio", self.said.append)
        self.points.called(labels)
        self.editor = Editor([self.points], self.said.append)
        self.editor.begin(lambda _text: None)
        self.talk: Talk = self.editor.talk("one")

    @property
    def path(self) -> str:
        assert self.points.service is not None
        return self.points.service.path

    def passing(self, raw: bytes = CALL, direction: str = "c2s", lane: Lane | None = None) -> Passing:
        return Passing(self, raw, direction, lane)

    def held(self, raw: bytes = CALL, direction: str = "c2s", lane: Lane | None = None) -> Passing:
        """A message that is held by now."""
        before = len(self.points.desk.held())
        message = self.passing(raw, direction, lane)
        assert wait_for(lambda: len(self.points.desk.held()) > before)
        return message

    def end(self) -> list[str]:
        return self.editor.end()


def call(number: int, **arguments: Any) -> bytes:
    """A call of a tool."""
    params = {"name": "add", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def comes(link: Link, probe: Callable[[], object]) -> bool:
    """Wait for news by which something is true."""
    return wait_for(lambda: (link.look(), bool(probe()))[1])


@contextmanager
def runtime_folder(set_env: Callable[[str, str], object]) -> Iterator[Path]:
    """A folder for sockets; its name is short, unlike that of a test's own folder."""
    with tempfile.TemporaryDirectory(prefix="mcps", dir="/tmp") as folder:
        os.chmod(folder, 0o700)
        set_env("XDG_RUNTIME_DIR", folder)
        yield Path(folder)
