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
from mcpsniff.capture.reader import open_capture
from mcpsniff.cli.output import note
from mcpsniff.cli.replay_send import open_to_send, say_masked, where_of
from mcpsniff.cli.replay_serve import RedactedError
from mcpsniff.cli.resend_edit import draft_of
from mcpsniff.cli.show import printer_for, style_of
from mcpsniff.cli.target import Target
from mcpsniff.errors import UsageError
from mcpsniff.protocol.message import Message
from mcpsniff.replay.normalise import rules_of
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.resend.pick import Picked, pick
from mcpsniff.replay.resend.removed import is_redacted, names_in, removed_from
from mcpsniff.replay.resend.run import Resent, resend, tools_of
from mcpsniff.replay.resend.talk import least_talk
from mcpsniff.replay.script import Talk
from mcpsniff.replay.send.outcome import LEFT_OUT
from mcpsniff.replay.send.run import Run
from mcpsniff.replay.send.talk import Way
from mcpsniff.replay.send.text import outcome_lines
from mcpsniff.transcript.payload import Style, payload_lines
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import visible

DIFFERENT: Final = 1
"""The exit status where the answer is not as recorded, or there is none; after an edit, where it tells of an error."""


def send(what: str | None, number: int, target: Target, **options: Any) -> int:
    """Send the request with this number, show the answer and how it differs; return the exit status.

    Raises UsageError, CaptureError, RedactedError, and UnreachableError if the server cannot be started or reached.
    """
    where, rules = where_of(target, options), rules_of(None, options["ignored"])
    way = Way(timeout=options["timeout"])
    capture = open_to_send({**options, "capture": what}, "resending from", refuses=False)
    capture.keep()
    script = read_script(capture)
    picked = pick(capture, script, number)
    least, _ = least_talk(picked)  # what cannot be sent need not be edited
    run = Run(script, where, rules, way, allow_writes=options["allow_writes"])
    if not options["allow_redacted"]:
        _refuse_redacted(capture.path, least, picked, is_edited=options["edit"])
    if not options["edit"]:
        return _sent(run, picked, None, options)
    assert picked.message is not None
    _refuse_writes(run, least, picked.message)
    with draft_of(picked.message) as draft:
        edited = draft.edited()
        if not options["allow_redacted"]:
            said = picked.message.raw if edited is None else edited
            if names := names_in(said.decode(errors="replace")):
                raise RedactedError(capture.path, [f"in what was edited: {name}" for name in names])
            _refuse_redacted(capture.path, least, picked, is_edited=edited is not None)
        status = _sent(run, picked, edited, options)
        draft.is_wanted = status != 0  # then it may be edited on
    return status


def _refuse_redacted(path: str, talk: Talk, picked: Picked, *, is_edited: bool) -> None:
    """Raise RedactedError where values were removed from what is sent; not from the request itself if it is edited."""
    if not is_redacted(open_capture(path)):
        return
    messages = [one for one in talk.messages if not is_edited or picked.message is None or one.n != picked.message.n]
    if found := removed_from(open_capture(path), messages):
        raise RedactedError(path, found)


def _refuse_writes(run: Run, talk: Talk, message: Message) -> None:
    """Raise UsageError for a tool that the capture knows as one that may change something: it would not be called.

    Else it is known only when the live server has been asked, and then something has been typed already.
    """
    if message.method == "tools/call" and (why := tools_of(run, talk).why_recorded(message)):
        raise UsageError(f"nothing to edit, for it would not be called: {why} in the capture; --allow-writes calls it")


def _sent(run: Run, picked: Picked, edited: bytes | None, options: dict[str, Any]) -> int:
    """Send it, tell what came of it, and return the exit status."""
    talk, scene = least_talk(picked, edited)
    run.talks = [talk]
    say_masked(run)
    where = run.where
    name = shlex.join(where.command) if where.url is None else where.url
    note(f"#{scene.cue.n if scene.cue else 0} {shown(scene.method)} to {shown(name)}")

    async def hold() -> Resent:
        task = asyncio.current_task()
        assert task is not None
        for signal_number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(signal_number, task.cancel)
        return await resend(run, talk, scene, is_edited=edited is not None)

    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        resent = asyncio.run(hold())
    except asyncio.CancelledError:
        raise click.Abort from None
    finally:
        for number, handler in before:  # asyncio leaves the default
            signal.signal(number, handler)
    print_line, width = printer_for(sys.stdout.buffer, to_file=False)
    for line in _lines(resent, width, style_of(options["payload"])):
        print_line(line)
    is_failure = edited is not None and resent.answer is not None and resent.answer.result.get("isError") is True
    return 0 if resent.is_fine and not is_failure else DIFFERENT


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
