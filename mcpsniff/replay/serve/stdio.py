"""Serve a script to the one client that has started us, over our standard streams (MCP transports, stdio).

Standard output has nothing but what the recorded server wrote there. What it wrote to its stderr goes to ours.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from mcpsniff.errors import McpsniffError
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.message import BATCH
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.protocol.revisions import R_2025_03_26
from mcpsniff.replay.script import PIPE, Line, is_answering
from mcpsniff.replay.serve.ends import ENDS
from mcpsniff.replay.serve.heard import live_messages
from mcpsniff.replay.serve.performance import Outgoing, Performance, Port, joined
from mcpsniff.replay.serve.pipes import Sink, read_lines
from mcpsniff.replay.serve.stage import Stage
from mcpsniff.transcript.safe import visible
from mcpsniff.wire.frames import UNTERMINATED

STDIN, STDOUT, STDERR = range(3)
LAST_WORDS: Final = 1.0
"""Seconds in which what is still to be written must be read, once it is over."""


async def serve_stdio(
    stage: Stage,
    tell: Callable[[], list[str]],
    *,
    raw: bool = False,
    asked_to_end: Callable[[], bool] = lambda: False,
) -> Close | None:
    """Serve the client until it leaves, or the recorded server did.

    ``raw`` writes lines in the pieces in which they were read (the script was read with them). ``asked_to_end`` says
    whether a signal came before this was called (`ends`). At the end the lines of
    ``tell`` go to stderr. Returns the recorded end of the server's process, if that is why it ended. Raises
    McpsniffError if standard output cannot be written, for another reason than that nobody reads it.
    """
    return await _Shell(stage, raw=raw).run(tell, asked_to_end)


class _Shell:
    """The client on our standard streams."""

    def __init__(self, stage: Stage, *, raw: bool) -> None:
        self._stage = stage
        self._session = stage.session()
        self._reader = JsonReader()
        self._over = asyncio.get_running_loop().create_future()
        self._close: Close | None = None
        self._out = Sink(STDOUT, self._finish)
        self._err = Sink(STDERR, lambda: None)
        stage.in_pieces = frozenset({"line"}) if raw else frozenset()
        self._port = _Pipes(self._out, self._err, self._ended, stage if raw else None)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, tell: Callable[[], list[str]], asked_to_end: Callable[[], bool]) -> Close | None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        self._stage.on_bug = self._finish
        for number in ENDS:
            loop.add_signal_handler(number, self._finish)
        if asked_to_end():
            self._finish()
        prologue = self._session.prologue(self._port)
        read_lines(STDIN, self._line, self._end_of_input, self._out.has_room)
        await self._over
        self._session.left()
        if prologue is not None:
            await prologue.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._out.flush()
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(LAST_WORDS):
                for line in tell():
                    await self._err.write(f"{line}\n".encode(errors="backslashreplace"))
                await self._err.flush()
        if self._stage.bug is not None:
            raise self._stage.bug
        if self._out.error is not None:
            raise McpsniffError(f"cannot write to the client: {self._out.error.strerror or self._out.error}")
        return self._close

    # -- ends ------------------------------------------------------------------------------------------------------

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something that the event loop called has raised an error."""
        self._stage.fail(context.get("exception") or RuntimeError(str(context.get("message"))))

    def _finish(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def _ended(self, close: Close) -> None:
        """The recorded server ended here."""
        self._close = close
        self._finish()

    def _end_of_input(self) -> None:
        self._keep(self._play_out())

    async def _play_out(self) -> None:
        """The client has closed our input: finish what has begun, and say goodbye as the recorded server did."""
        await self._session.done()
        await asyncio.gather(*(task for task in self._tasks if task is not asyncio.current_task()))
        farewell = self._session.farewell(self._port)
        if farewell is not None:
            await farewell.wait()
        await self._out.flush()
        self._finish()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._kept)

    def _kept(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._stage.fail(error)

    # -- what the client says --------------------------------------------------------------------------------------

    def _line(self, line: bytes) -> None:
        if not line.strip() or self._over.done():
            return
        first, *elements = live_messages(line, self._reader)
        if first.kind != BATCH or not elements:
            self._session.heard(first, self._port)
            return
        if self._revision() != R_2025_03_26:
            for element in elements:
                self._session.heard(element, self._port)
            return
        port = _BatchPort(self._port)
        begun = [self._session.heard(element, port) for element in elements]
        self._keep(port.join([one for one in begun if one is not None]))

    def _revision(self) -> str | None:
        talk = self._session.walk.talk or next(iter(self._stage.matcher.talks), None)
        return None if talk is None else talk.revision


class _Pipes:
    """What a server says, on the standard streams."""

    def __init__(self, out: Sink, err: Sink, on_close: Callable[[Close], None], pieces: Stage | None) -> None:
        """``pieces`` has the pieces in which lines were read, if they are to be written so."""
        self._out = out
        self._err = err
        self._on_close = on_close
        self._pieces = pieces
        self._turn = asyncio.Lock()
        self._is_seen = [os.isatty(STDOUT), os.isatty(STDERR)]
        """Whether people look at it: then nothing may act on the terminal."""

    async def send(self, out: Outgoing) -> None:
        line, is_of_pipe = out.line, out.scene is not None and out.scene.talk.kind == PIPE
        if line is not None and line.text is not None:
            with suppress(ConnectionError):
                await self._err.write(self._shown(out.data, STDERR) + b"\n")
            return
        if line is not None and line.message is None and not is_of_pipe:
            return  # a comment of an event stream
        data = out.data if line is None or line.message is not None or line.frame is None else line.frame.payload
        if not is_of_pipe and (b"\n" in data or b"\r" in data):
            data = data.replace(b"\r", b" ").replace(b"\n", b" ")  # outside of strings only, where JSON has them
        is_cut = line is not None and line.frame is not None and is_of_pipe and UNTERMINATED in line.frame.flaws
        whole = self._shown(data, STDOUT) + (b"" if is_cut else b"\n")
        if self._pieces is None:
            await self._out.write(whole)
        else:
            await self._write_pieces(whole, out, self._pieces, is_of_pipe=is_of_pipe)

    async def _write_pieces(self, whole: bytes, out: Outgoing, stage: Stage, *, is_of_pipe: bool) -> None:
        """Write a line as it was read, cut at the same bytes counted from its start, each piece at its moment."""
        frame = None if out.line is None or not is_of_pipe else out.line.frame
        pieces = [] if frame is None else stage.script.pieces(frame.spans)
        async with self._turn:
            for at, piece in enumerate(pieces):
                due = stage.moment(out, piece.t)
                if due is not None and (left := due - asyncio.get_running_loop().time()) > 0:
                    await asyncio.sleep(left)
                if at < len(pieces) - 1:
                    part, whole = whole[: len(piece.data)], whole[len(piece.data) :]
                    await self._out.write(part)
            await self._out.write(whole)

    async def end(self, line: Line) -> None:
        if line.close is not None:
            await self._out.flush()
            self._on_close(line.close)

    def _shown(self, data: bytes, descriptor: int) -> bytes:
        if not self._is_seen[descriptor - 1]:
            return data
        return visible(data.decode(errors="backslashreplace")).encode(errors="backslashreplace")


class _BatchPort:
    """Gathers the answers to a batch, and passes everything else on at once."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._answers: list[Outgoing] = []

    async def send(self, out: Outgoing) -> None:
        message = None if out.line is None else out.line.message
        if out.is_answer or out.line is None or (message is not None and is_answering(message)):
            self._answers.append(out)
        else:
            await self._port.send(out)

    async def end(self, line: Line) -> None:
        await self._port.end(line)

    async def join(self, begun: list[Performance]) -> None:
        """Send the answers in one batch when all are there (MCP 2025-03-26, batching)."""
        for performance in begun:
            await performance.wait()
        if self._answers:
            with suppress(ConnectionError):
                await self._port.send(joined(self._answers))
