"""`mcpsniff replay --to`: be the client of a live server, and compare what it says with what was recorded."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import click

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import Capture, open_capture
from mcpsniff.capture.salt import store_salt
from mcpsniff.cli.output import note
from mcpsniff.cli.replay_serve import RedactedError
from mcpsniff.cli.reporting import check_report, reporting, say_unmatched
from mcpsniff.cli.show import printer_for
from mcpsniff.cli.target import Target
from mcpsniff.errors import UsageError
from mcpsniff.replay.resend.removed import is_redacted

if TYPE_CHECKING:
    from mcpsniff.replay.script import Script
    from mcpsniff.replay.send.links import Where
    from mcpsniff.replay.send.run import Run
    from mcpsniff.transcript.pretty import Line

DIFFERENT: Final = 1
"""The exit status where something is not as recorded."""


def send(target: Target | None, **options: Any) -> int:
    """Send the client's side of a capture to a server, and say how what comes differs from what was recorded.

    ``target`` is None with ``--as-recorded``. Status 1 means that something differs. Raises UsageError, CaptureError,
    RedactedError, and UnreachableError if the server cannot be started or reached.
    """
    from mcpsniff.replay.ignoring import unmatched
    from mcpsniff.replay.normalise import rules_of
    from mcpsniff.replay.reading import read_script
    from mcpsniff.replay.send.given import too_short
    from mcpsniff.replay.send.hide import Hider
    from mcpsniff.replay.send.run import Run, talks_of
    from mcpsniff.replay.send.talk import Way
    from mcpsniff.replay.tempo import read_tempo

    if options["normalise"] is not None and options["no_normalise"]:
        raise UsageError("--normalise and --no-normalise exclude each other")
    names = [] if options["no_normalise"] else None if options["normalise"] is None else [options["normalise"]]
    rules, way = rules_of(names, options["ignored"]), Way(read_tempo(options["timing"]), options["timeout"])
    where = None if target is None else where_of(target, options)
    capture = open_to_send(options)
    check_report(options["report"], [*(part.path for part in capture.parts), options["update"]])
    script = read_script(capture)
    talks = talks_of(script, options["server"])
    if where is None:
        recorded, folder = recorded_target(script, talks[0].server, is_agreed=options["yes"])
        where = where_of(recorded, options, folder)
    given = [*where.headers, *where.variables.items()]
    salt = lru_cache(lambda: store_salt(options["directory"], note))
    hider = Hider(given, salt)
    run = Run(script, where, rules, way, allow_writes=options["allow_writes"], talks=talks, hider=hider)
    for name in too_short(given):
        note(f"the value of {shown(name)} is too short to be hidden where the server says it back")
    for lack in script.lacks:
        note(shown(lack.text))
    say_unmatched(unmatched(rules.ignored, talks, ("c2s", "s2c")))
    say_masked(run)
    _hold(run, options, salt)
    return DIFFERENT if run.differs else 0


def open_to_send(options: dict[str, Any], verb: str = "replaying", *, refuses: bool = True) -> Capture:
    """Open the capture that is meant; where there was a choice, say which is what ``verb`` tells.

    What a recorder masks (credentials in HTTP) is never sent; what `mcpsniff redact` has removed from messages would
    be, so a capture with that is refused if this ``refuses``. Raises CaptureError, RedactedError.
    """
    if options["capture"] == "-":
        raise UsageError(f"{'replay' if refuses else 'resend'} wants a capture in a file")
    found = find(options["capture"], options["directory"], warn=note, even_without_content=False, even_unasked=False)
    if found.said:
        note(f"{verb} {shown(found.path)}, {found.said}")
    opened = open_capture(found.path)
    if refuses and not options["allow_redacted"] and is_redacted(open_capture(found.path)):
        from mcpsniff.export.redact import places

        raise RedactedError(found.path, places(open_capture(found.path)))
    return opened


def where_of(target: Target, options: dict[str, Any], folder: str | None = None) -> "Where":
    """The server to speak to, with what is given to it. Raises UsageError."""
    from mcpsniff.replay.send.headers import given_headers
    from mcpsniff.replay.send.links import Where

    headers, variables = given_headers(options["headers"]), given_variables(options["variables"])
    if target.url is None and headers:
        raise UsageError("--header is for a server on HTTP; --env sets a variable for a command")
    if target.url is not None and variables:
        raise UsageError("--env is for a command; --header gives a server on HTTP what it needs")
    return Where(target.url, target.command, headers, variables, folder)


def given_variables(texts: tuple[str, ...]) -> dict[str, str]:
    """Variables as a person gives them: ``NAME=VALUE``, or ``NAME`` for that of our own environment."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or "\0" in text:
            raise UsageError("--env wants NAME=VALUE, or the NAME of a variable that is set")
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name}: no such variable is set")
        found[name] = value if equals else os.environ[name]
    return found


def recorded_target(script: "Script", server: str, *, is_agreed: bool) -> "tuple[Target, str | None]":
    """The server in the capture and the folder it ran in, once the user has seen it and agreed. Raises UsageError."""
    header = script.header
    if header.transport == "stdio":
        target, folder, what = Target(None, tuple(header.argv)), header.cwd, shlex.join(header.argv)
        if not header.argv:
            raise UsageError("the capture does not tell the server's command: --to -- COMMAND gives it")
        if folder is not None and not os.path.isdir(folder):
            raise UsageError(f"the folder that the server ran in, {shown(folder)}, is not there")
        question = f"run {shown(what)} in {shown(folder or os.getcwd())}?"
    else:
        what = header.upstream or _url(script, server)
        target, folder, question = Target(what), None, f"send it to {shown(what)}?"
    if "***" in what:
        raise UsageError(f"a secret was masked in the capture's {shown(what)}: give the server with --to")
    _agree(question, is_agreed=is_agreed)
    return target, folder


def _url(script: "Script", server: str) -> str:
    """The URL that was spoken to: of HTTP+SSE that of the stream."""
    of_it = [web for web in script.webs if web.talk is not None and web.talk.server == server]
    first = next((web for web in of_it if web.http.stream_kind == "legacy"), None) or next(iter(of_it), None)
    if first is None:
        raise UsageError("the capture does not tell where the server is: --to URL says it")
    origin = server if "://" in server else f"http://{server}"
    return origin + (first.http.target if first.http.target.startswith("/") else first.http.path)


def _agree(question: str, *, is_agreed: bool) -> None:
    """Show what is going to be run or reached, and ask, on the terminal and nowhere else."""
    if is_agreed:
        note(question.removesuffix("?"))
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question} There is no terminal to ask on: --yes says so, --to names another server")
    if not click.confirm(f"mcpsniff: {question}", default=False, err=True):
        raise click.Abort


def say_masked(run: "Run") -> None:
    """Name the credentials that the recorded client sent, and that are not sent unless they are given."""
    from mcpsniff.replay.send.headers import masked_headers

    if run.where.url is None:
        return
    webs = [web for talk in run.talks for web in talk.webs if web.http.request is not None]
    heads = [web.http.request for web in webs[:1000] if web.http.request is not None]
    names = dict.fromkeys(name.lower() for head in heads for name in masked_headers(head.headers))
    missing = [name for name in names if name not in {given.lower() for given, _ in run.where.headers}]
    if missing:
        note(f"the recorded client sent {shown(', '.join(missing))}, which is not sent again: --header gives it")


def _hold(run: "Run", options: dict[str, Any], salt: Callable[[], bytes]) -> None:
    """Hold the conversations, and tell what came of them: on stdout, and in the files that are asked for."""
    from mcpsniff.cli.replay_update import updated
    from mcpsniff.replay.send.json import report
    from mcpsniff.replay.send.outcome import TalkOutcome
    from mcpsniff.replay.send.run import send_again
    from mcpsniff.replay.send.text import summary_lines, talk_lines

    printed, width = printer_for(sys.stdout.buffer, to_file=False)
    of_several = len(run.talks) > 1
    stopped: list[int] = []

    def print_line(line: "Line") -> None:
        printed([(role, run.hider.hide_text(text)) for role, text in line])

    def told(outcome: TalkOutcome) -> None:
        for line in talk_lines(outcome, width, of_several=of_several):
            print_line(line)
        sys.stdout.flush()

    async def hold() -> None:
        task = asyncio.current_task()
        assert task is not None

        def stop(number: int) -> None:
            stopped.append(number)
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        await send_again(run, tape, told)

    with reporting(options["report"], lambda: run.hider.hide_all(report(run))):
        with updated(options["update"], run.where, run.script, run.hider, salt) as tape:
            try:
                asyncio.run(hold())
            except asyncio.CancelledError:  # told to stop: nothing is left behind, and no capture either
                sys.exit(128 + (stopped or [signal.SIGTERM])[0])
        for line in summary_lines(run):
            print_line(line)
