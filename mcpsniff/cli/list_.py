"""`mcpsniff list`: the captures as a table, the newest last."""

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import click

from mcpsniff.capture.catalog import TRY, list_captures
from mcpsniff.capture.labels import shown
from mcpsniff.capture.store import capture_folder
from mcpsniff.cli.digests import AT_ONCE, Seen, look
from mcpsniff.cli.output import json_writer, note
from mcpsniff.cli.table import Cell, Column, table
from mcpsniff.transcript.digest import Digest
from mcpsniff.transcript.head import way
from mcpsniff.transcript.layout import wrapped
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.servers import listed, route
from mcpsniff.transcript.units import count, duration, size

COLUMNS: Final[tuple[Column, ...]] = (
    Column("label", 100, least=8, most=32),
    Column("when", 90),
    Column("length", 50, right=True),
    Column("messages", 60, right=True),
    Column("failed", 70, right=True),
    Column("worst finding", 80),
    Column("edited by", 75, least=9, most=32),
    Column("peers", 40, least=16, most=60),
    Column("spoken to", 31, least=16, most=60, is_extra=True),
    Column("transport", 30, is_extra=True),
    Column("started", 20, is_extra=True),
    Column("size", 19, right=True, is_extra=True),
    Column("capture", 10, is_extra=True),
)
OPTIONAL: Final = (6, 8)
"""The places of the columns that are left out where no capture has anything in them: the editors, and the servers of
what was said over HTTP."""
ROOM_FOR_VERSIONS: Final = 110
_UNKNOWN: Final[Cell] = ("remark", "")
NOTHING: Final = "nothing was recorded: the file is empty"


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per capture and line, for programs.")
@click.option("--all", "everything", is_flag=True, help="Read all captures, however long that takes.")
@click.option("-l", "--long", "long", is_flag=True, help="All columns, whatever the width: file names, sizes, times.")
@click.option("--dir", "directory", metavar="DIR", help="The folder to list (default: where captures are written).")
def command(*, as_json: bool, everything: bool, long: bool, directory: str | None) -> None:
    """List the captures, the newest last.

    Shown are, as far as there is room: the label, when it was recorded, how long the session lasted, its messages,
    the calls that failed, the worst finding, who changed something on the way, client → server, and over HTTP the
    server's address.

    A capture is read once, and what it comes to is remembered. One call reads 32 MB of new captures, the newest first;
    --all reads all.
    """
    folder = capture_folder(directory, note)
    seen = look(folder, list_captures(folder), everything=everything)
    now = time.time()
    if as_json:
        write_line = json_writer(sys.stdout.buffer)
        for one in seen:
            write_line(_json(one))
        return
    if not seen:
        click.echo(f"There is no capture in {shown(folder)} yet: {TRY}.")
        return
    print_line, width = _printer(long=long)
    for text in [f"Captures in {shown(folder)}:"] if long else wrapped(f"Captures in {shown(folder)}:", width or 1000):
        print_line([("plain", text)])
    rows = [_row(one, now, versions=width is None or width >= ROOM_FOR_VERSIONS) for one in seen]
    kept = [at for at in range(len(COLUMNS)) if at not in OPTIONAL or any(row[at][1] for row in rows)]
    title, *lines = table([COLUMNS[at] for at in kept], [[row[at] for at in kept] for row in rows], width)
    print_line(title)
    for line, one in zip(lines, seen, strict=True):
        print_line(line)
        if one.problem is not None:
            role, problem = ("bad", f"unreadable: {visible(one.problem)}") if one.entry.size else ("remark", NOTHING)
            for text in wrapped(problem, (width or 1000) - 4):
                print_line([("", "    "), (role, text)])
    unread = sum(one.is_unread for one in seen)
    if unread:
        text = f"{count(unread, 'capture')} not read yet (more than {size(AT_ONCE)}): `mcpsniff list --all` reads all"
        for line_text in wrapped(text, width or 1000):
            print_line([("remark", line_text)])


def age(seconds: float) -> str:
    """``just now``, ``12 s ago``, ``3 min ago``, ``5 h ago``, ``2 days ago``; empty for a time to come."""
    if seconds < -5:
        return ""
    for limit, unit, noun in ((5, 0, ""), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // unit)} {noun} ago" if unit else "just now"
    return f"{count(int(seconds // 86400), 'day')} ago"


def _when(one: Seen, now: float) -> str:
    """A short word for how long ago a capture began; a date where that says more."""
    began = one.entry.started
    seconds = now - began.timestamp()
    if one.running:
        return "running"
    return (seconds < 100 * 86400 and age(seconds)) or f"{began.astimezone():%Y-%m-%d}"


def _row(one: Seen, now: float, *, versions: bool) -> list[Cell]:
    entry, digest = one.entry, one.digest
    header = entry.header
    server = (header.upstream if header else None) or ("" if digest is None else route(digest.origins))
    transport = way(header) if header else ""
    parts = f" ({entry.parts} parts)" if entry.parts > 1 else ""
    return [
        ("method", visible(entry.label)),
        ("milestone" if not one.running else "latency", _when(one, now)),
        *_figures(one, digest, now, versions=versions),
        ("plain", visible(server)),
        ("remark", visible(transport)),
        ("time", f"{entry.started.astimezone():%Y-%m-%d %H:%M:%S}"),
        ("size", size(entry.size)),
        ("remark", f"{visible(entry.name)}{parts}"),
    ]


def _figures(one: Seen, digest: Digest | None, now: float, *, versions: bool) -> list[Cell]:
    """Length, messages, errors, worst finding, editors and peers."""
    if digest is None:
        return [*[_UNKNOWN] * 3, ("remark", "not read yet" if one.is_unread else ""), _UNKNOWN, _UNKNOWN]
    lasted = digest.duration_us
    if one.running:
        lasted = max(lasted, int((now - one.entry.started.timestamp()) * 1_000_000))
    failed = digest.errors + digest.undelivered
    worst: Cell = ("remark", "none" if not digest.empty else "nothing recorded" + " yet" * one.running)
    if digest.worst is not None:
        code, _, severity = digest.worst
        worst = (severity, visible(f"{code} {severity}"))
    return [
        ("plain", duration(lasted)) if lasted else _UNKNOWN,  # nothing was recorded: it does not tell how long
        ("plain", f"{digest.messages:,}"),
        ("bad" if failed else "remark", f"{failed:,}"),
        worst,
        ("latency", visible(listed(digest.edited_by, 3))),
        ("plain", _peers(digest, versions=versions)),
    ]


def _peers(digest: Digest, *, versions: bool) -> str:
    """``client 1.0 → server 2.1``, or the names alone; where nobody gave one, the server's address."""
    if digest.client is None and digest.server is None:
        return visible(f"? → {listed(digest.origins, 1)}") if digest.origins else ""
    shown_of = [
        " ".join(filter(None, peer if versions else peer[:1])) if peer else "?"
        for peer in (digest.client, digest.server)
    ]
    more = f" and {digest.conversations - 1:,} more" if digest.conversations > 1 else ""
    return visible(" → ".join(shown_of)) + more


def _printer(*, long: bool) -> tuple[Any, int | None]:
    """How to print lines, and in which width; None: as wide as it takes."""
    from mcpsniff.transcript.terminal import plain, printer, terminal

    if not sys.stdout.isatty():
        return plain(sys.stdout.write), None
    console = terminal()
    width = None if long else console.width
    if os.environ.get("NO_COLOR") or not console.color_system:
        return plain(sys.stdout.write), width
    return printer(console), width


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _json(one: Seen) -> bytes:
    """One line; docs/json-output.md describes it."""
    import orjson

    entry, digest = one.entry, one.digest
    header = entry.header
    fields: dict[str, Any] = {
        "path": entry.path,
        "name": entry.name,
        "label": entry.label,
        "started": _utc(entry.started),
        "started_local": entry.started.astimezone().isoformat(sep=" ", timespec="seconds"),
        "running": one.running,
        "transport": header.transport if header else None,
        "argv": list(header.argv) if header else None,
        "upstream": header.upstream if header else None,
        "listen": header.listen if header else None,
        "size": entry.size,
        "parts": entry.parts,
        "modified": _utc(datetime.fromtimestamp(entry.mtime, UTC)),
        "problem": one.problem,
        **dict(_digest_fields(digest)),
    }
    try:
        return orjson.dumps(fields) + b"\n"
    except TypeError:  # a path that is not UTF-8
        return orjson.dumps({name: _encodable(value) for name, value in fields.items()}) + b"\n"


def _digest_fields(digest: Digest | None) -> Iterator[tuple[str, Any]]:
    """The figures of a session; all null where it was not read."""
    for name in Digest._fields:
        value = None if digest is None else getattr(digest, name)
        if value is not None and name == "worst":
            value = dict(zip(("code", "name", "severity"), value, strict=True))
        elif value is not None and name in ("client", "server"):
            value = {"name": value[0] or None, "version": value[1] or None}
        yield name, value


def _encodable(value: Any) -> Any:
    """Without half surrogates, which JSON in UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {name: _encodable(item) for name, item in value.items()}
    return value
