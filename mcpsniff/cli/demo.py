"""`mcpsniff demo`: a real session through the real wrapper, recorded and shown, with a few faults on purpose."""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator

import click

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.store import SUFFIX, capture_folder
from mcpsniff.cli.output import note
from mcpsniff.cli.show import write_text
from mcpsniff.demo.client import DemoError, hold_session
from mcpsniff.errors import McpsniffError
from mcpsniff.transcript.payload import FOLDED

LABEL = "demo"
TRANSCRIPT_PATIENCE = 5.0
"""Seconds to wait for the transcript, which a process of its own writes."""
WIDEST = 100


@click.command("demo")
@click.option("--dir", "directory", metavar="DIR", help="Write the capture into this folder.")
def command(directory: str | None) -> None:
    """Record a short session with deliberate faults and show it.

    A small MCP server and client talk through `mcpsniff stdio`. Nothing leaves this machine.
    """
    folder = capture_folder(directory, note)
    wrapper = [sys.executable, "-m", "mcpsniff", "stdio", "--quiet", "--label", LABEL, "--dir", folder]
    try:
        hold_session([*wrapper, "--", sys.executable, "-m", "mcpsniff.demo.server"])
    except (DemoError, OSError) as error:
        raise McpsniffError(f"the demo's session failed: {error}") from None
    path = find(LABEL, folder, warn=note).path
    click.echo("A client and a server talked through `mcpsniff stdio`. This is what they said; some of it is wrong.\n")
    sys.stdout.flush()
    write_text(open_capture(path), sys.stdout.buffer, FOLDED)
    sys.stdout.buffer.flush()
    click.echo(f"\nThe capture: {shown(path)}")
    transcript = path.removesuffix(SUFFIX) + ".md"
    if _appears(transcript):
        click.echo(f"Its transcript, which every session leaves: {shown(transcript)}")
    click.echo("\nTry next:")
    for line in _suggestions(directory):
        click.echo(f"  {line}")


def _suggestions(directory: str | None) -> Iterator[str]:
    """Commands to try, each as it can be typed, with what it is for."""
    mcpsniff = typed_command(sys.argv[0])
    show = [*mcpsniff, "show", LABEL, *(["--dir", directory] if directory else [])]
    offered = [
        ([*show, "--payload"], "every payload in full"),
        ([*show, "--format", "markdown", "-o", "demo.md"], "a transcript for a bug report"),
        ([*show, "--format", "json"], "one JSON object per event, for programs"),
        ([*mcpsniff, "explain", "MCP405"], "what a finding means and what to do"),
        ([*mcpsniff, "stdio", "--", "COMMAND"], "in front of the command of your own server"),
    ]
    commands = [shlex.join(words) for words, _ in offered]
    longest = max(map(len, commands))
    for typed, (_, purpose) in zip(commands, offered, strict=True):
        if longest + max(len(purpose) for _, purpose in offered) + 6 <= WIDEST:
            yield f"{typed:<{longest}}    {purpose}"
        else:
            yield f"# {purpose}"
            yield typed


def typed_command(started_as: str) -> list[str]:
    """How to start mcpsniff again: by its name where that finds this installation, else the way it was started."""
    name = "mcpsniff"
    script = started_as if os.path.basename(started_as) == name else os.path.join(os.path.dirname(sys.executable), name)
    found = shutil.which(name)
    if found is not None and os.path.exists(script) and os.path.samefile(found, script):
        return [name]
    if os.path.basename(started_as) == name and os.access(script, os.X_OK):
        return [script]
    return [sys.executable, "-m", name]


def _appears(path: str) -> bool:
    """Wait for a file that is about to be there."""
    deadline = time.monotonic() + TRANSCRIPT_PATIENCE
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
