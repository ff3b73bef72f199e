"""`mcpsniff attach`: messages that are held at break points, looked at and decided about from another terminal."""

import json
import sys
import time
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from mcpsniff.cli.attach_edit import run_here
from mcpsniff.cli.attach_lines import row, whole
from mcpsniff.cli.attach_link import EndedError, Held, Link, RefusedError, attached, sessions
from mcpsniff.cli.attach_orders import ALL, LONGEST_NUMBER, Typed, answer_of
from mcpsniff.cli.complete import HARMLESS
from mcpsniff.cli.output import note
from mcpsniff.cli.resend_signals import Signals
from mcpsniff.errors import UsageError
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.terminal import columns, plain
from mcpsniff.transcript.text import WIDTH

_AGAIN: Final = 0.1
"""Seconds between two looks for a session that is waited for."""
_UNWRAPPED: Final = 1 << 20
"""Cells of a line on stderr."""


def complete_session(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Labels, or process ids where there are none, of the sessions with break points."""
    return [
        CompletionItem(label, help=f"process {pid}")
        for pid, labels in sessions()
        for label in (labels or [str(pid)])
        if label.startswith(incomplete) and HARMLESS.fullmatch(label)
    ]


@click.command("attach")
@click.argument("session", required=False, metavar="[LABEL|PID]", shell_complete=complete_session)
@click.option("--list", "is_list", is_flag=True, help="List what is held.")
@click.option("--show", "shown", type=int, metavar="N", multiple=True, help="Show message N whole.")
@click.option(
    "--pass", "passed", metavar="N", multiple=True, help="Let message N go on as it came; all: every message."
)
@click.option("--drop", "dropped", type=int, metavar="N", multiple=True, help="Let message N not go on.")
@click.option(
    "--answer",
    "answered",
    type=(int, str),
    metavar="N JSON",
    multiple=True,
    help='Answer request N in the receiver\'s place: with a result, or {"error": ...}; @FILE has the JSON.',
)
@click.option(
    "--refuse", "refused", type=(int, str), metavar="N TEXT", multiple=True, help="Answer request N with an error."
)
@click.option("--edit", "edited", type=int, metavar="N", multiple=True, help="Change message N in your editor.")
@click.option("--off", is_flag=True, help="Let everything go, and hold nothing more.")
@click.option("--on", is_flag=True, help="Hold again after --off.")
@click.option(
    "--wait",
    type=float,
    metavar="SECONDS",
    help="First wait so long at most for the session, and until something is held.",
)
@click.option("--json", "is_json", is_flag=True, help="With --list and --show: JSON, a line for each message.")
def command(
    *,
    session: str | None,
    is_list: bool,
    shown: tuple[int, ...],
    passed: tuple[str, ...],
    dropped: tuple[int, ...],
    answered: tuple[tuple[int, str], ...],
    refused: tuple[tuple[int, str], ...],
    edited: tuple[int, ...],
    off: bool,
    on: bool,
    wait: float | None,
    is_json: bool,
) -> int:
    """Decide about messages that a session holds at its break points (--break EXPR).

    LABEL is the name of a session as `mcpsniff list` shows it, or a part of it; PID is mcpsniff's own process. Neither
    is needed where there is only one session with break points.

    Without options a prompt shows what is held, while it comes and goes: look at a message, pass it, change it in your
    editor ($VISUAL, $EDITOR), drop it, or answer it in the receiver's place (h lists the commands). Detaching leaves
    held what is held. The options do the same for scripts. The exit status is 1 if a message is not held any more, or
    was edited without a change.
    """
    orders = _orders(passed, dropped, answered, refused, edited)
    if off and on:
        raise UsageError("--off and --on exclude each other")
    until = None if wait is None else time.monotonic() + wait
    link = _begun(session, until)
    try:
        if until is not None and not _has_come(link, until):
            note("nothing was held")
            return 1
        if is_list or shown or orders or off or on:
            if is_list:
                _list(link, is_json=is_json)
            for number in shown:
                _show(link, number, is_json=is_json)
            return _carry_out(link, orders, "off" if off else "on" if on else None)
        if is_json:
            raise UsageError("--json is for --list and --show")
        from mcpsniff.cli.attach_screen import converse

        converse(link)
    finally:
        link.close()
    return 0


def _orders(
    passed: tuple[str, ...],
    dropped: tuple[int, ...],
    answered: tuple[tuple[int, str], ...],
    refused: tuple[tuple[int, str], ...],
    edited: tuple[int, ...],
) -> list[tuple[Typed, dict[str, Any]]]:
    """What is to be done, with the answers. Raises UsageError before anything is."""
    orders: list[tuple[Typed, dict[str, Any]]] = []
    for word in passed:
        if word != ALL and not (word.isascii() and word.isdigit() and len(word) <= LONGEST_NUMBER):
            raise UsageError(f"--pass takes the number of a message, or all, not {word}")
        orders.append((Typed("pass", is_all=True) if word == ALL else Typed("pass", (int(word),)), {}))
    orders += [(Typed("drop", (number,)), {}) for number in dropped]
    orders += [(Typed("answer", (number,)), answer_of(text)) for number, text in answered]
    orders += [(Typed("answer", (number,)), {"error": text}) for number, text in refused]
    orders += [(Typed("edit", (number,)), {}) for number in edited]
    return orders


def _begun(session: str | None, until: float | None) -> Link:
    """A link to the session, for whose start is waited until then. Raises UsageError, EndedError."""
    while True:
        try:
            return attached(session)
        except EndedError:
            if until is None or (left := until - time.monotonic()) <= 0:
                raise
            time.sleep(min(left, _AGAIN))


def _has_come(link: Link, until: float) -> bool:
    """Wait until a message is held."""
    while not link.held and not link.is_over and (left := until - time.monotonic()) > 0:
        link.look(left)
    return bool(link.held)


def _list(link: Link, *, is_json: bool) -> None:
    if is_json:
        for held in link.held.values():
            sys.stdout.write(json.dumps(_facts(held)) + "\n")
        return
    width = columns() if sys.stdout.isatty() else WIDTH
    write = plain(sys.stdout.write)
    for held in link.held.values():
        write(row(held, width))
    if not link.held:
        note("nothing is held" if link.session["on"] else "nothing is held: the break points are off (--on)")


def _show(link: Link, number: int, *, is_json: bool) -> None:
    raw = link.text(number)
    if is_json:
        sys.stdout.write(
            json.dumps({**_facts(link.held[number]), "text": raw.decode(errors="backslashreplace")}) + "\n"
        )
        return
    write = plain(sys.stdout.write)
    for line in whole(raw, columns() if sys.stdout.isatty() else WIDTH):
        write(line)


def _facts(held: Held) -> dict[str, Any]:
    left = held.left
    return {**held.facts, "age": round(held.age, 3), "left": None if left is None else round(left, 3)}


def _carry_out(link: Link, orders: list[tuple[Typed, dict[str, Any]]], switch: str | None) -> int:
    """Do it all, also where something of it cannot be done, and return the exit status."""
    status = 0
    sys.stdout.flush()
    for what, more in orders:
        try:
            if what.do == "edit":
                _edit(link, what)
            elif what.is_all:
                link.order("pass all")
            else:
                link.order(what.do, what.numbers[0], **more)
        except RefusedError as error:
            note(str(error))
            status = error.exit_status
    if switch is not None:
        link.order(switch)
    return status


def _edit(link: Link, what: Typed) -> None:
    from mcpsniff.cli.attach_desk import Desk

    with Signals() as signals:
        desk = Desk(link, _note, lambda: _UNWRAPPED, lambda words: run_here(words, signals), has_prompt=False)
        try:
            desk.carry_out(what)
        finally:
            desk.close()


def _note(line: Line) -> None:
    note("".join(text for _, text in line))
