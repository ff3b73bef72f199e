"""A wrapped server's session: decides about its beginnings and ends, and leaves nothing behind.

Nothing here knows MCP, and nothing heavy is imported before the server has been started (see `mcpsniff.proxy.stdio`).
"""

import os
import signal
import time
from _thread import allocate_lock, start_new_thread

from mcpsniff.proxy import duplex
from mcpsniff.proxy.child import Child, Pipes
from mcpsniff.proxy.guardian import Guardian
from mcpsniff.proxy.lastwords import LINGER, LastWords
from mcpsniff.proxy.pump import BROKEN, EOF, SEVERED, Pump
from mcpsniff.proxy.recording import Recording
from mcpsniff.proxy.say import say
from mcpsniff.proxy.shutdown import ShutdownOrder
from mcpsniff.proxy.wakeup import Wakeup, stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from mcpsniff.proxy.relay.pipes_session import Editing
    from mcpsniff.proxy.terminal import Terminal

STDIN, STDOUT, STDERR = range(3)
"""The channels of a wrapped server have the numbers of its descriptors."""

TOGETHER: "Final" = 0.030
"""Seconds in which the end of stdout and of the process count as one event: one close record tells both."""

CLIENT_CLOSED: "Final" = "the client closed its end"
SERVER_CLOSED: "Final" = "the server closed its end"
SERVER_ENDED: "Final" = "the server ended"
HELD_OPEN: "Final" = "held open by another process"
NOT_READ: "Final" = "not read by the client"

_ENDED: "Final" = 128
_ASKS_FOR_THE_END: "Final" = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Session:
    """A running server and everything that must end in the right order."""

    def __init__(
        self, pipes: Pipes, wakeup: Wakeup, recording: Recording, order: ShutdownOrder, editing: "Editing | None"
    ) -> None:
        """Take hold of all that a session cannot do without. OSError, RuntimeError if it is not to be had."""
        self._pipes = pipes
        self._wakeup = wakeup
        self._recording = recording
        self._recorder = recording.recorder
        self._order = order
        self._editing = editing
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._pumps = (
            *self._conversation(pipes, null),
            Pump(pipes.stderr, 2, STDERR, self._recorder, null, keep_sink=True, tell=self._ended),
        )
        self._gate = allocate_lock()
        self._gate.acquire()
        for carry in (*self._carriers(), self._pumps[STDERR].run):
            start_new_thread(self._carry, (carry,))
        self._child: Child
        self._guardian: Guardian
        self._terminal: Terminal | None = None
        self._wants_terminal = 0
        self._sent: list[str] = []
        self._sent_by = ""
        self._closed = [False, False, False]
        self._stdout_ended_at: float | None = None
        self._last_words: LastWords | None = None
        self._given_up = False
        self._give_up_at = float("inf")
        """When an edit hook that does not let a message go is not waited for any longer."""

    def start(self, command: "Sequence[str]", *, child_ignored: bool) -> None:
        """Start the server, see `Child`, and let the streams flow."""
        self._child = Child(command, self._pipes, child_ignored=child_ignored)
        if self._editing is not None:
            self._editing.begin()
        self._gate.release()

    def run(self) -> int:
        """Carry the session to its end and return the exit status."""
        self._guardian = Guardian(self._child.pid)
        self._pumps[STDOUT].pending()  # loads what it needs, while that can still be loaded
        self._recording.start(pid=self._child.pid)
        if self._editing is not None:
            self._editing.recording(self._recording.path, self._recording.label)
        while True:
            events = self._wakeup.wait(self._patience(time.monotonic()))
            now = time.monotonic()
            for event in events:
                if event >= _ENDED:
                    self._stream_ended(event - _ENDED, now)
                else:
                    self._signal_arrived(signal.Signals(event), now)
            self._keep_deadlines(now)
            if self._is_over(now):
                return self._finish()

    def _conversation(self, pipes: Pipes, null: int) -> "tuple[Pump, Pump]":
        """Return the pumps of stdin and stdout."""
        if self._editing is not None and self._editing.holds:
            return self._editing.pumps(pipes, null, self._reader(), self._ended)
        return (
            Pump(0, pipes.stdin, STDIN, self._recorder, null, read=self._reader(), tell=self._ended),
            Pump(pipes.stdout, 1, STDOUT, self._recorder, null, tell=self._ended),
        )

    def _carriers(self) -> "Sequence[Callable[[], object]]":
        """Return what is to run in the two threads that carry stdin and stdout."""
        forth, back = self._pumps[STDIN], self._pumps[STDOUT]
        if not duplex.suits(0, 1) or (self._editing is not None and self._editing.holds):
            return back.run, forth.run
        try:
            both = duplex.Duplex(forth, back)
        except OSError:  # no descriptors left; pumps on their own need none
            return back.run, forth.run
        return both.run, both.assist

    def _carry(self, carry: "Callable[[], object]") -> None:
        """Carry streams, in a thread of its own, as soon as the server has been started."""
        with self._gate:
            pass
        try:
            carry()
        except Exception as error:  # noqa: BLE001 - such as no memory: an end like others, and no traceback
            say(f"a stream was lost: {error!r}")

    def _ended(self, channel: int) -> None:
        """Tell the main thread that a stream has ended."""
        self._wakeup.tell(_ENDED + channel)

    def _signal_arrived(self, number: signal.Signals, now: float) -> None:
        if number == signal.SIGCHLD:
            if self._last_words is None and self._child.poll():
                self._last_words = LastWords(self._pumps[STDOUT], self._pumps[STDERR], now)
                self._order.left_behind(now + LINGER)
                if self._editing is not None:
                    self._editing.server_ended()
            elif self._child.stopped_by:
                self._server_stopped(now)
        elif number == signal.SIGTSTP:
            self._child.signal(number)
            self._suspend(group=False)
        elif number == signal.SIGCONT:
            if self._wants_terminal:
                self._lend_terminal(now)
        elif self._last_words is None:
            self._send(number, "client")
            if number in _ASKS_FOR_THE_END:
                self._order.signalled(now)
                if self._editing is not None:
                    self._editing.let_go()
                    self._give_up_at = min(self._give_up_at, now + self._order.longest())
        elif number in _ASKS_FOR_THE_END:
            self._given_up = True  # only a client that does not read kept us

    def _server_stopped(self, now: float) -> None:
        """Find out why, and let it go on if that is up to us."""
        number, self._child.stopped_by = self._child.stopped_by, 0
        if number in {signal.SIGTTIN, signal.SIGTTOU}:
            self._wants_terminal = number
            self._lend_terminal(now)
        elif number == signal.SIGTSTP and self._terminal is not None and self._terminal.is_lent():
            self._suspend(group=True)  # Ctrl-Z, which only the server got to know

    def _suspend(self, *, group: bool) -> None:
        """Stop until somebody continues us, and the server with us."""
        stop(signal.SIGTSTP, group=group)
        self._child.signal(signal.SIGCONT)

    def _lend_terminal(self, now: float) -> None:
        """Let the server have the terminal that it was stopped for."""
        try:
            from mcpsniff.proxy.terminal import REFUSED, Terminal

            if self._terminal is None:
                self._terminal = Terminal(self._child.pid)
            if self._terminal.is_elsewhere():  # then our whole job would be stopped without us, until it has it back
                stop(signal.Signals(self._wants_terminal), group=True)
            elif self._terminal.lend(self._pumps[STDOUT].passed, now):
                self._wants_terminal = 0
                self._child.signal(signal.SIGCONT)
            else:
                say(REFUSED)
        except (OSError, ImportError) as error:
            say(f"the server is stopped: it wants the terminal, which it cannot be given ({error})")

    def _reader(self) -> "Callable[[int, int], bytes] | None":
        """Return what is to read our standard input if that is a terminal: the server may want it."""
        if not os.isatty(0):
            return None
        from mcpsniff.proxy.terminal import turn_taking

        return turn_taking(lambda: self._child.pid)

    def _stream_ended(self, channel: int, now: float) -> None:
        outcome = self._pumps[channel].outcome
        if channel == STDIN:
            stdout = self._pumps[STDOUT]
            if stdout.outcome == EOF and stdout.ended_ns < self._pumps[STDIN].ended_ns:
                self._close(STDOUT, how="eof")  # the client leaves because of it: keep the order of the two ends
            if outcome == BROKEN:
                self._close(STDIN, how="aborted", error=SERVER_CLOSED)
            elif outcome == SEVERED:
                self._close(STDIN, how="aborted", error=self._pumps[STDIN].severed_by)
                self._order.hang_up(now)
            else:
                self._close(STDIN, how="eof" if outcome == EOF else "reset")
                self._order.hang_up(now)
        elif outcome == BROKEN:
            self._close(channel, how="aborted", error=CLIENT_CLOSED)
            if channel == STDOUT:  # whoever stopped listening will not say anything of use
                self._pumps[STDIN].cut()
                self._close(STDIN, how="aborted", error=CLIENT_CLOSED)
                self._order.hang_up(now)
        elif outcome == SEVERED:
            self._close(channel, how="aborted", error=self._pumps[channel].severed_by)
        elif outcome != EOF:
            self._close(channel, how="reset")
        elif channel == STDOUT:
            self._stdout_ended_at = now  # perhaps the process ends with it
        else:
            self._close(STDERR, how="eof")

    def _keep_deadlines(self, now: float) -> None:
        if self._terminal is not None and now >= self._terminal.look_at:
            self._terminal.look(self._pumps[STDIN], self._pumps[STDOUT].passed, now)
        for number in self._order.due(now):
            self._send(number, "mcpsniff")
        ended_at = self._stdout_ended_at
        if self._last_words is None and ended_at is not None and now >= ended_at + TOGETHER:
            self._close(STDOUT, how="eof")

    def _patience(self, now: float) -> float | None:
        """Return the seconds until something is to be done unasked; None if nothing is."""
        at = self._order.next_at()
        if self._terminal is not None:
            at = min(at, self._terminal.look_at)
        if self._last_words is not None:
            at = min(at, self._last_words.look_at, self._give_up_at)
        elif self._stdout_ended_at is not None and not self._closed[STDOUT]:
            at = min(at, self._stdout_ended_at + TOGETHER)
        return None if at == float("inf") else max(0.0, at - now)

    def _is_over(self, now: float) -> bool:
        if self._last_words is None:
            return False
        return self._given_up or now >= self._give_up_at or self._last_words.delivered(now)

    def _finish(self) -> int:
        """Leave nothing behind: no process, no unwritten record, no open end."""
        child, pumps = self._child, self._pumps
        if self._terminal is not None:
            self._terminal.take_back()
        if pumps[STDOUT].outcome is None:
            pumps[STDOUT].finish()
        if child.signal(signal.SIGTERM):
            self._guardian.take_over()
        else:
            self._guardian.dismiss()
        if pumps[STDERR].outcome is None:
            unread = pumps[STDERR].pending() > 0
            self._close(STDERR, how="aborted", error=NOT_READ if unread else HELD_OPEN)
        self._close(STDERR, how="eof")
        self._recorder.mark("close", STDOUT, self._end())
        self._close(STDIN, how="aborted", error=SERVER_ENDED)
        if self._editing is not None:
            self._editing.end()
        self._recording.finish()
        if self._editing is not None:
            self._editing.finish(self._is_hurried)
        return child.exit_status()

    def _is_hurried(self, seconds: float) -> bool:
        """Wait for so long or less; return True if the client has asked for the end."""
        return any(event in _ASKS_FOR_THE_END for event in self._wakeup.wait(seconds))

    def _send(self, number: signal.Signals, by: str) -> None:
        """Signal the server's process group; the capture tells what came before the server's end."""
        if self._child.signal(number) and self._last_words is None:
            self._sent.append(number.name.removeprefix("SIG"))
            self._sent_by = by

    def _end(self) -> "dict[str, Any]":
        """Return the body of the record that tells how the server's process ended."""
        status = self._child.status or 0
        killed = os.WIFSIGNALED(status)
        end: dict[str, Any] = (
            {"how": "killed", "signal": os.WTERMSIG(status)}
            if killed
            else {"how": "exit", "status": self._child.exit_status()}
        )
        return {**end, "sent": self._sent, "by": self._sent_by} if self._sent else end

    def _close(self, channel: int, **body: str) -> None:
        """Record the end of a stream, once."""
        if not self._closed[channel]:
            self._closed[channel] = True
            self._recorder.mark("close", channel, body)
