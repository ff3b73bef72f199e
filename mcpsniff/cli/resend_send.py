"""`mcpsniff resend --to`: one recorded request, changed if that is wanted, to a live server."""

import asyncio
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import click

from mcpsniff.capture.labels import shown
from mcpsniff.cli.output import note
from mcpsniff.cli.replay_send import open_to_send, say_masked, where_of
from mcpsniff.cli.show import printer_for, style_of
from mcpsniff.cli.target import Target
from mcpsniff.errors import UsageError
from mcpsniff.protocol.message import Message
from mcpsniff.replay.normalise import rules_of
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.resend.edit import fault, laid_out, on_one_line
from mcpsniff.replay.resend.pick import Picked, pick
from mcpsniff.replay.resend.run import Resent, resend
from mcpsniff.replay.resend.talk import least_talk
from mcpsniff.replay.send.outcome import FAILED, LEFT_OUT
from mcpsniff.replay.send.run import Run
from mcpsniff.replay.send.talk import Way
from mcpsniff.replay.send.text import outcome_lines
from mcpsniff.transcript.payload import Style, payload_lines
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import visible

DIFFERENT: Final = 1
"""The exit status where the answer is not as recorded, or there is none."""


def send(what: str | None, number: int, target: Target, **options: Any) -> int:
    """Send the request with this number, show the answer and how it differs; return the exit status.

    Raises UsageError, CaptureError, RedactedError, and UnreachableError if the server cannot be started or reached.
    """
    where, rules = where_of(target, options), rules_of(None, options["ignored"])
    way = Way(timeout=options["timeout"])
    capture = open_to_send({**options, "capture": what})
    capture.keep()
    script = read_script(capture)
    picked = pick(capture, script, number)
    least_talk(picked)  # what cannot be sent need not be edited
    talk, scene = least_talk(picked, _edited(picked) if options["edit"] else None)
    run = Run(script, where, rules, way, allow_writes=options["allow_writes"], talks=[talk])
    say_masked(run)
    name = shlex.join(target.command) if target.url is None else target.url
    note(f"#{scene.cue.n if scene.cue else number} {shown(scene.method)} to {shown(name)}")

    async def hold() -> Resent:
        task = asyncio.current_task()
        assert task is not None
        for signal_number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(signal_number, task.cancel)
        return await resend(run, talk, scene)

    try:
        resent = asyncio.run(hold())
    except asyncio.CancelledError:
        raise click.Abort from None
    print_line, width = printer_for(sys.stdout.buffer, to_file=False)
    for line in _lines(resent, width, style_of(options["payload"])):
        print_line(line)
    return DIFFERENT if resent.outcome.state in FAILED or resent.outcome.state == LEFT_OUT else 0


def _edited(picked: Picked) -> bytes | None:
    """The request as the user has changed it; asked again on a terminal as long as it is no JSON. Raises UsageError."""
    assert picked.message is not None
    text: str | None = laid_out(picked.message.raw)
    while True:
        text = click.edit(text, extension=".json", require_save=True)
        if text is None:
            raise UsageError("the editor was left without saving: nothing was sent")
        wrong = fault(text)
        if not wrong:
            return on_one_line(text)
        said = f"what was edited is not JSON: {wrong}"
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(said)
        note(shown(said))
        click.confirm("mcpsniff: edit it again?", default=True, abort=True, err=True)


def _lines(resent: Resent, width: int, style: Style) -> Iterator[Line]:
    """The answer as `mcpsniff show` lays it out, what came with it, and how it differs from the recorded one."""
    if resent.answer is not None:
        yield [("heading", resent.answer.kind)]
        yield from ([("", "  "), *line] for line in payload_lines(resent.answer, style, width - 4))
    if came := _came(resent.progress + resent.notices):
        yield [("remark", f"with it came {came}")]
    for one in (*resent.failed_before, resent.outcome):
        yield from outcome_lines(one, width)
    yield from ([("changed", f"≠ {visible(text)}")] for text in resent.talk.said)
    yield from ([("remark", f"· {visible(text)}")] for text in resent.talk.notes)
    if resent.outcome.state == LEFT_OUT and not resent.failed_before:
        yield [("remark", "a tool that is not declared read-only is called with --allow-writes only")]


def _came(messages: list[Message]) -> str:
    counted = Counter(visible(message.method or message.kind) for message in messages)
    return ", ".join(f"{number:,} {method}" for method, number in counted.items())
