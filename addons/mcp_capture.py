"""Writes captures of the MCP that passes through mitmdump, mitmproxy or mitmweb.

    mitmdump -s mcp_capture.py [-s ADDON.py] [--set mcp_dir=DIR] [--set mcp_label=NAME] [--set mcp_all=true] ...

Hooks of mcpsniff in other addons (mcp_message, mcp_edit, ...) are called, too; name this one before them.
Needs mcpsniff in the Python that runs mitmproxy (pip install mcpsniff; pipx inject mitmproxy mcpsniff; uv tool install
mitmproxy --with mcpsniff). Event streams are passed on as they come; --set store_streamed_bodies=true keeps them for
mitmproxy's own pages, -w and hardump, too.
"""

import logging
import os
import sys
from contextlib import suppress

from mitmproxy import ctx
from mitmproxy.addonmanager import Loader
from mitmproxy.log import ALERT

lacks = ""
try:
    from mcpsniff.capture.labels import shown
    from mcpsniff.hooks.context import ctx as hooked
    from mcpsniff.hooks.events import OBSERVING
    from mcpsniff.proxy.mitm.edit_guest import GuestEditor
    from mcpsniff.proxy.mitm.guest import Guest
    from mcpsniff.proxy.mitm.hosts import Hosts
    from mcpsniff.proxy.mitm.observing import Observing
    from mcpsniff.proxy.mitm.scripts import Scripts
    from mcpsniff.proxy.mitm.select import Select
    from mcpsniff.proxy.mitm.tap import Tap
    from mcpsniff.proxy.recording import Recording, transcript_path
    from mcpsniff.proxy.say import redirect
except ModuleNotFoundError as error:  # mitmproxy would show a traceback
    lacks = (error.name or "mcpsniff").partition(".")[0]

OPTIONS = (
    ("mcp_dir", str, "", "Folder for captures of MCP. Empty: as mcpsniff has it (MCPSNIFF_DIR, its config file)."),
    ("mcp_output", str, "", "File for the capture of MCP, in the place of a new one in that folder."),
    ("mcp_label", str, "mitmproxy", "Name of the capture of MCP."),
    ("mcp_keep_secrets", bool, False, "Record secrets in captures of MCP as they are, instead of masking them."),
    ("mcp_all", bool, False, "Record every HTTP exchange, not only MCP and the OAuth that belongs to it."),
    ("mcp_transcript", bool, True, "Write a transcript beside the capture of MCP at the end."),
)
WITHOUT_BODIES = "event streams pass as they come, so %s lacks their bodies; store_streamed_bodies=true keeps them"
LOADED = "%d exchange%s loaded, and did not pass: mcpsniff import %s makes a capture of the MCP in such a file"
NOTHING = "no capture is left"
LAST_WORDS = 2.0
"""Seconds that observing hooks get for what came last."""
logger = logging.getLogger("mcpsniff")


class McpCapture:
    """Records from the start of mitmproxy to its end."""

    def __init__(self) -> None:
        self.addons: list[object] = []
        self._options: dict[str, object] = {"no_transcript": True, "quiet": False}
        self._recording = Recording("forward", (), self._options)
        self._tap: Tap | None = None
        self._guest: Guest | None = None
        self._observing: Observing | None = None
        self._is_running = self._has_told_of_bodies = False

    def load(self, loader: Loader) -> None:
        """Declare the options."""
        hooked.options, hooked.say = ctx.options, tell
        for name, kind, default, text in OPTIONS:
            loader.add_option(name, kind, default, text)

    def configure(self, _updated: set[str]) -> None:
        """Listen, before anything can pass; which is kept until it is known where to."""
        if self._tap is None:
            select = Select(Hosts(()), everything=ctx.options.mcp_all)
            self._tap = Tap(self._recording.recorder, select)
            hooked.remark = self._tap.remark
            self._guest = Guest(self._tap, select, GuestEditor(self._tap, _scripts(), tell))
            self.addons.append(self._guest)
            ctx.master.addons.add(self._guest.last)
        if self._is_running:
            self._tell_of_bodies()

    def running(self) -> None:
        """Begin to write."""
        redirect(tell)
        self._is_running = True
        self._tell_of_bodies()
        options = {name.removeprefix("mcp_"): getattr(ctx.options, name) for name, *_ in OPTIONS}
        self._options |= {**options, "no_transcript": not options["transcript"]}
        self._recording.start()
        self._observe()

    def client_connected(self, _client: object) -> None:
        """Let addons observe that came later."""
        self._observe()

    def done(self) -> None:
        """Store what is left, and say where; a capture that nothing is in is removed."""
        if self._guest is not None and ctx.master.addons.get(self._guest.last.name) is self._guest.last:
            ctx.master.addons.remove(self._guest.last)
        if self._tap is None or self._guest is None or not self._is_running:
            return
        redirect(lambda text: tell(text, at_the_end=True))
        self._tap.stop()
        if not self._tap.kept:
            self._options["no_transcript"] = True
        self._recording.finish()
        if self._observing is not None:
            self._observing.finish(LAST_WORDS)
        if self._guest.loaded:
            source = ctx.options.rfile or "FILE"
            tell(LOADED % (self._guest.loaded, "s were" if self._guest.loaded > 1 else " was", source), at_the_end=True)
        path = self._recording.path
        if path is None or not self._recording.is_kept:
            return
        if self._tap.kept:
            tell(f"recorded in {shown(path)}", at_the_end=True)
            if self._recording.transcriber is not None:
                tell(f"a transcript is being written to {shown(transcript_path(path))}", at_the_end=True)
        elif not ctx.options.mcp_output and _remove_if_empty(path):
            tell(NOTHING if self._guest.loaded else f"no MCP came through, and {NOTHING}", at_the_end=True)

    def _observe(self) -> None:
        """Follow the capture if there is an addon that wants to hear of it."""
        path = self._recording.path
        if self._is_running and self._observing is None and path is not None and _scripts().having(OBSERVING):
            self._observing = Observing(path, _scripts(), tell)

    def _tell_of_bodies(self) -> None:
        """Say once what mitmproxy does not keep of what streams, where somebody may count on it."""
        takers = {"-w": ctx.options.save_stream_file, "hardump": ctx.options.hardump}
        takers["the flow view"] = ctx.master.addons.get("view") is not None
        into = " and ".join(name for name, is_there in takers.items() if is_there)
        if into and not ctx.options.store_streamed_bodies and not self._has_told_of_bodies:
            self._has_told_of_bodies = True
            tell(WITHOUT_BODIES % into)


def _scripts() -> "Scripts":
    return Scripts(lambda: ctx.master.addons.chain, tell)


def tell(text: str, *, at_the_end: bool = False) -> None:
    """Let mitmproxy say it, and say it on stderr where mitmproxy does not: mitmdump -q, and mitmproxy after its end."""
    logger.log(ALERT, "mcpsniff: %s", text)
    terminal = ctx.master.addons.get("termlog")
    if at_the_end if terminal is None else terminal.logger.level > ALERT:
        sys.stderr.write(f"mcpsniff: {text}\n")
        sys.stderr.flush()


def _remove_if_empty(path: str) -> bool:
    """Remove a capture that has no more than its first line; return whether it is gone."""
    with suppress(OSError):
        with open(path, "rb") as file:
            file.readline()
            if file.read(1):
                return False
        os.unlink(path)
    return not os.path.exists(path)


if lacks:
    logger.error(
        "mcp_capture.py needs %s in the Python that runs mitmproxy (%s): `pip install mcpsniff` there, "
        "`pipx inject mitmproxy mcpsniff`, or `uv tool install mitmproxy --with mcpsniff`",
        lacks,
        sys.executable,
    )
addons = [] if lacks else [McpCapture()]
