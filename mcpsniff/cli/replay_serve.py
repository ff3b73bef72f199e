"""`mcpsniff replay CAPTURE --serve`: the capture as the server."""

import asyncio
import os
import signal
import sys
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Final

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import Capture, open_capture
from mcpsniff.capture.records import MASK, OPEN, REDACT
from mcpsniff.cli.interrupts import interrupted_at_once
from mcpsniff.cli.output import note
from mcpsniff.cli.reporting import check_report, reporting, say_unmatched
from mcpsniff.errors import CaptureError, McpsniffError, UsageError
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.paths import Places
from mcpsniff.replay.ignoring import ignore_path, unmatched
from mcpsniff.replay.match import Matcher, Rules
from mcpsniff.replay.normalise import rules_of
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.resend.removed import tells_removal
from mcpsniff.replay.script import Script, Talk
from mcpsniff.replay.serve.ends import noted_ends
from mcpsniff.replay.serve.report import report, report_lines
from mcpsniff.replay.serve.stage import Stage
from mcpsniff.replay.serve.stand_in import lacks_handshake
from mcpsniff.replay.tempo import read_tempo
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.units import count

MISSED: Final = 1
FAILED: Final = 1
LARGEST_STATUS: Final = 255
ENDS_NOTHING: Final = frozenset(
    getattr(signal, name)
    for name in ("SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT", "SIGCHLD", "SIGURG", "SIGWINCH", "SIGINFO")
    if hasattr(signal, name)
)
"""Signals that stop a process, or do nothing to it, unless it has a handler."""
PLACES_TOLD: Final = 20
"""Redacted places that are told one by one."""


class RedactedError(CaptureError):
    """Values of the capture were removed, so that it is not what was said."""

    def __init__(self, path: str, places: list[str]) -> None:
        super().__init__(
            f"values were removed from {shown(path)}, so what is replayed is not what was said; "
            "--allow-redacted replays it all the same"
        )
        more = len(places) - PLACES_TOLD
        self._places = [f"  {place}" for place in places[:PLACES_TOLD]] + ([f"  and {more:,} more"] if more > 0 else [])

    @property
    def lines(self) -> tuple[str, ...]:
        """The sentence, and the places."""
        return (str(self), *self._places)


def serve(**options: Any) -> int:
    """Serve a capture until the client has left, and return the exit status.

    ``options`` are those of `mcpsniff.cli.replay`. Status 1 means that something was asked that is not in the capture
    (with ``strict``); else that of the recorded server, if it ended before its client did; else 0. Raises UsageError,
    CaptureError, RedactedError; a client on pipes is told of that, too.
    """
    with ExitStack() as stack:
        try:
            with interrupted_at_once():
                stage = _prepare(options)
            stack.enter_context(reporting(options["report"], lambda: report(stage)))
        except McpsniffError as error:
            if options["serve"] == "stdio":
                from mcpsniff.replay.serve.refusal import refuse

                refuse(visible(f"mcpsniff replay: {error}"), sys.stdin.fileno(), sys.stdout.fileno())
            raise
        close = _serve_stdio(stage, options) if options["serve"] == "stdio" else _serve_http(stage, options)
    if stage.bug is not None:
        raise stage.bug
    if options["strict"] and stage.matcher.missed:
        return MISSED
    return 0 if close is None else _end_as(close)


def _prepare(options: dict[str, Any]) -> Stage:
    """Read the capture, and say what there is to be said of it before it is served."""
    if options["serve"] == "stdio" and (options["listen"] is not None or options["once"]):
        raise UsageError(f"{'--once' if options['once'] else '--listen'} is for --serve http|sse")
    tempo = read_tempo(options["timing"])
    ignored = [ignore_path(text) for text in options["ignored"]]
    rules, compared = Rules(options["way"], Places(ignored)), rules_of(None, [one.text for one in ignored])
    opened = open_to_replay(options)
    parts = [part.path for part in opened.parts]
    check_report(options["report"], parts, has_stdout=options["serve"] != "stdio")
    script = read_script(opened, with_bytes=options["raw"])
    talks = talks_of(script, options["server"], over_http=options["serve"] != "stdio")
    stage = Stage(
        script,
        Matcher(talks, rules),
        tempo=tempo,
        timeout=options["timeout"],
        rules=compared,
        over_http=options["serve"] != "stdio",
    )
    _say_lacks(stage)
    say_unmatched(unmatched(ignored, talks))
    return stage


def open_to_replay(options: dict[str, Any]) -> Capture:
    """Open the capture that is meant; say which where there was a choice. Raises CaptureError, RedactedError."""
    if options["capture"] == "-":
        raise UsageError("standard input belongs to the client: replay wants a capture in a file")
    found = find(options["capture"], options["directory"], warn=note, even_without_content=False, even_unasked=False)
    if found.said:
        note(f"replaying {shown(found.path)}, {found.said}")
    opened = open_capture(found.path)
    is_redacted, masked = _removed(opened)
    if is_redacted and not options["allow_redacted"]:
        from mcpsniff.export.redact import places

        raise RedactedError(found.path, places(opened))
    if masked:
        note(f"{count(masked, 'value')} of the server's {'was' if masked == 1 else 'were'} masked when it was recorded")
    return opened


def _removed(capture: Capture) -> tuple[bool, int]:
    """Whether something was redacted, and how many values of the server's the recorder masked.

    What it masked of the client's (credentials, mostly) is nothing that a server says.
    """
    is_redacted, masked = tells_removal(capture.header), 0
    of_server = {
        int(number) for number, fields in (capture.header.channels or {}).items() if fields.get("dir") == "s2c"
    }
    for record in capture.records():
        if record.kind == OPEN and record.body.get("dir") == "s2c" and record.channel is not None:
            of_server.add(record.channel)
        is_redacted = is_redacted or record.kind == REDACT
        masked += record.kind == MASK and record.channel in of_server
    return is_redacted, masked


def talks_of(script: Script, server: str | None, *, over_http: bool = False) -> list[Talk]:
    """The conversations with one server; there need be none if HTTP exchanges without messages can be served.

    Raises UsageError where it is not clear which server is meant, CaptureError where there is nothing.
    """
    talks = script.talks
    if server is not None:
        talks = [talk for talk in talks if server in talk.server]
        if not talks:
            known = ", ".join(script.servers) or "a command"
            raise UsageError(f"no server of the capture has {server!r} in its address; there is {known}")
    several = list(dict.fromkeys(talk.server for talk in talks))
    if len(several) > 1:
        raise UsageError(f"the capture has several servers: {', '.join(several)}; choose one with --server")
    if not any(scene.is_request for talk in talks for scene in talk.scenes) and not (over_http and script.webs):
        raise CaptureError(f"there is nothing to replay in {shown(script.path)}: no client has asked for anything")
    return talks


def _say_lacks(stage: Stage) -> None:
    for lack in stage.script.lacks:
        note(visible(lack.text))
    if lacks_handshake(stage.matcher):
        note("no initialize was answered in the capture: clients get an answer that is made up")


def _serve_stdio(stage: Stage, options: dict[str, Any]) -> Close | None:
    with noted_ends() as asked_to_end:
        from mcpsniff.replay.serve.stdio import serve_stdio

        return asyncio.run(
            serve_stdio(stage, partial(report_lines, stage), raw=options["raw"], asked_to_end=asked_to_end)
        )


def _serve_http(stage: Stage, options: dict[str, Any]) -> Close | None:
    with noted_ends() as asked_to_end:
        from mcpsniff.replay.serve.web.server import serve_http

        serve_http(
            stage,
            options["serve"],
            listen=options["listen"],
            once=options["once"],
            raw=options["raw"],
            asked_to_end=asked_to_end,
        )
    for line in report_lines(stage):
        note(line.removeprefix("mcpsniff: "))
    return None


def _end_as(close: Close) -> int:
    """End as the recorded server did: by the same signal, or with the same status.

    A capture may have any numbers: no signal that only stops a process, and no status that would come out as another.
    """
    number, status = close.signal, close.status or 0
    if number is None:
        return status if 0 <= status <= LARGEST_STATUS else FAILED
    if number in signal.valid_signals() and number not in ENDS_NOTHING:
        with suppress(OSError, ValueError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    note(f"the recorded server ended by signal {number}, which ends no process here")
    return 128 + number if 0 < number < 128 else FAILED
