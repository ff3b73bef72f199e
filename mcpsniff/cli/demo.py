"""`mcpsniff demo`: real sessions through the real wrapper and the real relay, recorded and shown, with some faults."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.store import SUFFIX, capture_folder
from mcpsniff.cli.output import note
from mcpsniff.cli.show import write_text
from mcpsniff.demo import client, sse_client
from mcpsniff.errors import McpsniffError
from mcpsniff.transcript.payload import FOLDED

LABEL = "demo"
HTTP_LABEL = "demo-sse"
PATIENCE = 15.0
"""Seconds that a program may take to begin, or to end."""
TRANSCRIPT_PATIENCE = 5.0
"""Seconds to wait for a transcript, which a process of its own writes."""
WIDEST = 100


@click.command("demo")
@click.option("--dir", "directory", metavar="DIR", help="Write the captures into this folder.")
def command(directory: str | None) -> None:
    """Record two short sessions with deliberate faults and show them.

    A small MCP server and client talk through `mcpsniff stdio`, and another two on HTTP with SSE through `mcpsniff
    http`. Nothing leaves this machine.
    """
    folder = capture_folder(directory, note)
    paths = [
        _recorded(LABEL, folder, _hold_on_pipes, "A client and a server talked through `mcpsniff stdio`."),
        _recorded(
            HTTP_LABEL, folder, _hold_on_http, "\nTwo others talked over HTTP with SSE, through `mcpsniff http`."
        ),
    ]
    click.echo("\nThe captures, and the transcripts that every session leaves:")
    for path in paths:
        transcript = path.removesuffix(SUFFIX) + ".md"
        for file in (path, transcript) if _appears(transcript) else (path,):
            click.echo(f"  {shown(file)}")
    click.echo("\nTry next:")
    for line in _suggestions(directory):
        click.echo(f"  {line}")


def _hold_on_pipes(folder: str) -> None:
    """Hold the session over stdio."""
    wrapper = [*_mcpsniff("stdio", LABEL, folder), "--", sys.executable, "-m", "mcpsniff.demo.server"]
    client.hold_session(wrapper)


def _hold_on_http(folder: str) -> None:
    """Hold the session over HTTP."""
    with (
        _started([sys.executable, "-m", "mcpsniff.demo.sse_server"]) as upstream,
        _started([*_mcpsniff("http", HTTP_LABEL, folder), upstream]) as address,
    ):
        sse_client.hold_session(address)


def _mcpsniff(command: str, label: str, folder: str) -> list[str]:
    return [sys.executable, "-m", "mcpsniff", command, "--quiet", "--label", label, "--dir", folder]


@contextmanager
def _started(words: list[str]) -> Iterator[str]:
    """Run a program that serves; give its first line, which says where. In the end it is told to end."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        line = process.stdout.readline().decode().strip()
        if not line:
            raise client.DemoError(f"{words[2]} does not serve")
        yield line
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _recorded(label: str, folder: str, hold: Callable[[str], None], about: str) -> str:
    """Hold a session and show it; return where its capture is."""
    try:
        hold(folder)
    except (client.DemoError, OSError) as error:
        raise McpsniffError(f"the demo's session failed: {error}") from None
    path = find(label, folder, warn=note).path
    click.echo(f"{about} This is what they said; some of it is wrong.\n")
    sys.stdout.flush()
    write_text(open_capture(path), sys.stdout.buffer, FOLDED)
    sys.stdout.buffer.flush()
    return path


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
        ([*mcpsniff, "http", "URL"], "in front of your own server on HTTP"),
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
