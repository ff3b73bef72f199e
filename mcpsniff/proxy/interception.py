"""What the options for addons, rules, break points and faults come to; without them nothing of it is loaded."""

import sys
from io import TextIOWrapper

from mcpsniff.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final

    from mcpsniff.hooks.editor import Editor, Interceptor
    from mcpsniff.proxy.breaks.point import BreakPoints
    from mcpsniff.proxy.observer import Observer
    from mcpsniff.proxy.recorder import Recorder

NAMES: "Final" = (
    "addon",
    "set",
    "rules",
    "block",
    "map_tool",
    "set_argument",
    "set_header",
    "respond",
    "fault",
    "fault_seed",
    "fault_from",
    "break",
    "break_timeout",
)
"""The options (`mcpsniff.cli.options.INTERCEPTING`) that ask for something of this."""


class Interception:
    """Edit hooks in line (``editor``, None if nothing edits), and addons that observe in a process of their own."""

    def __init__(
        self, editor: "Editor | None", observers: "Sequence[str]", breaks: "BreakPoints | None" = None
    ) -> None:
        self.editor = editor
        self._breaks = breaks
        self.observers = list(observers)
        """Words for the process that follows the capture: ``--addon FILE``, ``--set NAME=VALUE``."""

    @property
    def desk(self) -> str | None:
        """The path of the socket by which somebody sees what is held at break points; None if nothing can be."""
        return None if self._breaks is None or self._breaks.service is None else self._breaks.service.path

    def called(self, *labels: str) -> None:
        """The session's captures are called so: `mcpsniff attach` finds it by these names."""
        if self._breaks is not None:
            self._breaks.called(labels)

    def let_go(self) -> None:
        """The end begins: what is held at break points passes now, and nothing is held any more."""
        if self._breaks is not None:
            self._breaks.desk.end()

    def observe(self, paths: "Sequence[str | None]", *, stdout_to_stderr: bool = False) -> "Observer | None":
        """Let addons observe the captures at ``paths``, if any of them wants to; see `Observer`."""
        if not self.observers:
            return None
        from mcpsniff.proxy.observer import Observer

        there = [path for path in paths if path is not None]
        return Observer(there, self.observers, stdout_to_stderr=stdout_to_stderr) if there else None

    def begin(self, *recorders: "Recorder", remark_by: str = "mcpsniff") -> None:
        """Traffic begins; what edit hooks have to remark goes into each of the captures."""

        def remark(text: str) -> None:
            for recorder in recorders:
                recorder.mark("comment", None, {"text": text, "by": remark_by})

        if self.editor is not None:
            self.editor.begin(remark)

    def finish(self, say: "Callable[[str], object]") -> None:
        """Traffic has ended: say what there is to be said about rules, faults and break points."""
        if self.editor is not None:
            for sentence in self.editor.end():
                say(sentence)


def let_addons_print(*, quiet: bool) -> None:
    """What edit hooks print appears at once: on standard output, or where that has the address alone on stderr.

    It would be lost otherwise, since these processes end without Python's usual end.
    """
    if quiet:
        sys.stdout = sys.stderr
    elif isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


def _check_utf8(options: "Mapping[str, Any]") -> None:
    """Raise UsageError for an option that cannot be written into a message, nor into the capture."""
    for name in NAMES:
        said = options.get(name)
        for text in said if isinstance(said, list) else [said]:
            if isinstance(text, str) and any("\ud800" <= character <= "\udfff" for character in text):
                raise UsageError(f"--{name.replace('_', '-')} {text} is not UTF-8")


def prepare(options: "Mapping[str, Any]", transport: str, say: "Callable[[str], object]") -> "Interception | None":
    """Load what ``options`` ask for, before anything is begun; None if that is nothing.

    ``transport`` is stdio, http or forward. Raises UsageError: an addon that cannot be imported, a rule that is none.
    """
    if options.get("break_timeout") is not None and not options.get("break"):
        raise UsageError("--break-timeout is for what --break holds")
    if not any(options.get(name) for name in NAMES):
        return None
    _check_utf8(options)
    from mcpsniff.hooks.editor import Editor

    interceptors: list[Interceptor] = []
    if any(options.get(name) for name in ("rules", "block", "map_tool", "set_argument", "set_header", "respond")):
        from mcpsniff.proxy.rules.reading import rules_from

        interceptors += rules_from(options, transport, say)
    observers: list[str] = []
    if options.get("addon") or options.get("set"):
        from mcpsniff.hooks import strays
        from mcpsniff.hooks.loading import load

        strays.tell(say)
        addons = load(options["addon"], options["set"], say)
        interceptors += addons.editing
        observers = addons.observers
    if any(options.get(name) for name in ("fault", "fault_seed", "fault_from")):
        from mcpsniff.proxy.faults.reading import faults_from

        interceptors += faults_from(options, transport, say)
    breaks: BreakPoints | None = None
    if options.get("break"):
        from mcpsniff.proxy.breaks.reading import breaks_from

        breaks = breaks_from(options["break"], options.get("break_timeout"), transport, say)
        interceptors.append(breaks)
    return Interception(Editor(interceptors, say) if interceptors else None, observers, breaks)
