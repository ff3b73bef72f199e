"""The way to a server on the pipes of its process (MCP transports, stdio)."""

import asyncio
import errno
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.child import StartError
from mcpsniff.proxy.command import as_script, start_error
from mcpsniff.replay.send.link import FRAME_LIMIT, Came, Ear, GoneError, NoTape, Sent, Tape, UnreachableError, now_us
from mcpsniff.replay.send.link import read_messages as messages_of
from mcpsniff.wire.ndjson import LineSplitter

GRACE: Final = 2.0
"""Seconds that a server has to end once its stdin was closed, as in the SDKs; then TERM, and a second later KILL."""
_READ: Final = 1 << 16
_TERM_GRACE: Final = 1.0


class StdioLink:
    """A server's process: leader of a process group of its own, which is gone when the link is closed."""

    transport = "stdio"

    def __init__(
        self,
        command: Sequence[str],
        ear: Ear,
        *,
        variables: Mapping[str, str] | None = None,
        folder: str | None = None,
        tape: Tape | None = None,
        grace: float = GRACE,
    ) -> None:
        """``command`` is found on PATH; ``variables`` are added to the environment, ``folder`` is where it runs."""
        self._command = list(command)
        self._ear = ear
        self._variables = variables or {}
        self._folder = folder
        self._tape = tape or NoTape()
        self._grace = grace
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._channels = (0, 0, 0)
        self._is_closing = False
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Start the process. Raises UnreachableError."""
        try:
            try:
                self._process = await self._start(self._command)
            except OSError as error:
                script = as_script(self._command) if error.errno == errno.ENOEXEC else None
                if script is None:
                    raise
                self._process = await self._start(script)
        except (OSError, ValueError) as error:
            raise UnreachableError(shown(str(self._why(error)))) from None
        self._channels = (
            self._tape.open({"kind": "stdin", "dir": "c2s", "conn": 0}),
            self._tape.open({"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}),
            self._tape.open({"kind": "stderr", "dir": "s2c", "conn": 0}),
        )
        self._tasks = [asyncio.create_task(self._stdout()), asyncio.create_task(self._stderr())]
        self._tasks.append(asyncio.create_task(self._watch()))

    async def _start(self, words: list[str]) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**os.environ, **self._variables},
            cwd=self._folder,
            start_new_session=True,
            limit=_READ,
        )

    def _why(self, error: OSError | ValueError) -> StartError | str:
        if self._folder is not None and not os.path.isdir(self._folder):
            return f"the folder {self._folder} is not there"
        return start_error(self._command[0], error)

    async def send(self, sent: Sent) -> None:
        """Write one line. Raises GoneError when the process has closed its stdin or has ended."""
        process = self._process
        if process is None or process.stdin is None or self._is_closing or process.returncode is not None:
            raise GoneError
        line = sent.data.replace(b"\r\n", b" ").replace(b"\n", b" ") + b"\n"
        async with self._lock:
            try:
                process.stdin.write(line)
                await process.stdin.drain()
            except OSError:
                raise GoneError from None
        self._tape.chunk(self._channels[0], line)

    async def drop(self, sent: Sent) -> bool:  # noqa: ARG002
        """False: a request is cancelled by a notification here."""
        return False

    async def listen(self) -> None:
        """Nothing: all that a server says comes on its stdout."""

    async def _stdout(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        splitter, reader, pending = LineSplitter(1, "s2c", limit=FRAME_LIMIT), JsonReader(), bytearray()
        while data := await process.stdout.read(_READ):
            head, newline, rest = data.rpartition(b"\n")
            if newline:  # the tape gets whole lines, in which what is not to be kept can be found
                self._tape.chunk(self._channels[1], bytes(pending) + head + newline)
                pending = bytearray(rest)
            else:
                pending += rest
            for frame in splitter.feed(now_us(), data):
                for message in messages_of(frame, reader):
                    self._ear.heard(Came(message, frame.t_last))
        if pending:
            self._tape.chunk(self._channels[1], bytes(pending))
        for frame in splitter.finish(now_us()):
            for message in messages_of(frame, reader):
                self._ear.heard(Came(message, frame.t_last))

    async def _stderr(self) -> None:
        process = self._process
        assert process is not None
        assert process.stderr is not None
        splitter = LineSplitter(2, "s2c", limit=_READ)
        while data := await process.stderr.read(_READ):
            for frame in splitter.feed(now_us(), data):
                self._words(frame.payload)
        for frame in splitter.finish(now_us()):
            self._words(frame.payload)

    def _words(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        self._tape.chunk(self._channels[2], line + b"\n")
        self._ear.wrote(text)

    async def _watch(self) -> None:
        process = self._process
        assert process is not None
        await process.wait()
        with suppress(TimeoutError):  # whoever the server left behind may hold the pipes open
            await asyncio.wait_for(asyncio.shield(asyncio.gather(*self._tasks[:2])), _TERM_GRACE)
        if not self._is_closing:
            self._ear.ended(f"ended with {how_it_ended(process.returncode)}")

    async def leave(self) -> None:
        """Nothing: the session ends with the link."""

    async def close(self) -> None:
        """Close its stdin and wait for its end; a server that stays is ended with its group."""
        process, self._is_closing = self._process, True
        if process is None:
            return
        try:
            await self._leave(process)
        finally:  # nobody of its group stays behind, also if leaving was interrupted
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        self._tape.close(self._channels[2], {"how": "eof"})
        status = process.returncode or 0
        self._tape.close(
            self._channels[1], {"how": "killed", "signal": -status} if status < 0 else {"how": "exit", "status": status}
        )

    async def _leave(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        self._tape.close(self._channels[0], {"how": "eof"})
        for wait, number in ((self._grace, signal.SIGTERM), (_TERM_GRACE, signal.SIGKILL)):
            try:
                await asyncio.wait_for(process.wait(), wait)
                break
            except TimeoutError:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)
        await process.wait()
        await asyncio.wait(self._tasks, timeout=_TERM_GRACE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def how_it_ended(status: int | None) -> str:
    """The end of a process in words: ``status 1``, ``SIGSEGV``."""
    if status is None or status >= 0:
        return f"status {status or 0}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
