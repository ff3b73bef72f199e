"""`mcpsniff list`: the captures, oldest first."""

import sys
from datetime import UTC, datetime

import click
import orjson

from mcpsniff.capture.catalog import Entry, list_captures
from mcpsniff.capture.labels import shown
from mcpsniff.capture.store import capture_folder
from mcpsniff.cli.output import note
from mcpsniff.transcript.layout import cells, fitted
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.units import size


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per capture and line, for programs.")
@click.option("--dir", "directory", metavar="DIR", help="The folder to list (default: where captures are written).")
def command(as_json: bool, directory: str | None) -> None:
    """List the captures, the newest last: when, label, size, file."""
    folder = capture_folder(directory, note)
    entries = list_captures(folder)
    if as_json:
        for entry in entries:
            sys.stdout.buffer.write(_json(entry))
        return
    if not entries:
        click.echo(f"There is no capture in {shown(folder)} yet: `mcpsniff stdio -- COMMAND` makes one.")
        return
    click.echo(f"Captures in {shown(folder)}:")
    labels = [fitted(visible(entry.label), 32) for entry in entries]
    widest = max(map(cells, labels))
    for entry, label in zip(entries, labels, strict=True):
        padded = label + " " * (widest - cells(label))
        parts = f"  ({entry.parts} parts)" if entry.parts > 1 else ""
        click.echo(f"  {entry.started:%Y-%m-%d %H:%M:%S}  {padded}  {size(entry.size):>7}  {shown(entry.name)}{parts}")
        if entry.problem:
            click.echo(f"  {'':19}  unreadable: {visible(entry.problem)}")


def _json(entry: Entry) -> bytes:
    header = entry.header
    fields = {
        "path": entry.path,
        "label": entry.label,
        "started": entry.started.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "transport": header.transport if header else None,
        "argv": list(header.argv) if header else None,
        "size": entry.size,
        "parts": entry.parts,
        "modified": datetime.fromtimestamp(entry.mtime, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "problem": entry.problem,
    }
    try:
        return orjson.dumps(fields) + b"\n"
    except TypeError:  # a path that is not UTF-8
        return (
            orjson.dumps(
                {**fields, "path": entry.path.encode(errors="replace").decode(), "label": visible(entry.label)}
            )
            + b"\n"
        )
