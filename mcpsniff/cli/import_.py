"""`mcpsniff import`: MCP over HTTP that another program has kept, as a capture."""

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import batched
from typing import Final

import click

from mcpsniff import __version__
from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.salt import store_salt
from mcpsniff.capture.store import new_capture_file, safe_label
from mcpsniff.capture.writer import CaptureWriter, new_run_id, rfc3339
from mcpsniff.cli.output import note
from mcpsniff.errors import CaptureError
from mcpsniff.importers import Account, read_exchanges
from mcpsniff.importers.chosen import mcp_of
from mcpsniff.importers.records import Entry, Imported, records_of
from mcpsniff.proxy.mask import Masker
from mcpsniff.proxy.mask_told import without_secrets
from mcpsniff.proxy.recording import LARGEST, transcript_path, write_transcript
from mcpsniff.transcript.units import count

NOTHING: Final = 1
"""The exit status when there is nothing to import."""
SLICE: Final = 64
"""Records that are masked and written at once."""


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=str))
@click.option("-o", "--output", metavar="CAPTURE", help="Write the capture to this file.")
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="Write the capture into this folder (default: where captures are written).",
)
@click.option("--label", metavar="NAME", help="Call the capture by this name (default: from the name of FILE).")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Take every HTTP exchange. Otherwise only MCP, and OAuth that belongs to it.",
)
@click.option("--keep-secrets", is_flag=True, help="Take secrets over as they are; otherwise they are masked.")
@click.option("--no-transcript", is_flag=True, help="Do not write a Markdown transcript beside the capture.")
@click.option("--quiet", is_flag=True, help="Say only what cannot be read.")
def command(
    *,
    file: str,
    output: str | None,
    directory: str | None,
    label: str | None,
    everything: bool,
    keep_secrets: bool,
    no_transcript: bool,
    quiet: bool,
) -> int:
    """Make a capture of the MCP over HTTP that another program has kept.

    FILE is a flow file of mitmproxy (mitmdump -w FILE), or a HAR file of a browser, mitmproxy, Charles and others. What
    such a file lacks is said: bodies that were streamed, times of the events on a stream.

    Exit status: 0; 1 if there is no MCP in FILE; 3 if something in it cannot be read. What can be read is imported.
    """
    account = Account()
    kind, exchanges = read_exchanges(file, account)
    chosen = exchanges if everything else mcp_of(exchanges)
    for bad in account.bad:
        note(f"{shown(file)}: {shown(without_secrets(bad))}")
    failed = CaptureError.exit_status if account.bad else 0
    if not chosen:
        said = f"{shown(file)}, {kind}, has {count(len(exchanges), 'HTTP exchange')}, none of them MCP"
        if not failed or exchanges:
            note(said if not exchanges or everything else f"{said} (--all takes them all)")
        return failed or NOTHING
    imported = records_of(chosen, account)
    if label is None:
        label = os.path.basename(file).rpartition(".")[0] or os.path.basename(file)
    label = safe_label(label)
    facts = {"label": label, "imported": os.path.abspath(file), "kept_by": account.creator}
    path = _write(imported, output, directory, facts, keep_secrets=keep_secrets)
    if not quiet:
        if account.others:
            others = count(account.others, "entry", "entries")
            note(f"{others} left out: tunnels, WebSocket and what else is no HTTP exchange")
        for remark in account.remarks:
            note(shown(without_secrets(remark)))
        of_all = "" if len(chosen) == len(exchanges) else f" of {len(exchanges):,}"
        click.echo(f"{count(len(chosen), 'HTTP exchange')}{of_all} from {shown(file)}: {shown(path)}")
    if not no_transcript:
        _transcribe(path, quiet=quiet)
    if not quiet:
        note(f"to look at it: mcpsniff show {shlex.quote(_name_of(path, label))}")
    return failed


def _transcribe(path: str, *, quiet: bool) -> None:
    """Have the transcript written as at the end of a session, and wait for it; Ctrl-C ends the waiting only."""
    size = os.path.getsize(path)
    if size > LARGEST:
        note(f"no transcript of {size:,} bytes: mcpsniff show --format markdown -o FILE writes one")
        return
    process = write_transcript(path)
    if process is None:
        return
    target = shown(transcript_path(path))
    try:
        _, status = os.waitpid(process, 0)
    except KeyboardInterrupt:
        note(f"the transcript is still being written, to {target}")
        return
    if status:
        note(f"no transcript: writing {target} failed")
    elif not quiet:
        note(f"transcript in {target}")


def _name_of(path: str, label: str) -> str:
    """The shortest name by which `mcpsniff show` finds the capture: it may have begun before others with its label."""
    with suppress(CaptureError):
        if os.path.samefile(find(label).path, path):
            return label
    return path


def _write(
    imported: Imported, output: str | None, directory: str | None, facts: dict[str, str], *, keep_secrets: bool
) -> str:
    """Write the capture, with ``facts`` in its header; return where it is. Raises CaptureError."""
    started, began = imported.started * 1000, imported.started / 1_000_000
    descriptor, path = new_capture_file(directory, output, facts["label"], (), warn=note, now=began)
    header = {
        "run": new_run_id(time.time_ns() // 1_000_000),
        "started": rfc3339(started),
        "transport": "forward",
        **{name: fact for name, fact in facts.items() if fact},
        "by": f"mcpsniff {__version__}",
    }
    writer = CaptureWriter(descriptor, path, header)
    masker = None if keep_secrets else Masker(lambda: store_salt(directory, note))
    try:
        for entries in _sliced(imported.entries, masker):
            if writer.append(entries) < len(entries):
                failure = writer.failure
                why = (isinstance(failure, OSError) and failure.strerror) or failure
                os.unlink(path)
                raise CaptureError(f"cannot write {shown(path)}: {why}")
    finally:
        writer.close()
    return path


def _sliced(entries: list[Entry], masker: Masker | None) -> Iterator[list[Entry]]:
    """The records without their secrets, a few at a time: what is written takes no room any more."""
    for part in batched(entries, SLICE):
        yield list(part) if masker is None else masker(list(part))
    if masker is not None:
        yield masker.finish()
