"""`mcpsniff demo`: a real session through the real wrapper, recorded and shown, with a few faults on purpose."""

import sys

import click

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.store import capture_folder
from mcpsniff.cli.output import note
from mcpsniff.cli.show import write_text
from mcpsniff.demo.client import DemoError, hold_session
from mcpsniff.errors import McpsniffError
from mcpsniff.transcript.payload import FOLDED

LABEL = "demo"


@click.command("demo")
@click.option("--dir", "directory", metavar="DIR", help="Write the capture into this folder.")
def command(directory: str | None) -> None:
    """Record a short session with deliberate faults and show it.

    A small MCP server and client talk through `mcpsniff stdio`. Nothing leaves this machine.
    """
    folder = capture_folder(directory, note)
    wrapper = [sys.executable, "-m", "mcpsniff", "stdio", "--quiet", "--no-transcript", "--label", LABEL]
    try:
        hold_session([*wrapper, "--dir", folder, "--", sys.executable, "-m", "mcpsniff.demo.server"])
    except (DemoError, OSError) as error:
        raise McpsniffError(f"the demo's session failed: {error}") from None
    path = find(LABEL, folder, warn=note).path
    click.echo("A client and a server talked through `mcpsniff stdio`. This is what they said; some of it is wrong.\n")
    sys.stdout.flush()
    write_text(open_capture(path), sys.stdout.buffer, FOLDED)
    sys.stdout.buffer.flush()
    click.echo(f"\nThe capture: {shown(path)}\n\nTry next:")
    show = f"mcpsniff show {LABEL}" + (f" --dir {shown(directory)}" if directory else "")
    for words, purpose in (
        (f"{show} --payload", "every payload in full"),
        (f"{show} --format markdown -o demo.md", "a transcript for a bug report"),
        (f"{show} --format json", "one JSON object per event, for programs"),
        ("mcpsniff explain MCP405", "what a finding means and what to do"),
        ("mcpsniff stdio -- COMMAND", "in front of the command of your own server"),
    ):
        click.echo(f"  {words:<{len(show) + 34}}{purpose}")
