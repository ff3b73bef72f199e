"""`mcpsniff prune`: remove captures by age or number, with their parts and the transcripts beside them."""

import os
import stat
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import click

from mcpsniff.capture.catalog import Entry, list_captures
from mcpsniff.capture.labels import safe_label, shown
from mcpsniff.capture.reader import read_header
from mcpsniff.capture.store import SUFFIX, capture_folder, is_being_written, reason, split_part
from mcpsniff.cli.ages import seconds
from mcpsniff.cli.complete import complete_label
from mcpsniff.cli.list_ import age
from mcpsniff.cli.output import note
from mcpsniff.errors import CaptureError, McpsniffError, UsageError
from mcpsniff.transcript.units import count, size

BESIDE = (".md", ".html")
"""What mcpsniff writes beside a capture, under its name."""


class Doomed(NamedTuple):
    """A capture that is to be removed."""

    entry: Entry
    files: tuple[str, ...]
    """In the order in which they are removed: of its parts the last first, so that what is left can be read."""
    size: int


@click.command("prune")
@click.option(
    "--older-than", "older", metavar="AGE", help="Remove what began, and was last written, longer ago: 12h, 7d, 2w."
)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N, whatever their age.")
@click.option("--label", metavar="LABEL", shell_complete=complete_label, help="Only captures of this label.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dir", "directory", metavar="DIR", help="The folder to clean up (default: where captures are written).")
def command(
    *, older: str | None, keep: int | None, label: str | None, dry_run: bool, yes: bool, directory: str | None
) -> None:
    """Remove captures: all but the newest N, those older than AGE, or with both only what is neither.

    With a capture go all its parts and the .md and .html of its name beside it. A capture that is being written is
    never removed, nor is anything that is not a capture of mcpsniff; links are not followed.
    """
    if older is None and keep is None:
        raise UsageError("prune needs --older-than AGE, --keep N or both; mcpsniff list shows what there is")
    limit = None if older is None else seconds(older)
    folder = capture_folder(directory, note)
    if directory is not None and not os.path.isdir(folder):
        raise CaptureError(f"no such folder: {shown(folder)}")
    now = time.time()
    doomed = list(_doomed(list_captures(folder), limit, keep, label, now))
    if not doomed:
        click.echo(f"Nothing to remove in {shown(folder)}.")
        return
    for one in doomed:
        old = age(now - one.entry.started.timestamp()) or "from the future"
        click.echo(f"{shown(one.entry.name)}  {old}, {count(len(one.files), 'file')}, {size(one.size)}")
    total = f"{count(len(doomed), 'capture')}, {size(sum(one.size for one in doomed))}"
    if dry_run:
        click.echo(f"Would remove {total}.")
        return
    if not yes and not _agreed(total):
        click.echo("Nothing removed.")
        return
    _remove_all(doomed)


def _doomed(
    entries: list[Entry], limit: float | None, keep: int | None, label: str | None, now: float
) -> Iterator[Doomed]:
    """The captures to remove, oldest first. ``limit`` is an age in seconds."""
    meant = [entry for entry in entries if entry.header is not None and (label is None or _is_called(entry, label))]
    if label is not None and not meant:
        note(f"there is no capture with the label {shown(label)}")
    # What stays anyway is none of the newest N: a link to a capture must not stand in for the capture.
    removable = [(entry, files) for entry in meant if (files := tuple(_files(entry)))]
    for entry, files in removable[:-keep] if keep else removable:
        last = max(entry.mtime, entry.started.timestamp())
        if limit is not None and now - last <= limit:
            continue
        if any(is_being_written(path) for path in entry.files):
            note(f"{shown(entry.name)} is being written, and stays")
            continue
        yield Doomed(entry, files, sum(os.lstat(path).st_size for path in files))


def _is_called(entry: Entry, label: str) -> bool:
    return entry.label == label or safe_label(entry.label) == safe_label(label)


def _files(entry: Entry) -> Iterator[str]:
    """The files of a capture that may be removed; none if one of its parts is a link or something else."""
    assert entry.header is not None
    for path in entry.files:
        try:
            is_part = _is_plain(path) and read_header(path).run == entry.header.run
        except CaptureError:
            is_part = False
        if not is_part:
            note(f"{shown(path)} is a link, or no part of the capture of its name: {shown(entry.name)} stays")
            return
    yield from reversed(entry.files)
    root = split_part(entry.path)[0].removesuffix(SUFFIX)
    yield from (root + suffix for suffix in BESIDE if _is_plain(root + suffix))


def _is_plain(path: str) -> bool:
    """True for a regular file that is no link."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _agreed(total: str) -> bool:
    """Ask on a terminal. Raises UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(f"this would remove {total}; without a terminal to ask on, say --yes (or --dry-run)")
    return click.confirm(f"Remove {total}?", default=False)


def _remove_all(doomed: list[Doomed]) -> None:
    """Remove the files. Raises McpsniffError in the end if some could not be removed."""
    freed = removed = 0
    failures = []
    for one in doomed:
        if any(is_being_written(path) for path in one.entry.files):
            note(f"{shown(one.entry.name)} is being written by now, and stays")
            continue
        try:
            for path in one.files:
                there = os.lstat(path).st_size
                os.unlink(path)
                freed += there
        except FileNotFoundError:
            continue  # somebody else was faster
        except OSError as error:
            failures.append(f"{shown(one.entry.name)}: {reason(error)}")
            continue
        removed += 1
    click.echo(f"Removed {count(removed, 'capture')}, {size(freed)} freed.")
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        raise McpsniffError(f"cannot remove {failures[0]}{more}")
