"""Writes captures of the MCP that passes through mitmdump, mitmproxy or mitmweb.

    mitmdump -s mcp_capture.py [--set mcp_dir=DIR] [--set mcp_label=NAME] [--set mcp_all=true] ...

Needs mcpsniff in the same environment as mitmproxy (pip install mcpsniff; pipx inject mitmproxy mcpsniff). Event
streams are passed on as they come; --set store_streamed_bodies=true keeps them for mitmproxy's own pages, too.
"""

import logging
import os
from contextlib import suppress

from mitmproxy import ctx
from mitmproxy.addonmanager import Loader
from mitmproxy.log import ALERT

from mcpsniff.proxy.mitm.guest import Guest
from mcpsniff.proxy.mitm.hosts import Hosts
from mcpsniff.proxy.mitm.select import Select
from mcpsniff.proxy.mitm.tap import Tap
from mcpsniff.proxy.recording import Recording
from mcpsniff.proxy.say import redirect

OPTIONS = (
    ("mcp_dir", str, "", "Folder for captures of MCP. Empty: as mcpsniff has it (MCPSNIFF_DIR, its config file)."),
    ("mcp_output", str, "", "File for the capture of MCP, in the place of a new one in that folder."),
    ("mcp_label", str, "mitmproxy", "Name of the capture of MCP."),
    ("mcp_keep_secrets", bool, False, "Record secrets in captures of MCP as they are, instead of masking them."),
    ("mcp_all", bool, False, "Record every HTTP exchange, not only MCP and the OAuth that belongs to it."),
    ("mcp_transcript", bool, True, "Write a transcript beside the capture of MCP at the end."),
)
logger = logging.getLogger("mcpsniff")


class McpCapture:
    """Records from the start of mitmproxy to its end."""

    def __init__(self) -> None:
        self.addons: list[object] = []
        self._options: dict[str, object] = {"no_transcript": True, "quiet": False}
        self._recording = Recording("forward", (), self._options)
        self._tap: Tap | None = None

    def load(self, loader: Loader) -> None:
        """Declare the options."""
        for name, kind, default, text in OPTIONS:
            loader.add_option(name, kind, default, text)

    def configure(self, _updated: set[str]) -> None:
        """Listen, before anything can pass; which is kept until it is known where to."""
        if self._tap is None:
            select = Select(Hosts(()), everything=ctx.options.mcp_all)
            self._tap = Tap(self._recording.recorder, select)
            self.addons.append(Guest(self._tap, select))

    def running(self) -> None:
        """Begin to write."""
        redirect(lambda text: logger.log(ALERT, "mcpsniff: %s", text))
        options = {name.removeprefix("mcp_"): getattr(ctx.options, name) for name, *_ in OPTIONS}
        self._options |= {**options, "no_transcript": not options["transcript"]}
        self._recording.start()

    def done(self) -> None:
        """Store what is left; a capture that nothing is in is removed."""
        if self._tap is None:
            return
        self._tap.stop()
        if not self._tap.kept:
            self._options["no_transcript"] = True
        self._recording.finish()
        if not self._tap.kept and self._recording.path is not None:
            _remove_if_empty(self._recording.path)


def _remove_if_empty(path: str) -> None:
    """Remove a capture that has no more than its first line."""
    with suppress(OSError):
        with open(path, "rb") as file:
            file.readline()
            if file.read(1):
                return
        os.unlink(path)


addons = [McpCapture()]
