"""`mcpsniff redact`: a capture that can be shared."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import click

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import Capture, open_capture, open_stream
from mcpsniff.capture.store import is_being_written
from mcpsniff.cli.complete import complete_capture
from mcpsniff.cli.output import appearing, note
from mcpsniff.errors import CaptureError, UsageError
from mcpsniff.export.redact import Names, Report, make_rules, redact
from mcpsniff.export.redact.presets import DEFAULT, EVERY, NONE, PRESETS
from mcpsniff.proxy.mask_names import is_credential_header, is_telling, is_telling_key, is_telling_member
from mcpsniff.transcript.units import count

NAMES: Final = Names(
    member=lambda name: is_telling(name) and is_telling_member(name),
    credential=is_telling_member,
    header=is_credential_header,
    key=is_telling_key,
)
"""The names that count for the recorder, too. In JSON-RPC ``code`` and the like say nothing."""


@click.command("redact")
@click.argument("capture", required=False, metavar="[CAPTURE|LABEL]", shell_complete=complete_capture)
@click.option(
    "-o", "--output", "path", required=True, metavar="OUT", help="Write to this file (private, replaced as a whole)."
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="NAME",
    help="Remove what a member, header, query key or option of this name has.",
)
@click.option(
    "--path",
    "paths",
    multiple=True,
    metavar="PATH",
    help="Remove what is at, or below, this place of a message: params.arguments.x.",
)
@click.option(
    "--value", "values", multiple=True, metavar="TEXT", help="Remove this text wherever it is, letter by letter."
)
@click.option(
    "--pattern", "patterns", multiple=True, metavar="REGEX", help="Remove what this Python expression matches."
)
@click.option(
    "--preset",
    "presets",
    multiple=True,
    metavar="NAME",
    help=f"Remove what has a known form: {', '.join([*PRESETS, EVERY, NONE])}.  [default: {', '.join(DEFAULT)}]",
)
@click.option("--seed", metavar="TEXT", help="Let equal values have equal names in all files redacted with this seed.")
@click.option("--dir", "directory", metavar="DIR", help="Look for captures in this folder.")
@click.option("--quiet", is_flag=True, help="Say nothing but what went wrong.")
def command(
    *,
    capture: str | None,
    path: str,
    keys: tuple[str, ...],
    paths: tuple[str, ...],
    values: tuple[str, ...],
    patterns: tuple[str, ...],
    presets: tuple[str, ...],
    seed: str | None,
    directory: str | None,
    quiet: bool,
) -> None:
    """Make a capture that can be shared: secrets replaced by names, all else as it was.

    Removed are the values of --key and --path, what --value says, what --pattern matches, and what --preset knows.
    Each value gets a name, such as redacted-email-1@example.invalid, the same at all its places: also where it stands
    in base64, percent-encoded, escaped or the like. So requests and answers still pair, and captures can be compared.
    Lengths are made true again.

    What was written is then searched for everything that was removed. If anything is left, nothing is written, and the
    exit status is 3. The capture itself is not touched, and no command brings a value back. Look at the result before
    you share it: only you know what is secret in it. docs/redact.md tells all of it.

    --path takes * for any one name and ** for any number of them. In --pattern a group (?P<secret>...) is what is
    removed; a pattern that takes longer than a second on a text has the whole text removed.
    """
    rules = make_rules(
        keys=keys, paths=paths, values=values, patterns=patterns, presets=presets, names=NAMES, seed=seed
    )
    opened = _chosen(capture, directory)
    _refuse(opened, path)
    opened.keep()
    try:
        with appearing(os.path.realpath(path)) as temporary:
            report = redact(opened, rules, temporary)
    except OSError as error:
        raise CaptureError(f"cannot write {shown(path)}: {error.strerror or error}") from None
    if not quiet:
        for line in _told(report, path):
            note(line)
    for rule in report.idle:
        note(f"{shown(rule)} matched nothing")


def _chosen(what: str | None, directory: str | None) -> Capture:
    """Open the capture that is meant; where there was a choice, say which one was taken."""
    if what == "-":
        return open_stream(sys.stdin.buffer)
    found = find(what, directory, warn=note, even_without_content=False)
    if found.said:
        note(f"redacting {shown(found.path)}, {found.said}")
    return open_capture(found.path)


def _refuse(capture: Capture, path: str) -> None:
    """Refuse to overwrite the capture, to write to what is no file, and to redact what still grows."""
    if not path:
        raise UsageError("--output wants the name of a file")
    for part in capture.parts:
        with suppress(OSError, ValueError):
            if os.path.samefile(part.path, path):
                raise UsageError(f"{shown(path)} is the capture itself, and would be overwritten")
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        is_file = True
    if not is_file or path == "-":
        raise UsageError(f"{shown(path)} is no file: what is written must be read again before it may be there")
    if is_being_written(capture.parts[-1].path):
        raise CaptureError(f"{shown(capture.path)} is still being recorded: redact it when the session has ended")


def _told(report: Report, path: str) -> Iterator[str]:
    """What was done, line by line."""
    if not report.places:
        yield f"nothing was found that is to be removed: {shown(path)} is as the capture was"
    else:
        kinds = ", ".join(f"{number:,} {shown(kind)}" for kind, number in report.kinds.items())
        total = sum(report.kinds.values())
        what = f"{count(total, 'value')} at {count(report.places, 'place')} ({kinds or 'whole bodies'})"
        yield f"replaced {what}: {shown(path)}"
    if report.everyday:
        yield (
            f"{count(report.everyday, 'value')} of them, short or common, only where a rule names them: the same"
            " word may stand elsewhere"
        )
    if report.unread:
        yield f"{count(report.unread, 'body', 'bodies')} could not be decoded, so not searched, and left out whole"
    if report.damage:
        what = count(report.damage, "place")
        yield f"{what} of the capture could not be read: what was there is not in {shown(path)}, which says so"
    if report.cut:
        yield f"{count(report.cut, 'text')} removed whole, since --pattern took too long on them"
