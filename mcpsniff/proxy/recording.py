"""One run's recording, from the choice of the file to the transcript beside it.

The recorder takes notes from the first moment; the file is opened, and all that writing it needs is loaded, while the
server is already starting.
"""

import os
import sys

from mcpsniff import __version__
from mcpsniff.errors import McpsniffError
from mcpsniff.proxy.recorder import Recorder
from mcpsniff.proxy.say import say
from mcpsniff.proxy.storing import Storing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from mcpsniff.proxy.mask import Masker
    from mcpsniff.proxy.storing import Writer

ADDRESSES: "Final" = frozenset({"upstream", "listen"})
"""Facts of a capture that are URLs, with what their queries may hold."""
LARGEST: "Final" = 128 << 20
"""Bytes of a capture of a relay beyond which no transcript is written unasked."""
FIRST_LINE: "Final" = 0.5
"""Seconds that a relay, before it says where the capture is, waits for that to be one."""
FLUSH: "Final" = 2.0
"""Seconds that the end of a session waits for a slow disk."""


class Recording:
    """A capture in the making. Whatever goes wrong with it is said on stderr once, and costs nothing else."""

    def __init__(self, transport: str, argv: "Sequence[str]", options: "Mapping[str, Any]") -> None:
        self.recorder = Recorder()
        self.path: str | None = None
        """Where the capture is; None if there is none."""
        self.label = ""
        """The name of the server in it."""
        self.is_kept = False
        """True once it is finished, if it is still there."""
        self.transcriber: int | None = None
        """The process that writes the transcript, once it was started."""
        self.untold = ""
        """Why there is no transcript, for who is to be told."""
        self._argv = list(argv)
        self._options = options
        self._transport = transport
        self._storing: Storing | None = None

    def start(self, *, announce: bool = True, **facts: object) -> None:
        """Open the capture and start to store; ``facts`` go into the header.

        Without ``announce``, or with the option for quiet, where the capture goes is no topic, and neither is what is
        odd about that place. That there is no capture is said in any case.
        """
        try:
            self._open(announce and not self._options["quiet"], facts)
        except Exception as error:  # noqa: BLE001 - CaptureError, no means, or a bug: none is worth the session
            self.recorder.discard()
            why = str(error) if isinstance(error, McpsniffError) else f"cannot record: {error!r}"
            say(f"{why}; the session goes on without a capture" if announce else why)

    def _open(self, loud: bool, facts: "dict[str, object]") -> None:
        from mcpsniff.capture.labels import shown
        from mcpsniff.capture.store import default_label, new_capture_file, safe_label

        options = self._options
        label = safe_label(options["label"]) if options["label"] else default_label(self._argv)
        self.label = label
        descriptor, path = new_capture_file(
            options["dir"], options["output"], label, self._argv, warn=say if loud else _silent
        )
        header = {"label": label, "cwd": _folder(), **facts}
        storing = Storing(
            self.recorder,
            lambda: self._writer(descriptor, path, header),
            say if "pid" in facts or self._transport != "stdio" else _of_none,
            open_masker=None if self._transport == "stdio" or options["keep_secrets"] else self._masker,
        )
        try:
            storing.start()
        except BaseException:  # no thread: nobody will ever write into the file
            os.close(descriptor)
            os.unlink(path)
            raise
        self._storing, self.path = storing, path
        if self._transport != "stdio":  # there a client waits for its server
            storing.wait_for_beginning(FIRST_LINE)
        if loud:
            say(f"recording to {shown(path)}")

    def finish(self) -> None:
        """Store what is left, and have the transcript written, by a process that we do not wait for."""
        if self._storing is None or self.path is None:
            return
        lost = self._storing.finish(FLUSH)
        if lost:
            say(f"{lost} bytes of this session are not in the capture")
        if not self._is_there():
            from mcpsniff.capture.labels import shown

            say(f"the capture {shown(self.path)} was removed or moved while it was written")
            return
        self.is_kept = True
        if not self._options["no_transcript"]:
            self._transcribe()

    def _transcribe(self) -> None:
        """Have the transcript written, unless that would take minutes and as much room again."""
        assert self.path is not None
        size = self._size()
        if size > LARGEST:
            self.untold = f"no transcript of {size:,} bytes: mcpsniff show --format markdown -o FILE writes one"
        else:
            self.transcriber = write_transcript(self.path)

    def _size(self) -> int:
        """Return how many bytes the capture has, in all its parts."""
        assert self.path is not None
        if "rotate_size" not in self._options:
            return 0
        from contextlib import suppress

        from mcpsniff.capture.reader import part_numbers
        from mcpsniff.capture.store import part_path

        size = 0
        for number in part_numbers(self.path):
            with suppress(OSError):
                size += os.path.getsize(part_path(self.path, number))
        return size

    def _is_there(self) -> bool:
        """Say whether there is a capture: its first part, or a later one where that went because of the limit."""
        assert self.path is not None
        if os.path.exists(self.path):
            return True
        from mcpsniff.capture.reader import part_numbers

        return bool(part_numbers(self.path))

    def _masker(self) -> "Masker":
        """Make what keeps secrets out of a capture of HTTP; runs in the storing thread."""
        from mcpsniff.capture.salt import store_salt
        from mcpsniff.proxy.mask import Masker

        return Masker(lambda: store_salt(self._options["dir"], say))

    def _writer(self, descriptor: int, path: str, facts: "dict[str, Any]") -> "Writer":
        """Make the writer; runs in the storing thread, which loads orjson and the rest."""
        from mcpsniff.capture.ceiling import Ceiling
        from mcpsniff.capture.writer import CaptureWriter, new_run_id, rfc3339
        from mcpsniff.proxy.mask_argv import mask_argv

        started = self.recorder.started_ns
        if not self._options["keep_secrets"]:
            facts = {name: mask_argv([fact])[0] if name in ADDRESSES else fact for name, fact in facts.items()}
        header = {
            "run": new_run_id(started // 1_000_000),
            "started": rfc3339(started),
            "transport": self._transport,
            **({"argv": self._argv if self._options["keep_secrets"] else mask_argv(self._argv)} if self._argv else {}),
            "by": f"mcpsniff {__version__}",
            **facts,
        }
        size, age, limit = (self._options.get(name) for name in ("rotate_size", "rotate_every", "max_size"))
        return CaptureWriter(
            descriptor,
            path,
            header,
            part_limit=None if size is None else int(size),
            part_age=None if age is None else int(age * 1_000_000),
            ceiling=None if limit is None else Ceiling(path, int(limit), lambda: self._say_limit(int(limit))),
        )

    def _say_limit(self, limit: int) -> None:
        say(f"the capture has reached its limit of {limit:,} bytes (--max-size): from now on its oldest parts go")


def transcript_path(capture: str) -> str:
    """Return where the Markdown transcript of ``capture`` is written."""
    from mcpsniff.capture.store import SUFFIX

    return capture.removesuffix(SUFFIX) + ".md"


def write_transcript(capture: str) -> int | None:
    """Start a process of its own that writes the Markdown transcript beside ``capture``; return its id, if it began.

    It shares nothing with us: a client that waits for the end of our streams must not wait for it.
    """
    target = transcript_path(capture)
    command, environment = ourselves("mcpsniff", "show", capture, "--format", "markdown", "-o", target)
    streams = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    try:
        return os.posix_spawnp(
            "nice", ["nice", "-n", "10", *command], environment, file_actions=streams, setsid=True, setsigmask=()
        )
    except (OSError, NotImplementedError) as error:
        say(f"no transcript: {error}")
    return None


def ourselves(module: str, *words: str) -> "tuple[list[str], dict[str, str]]":
    """Return the command line and the environment of a process that runs ``module`` of this package."""
    environment = dict(os.environ)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if os.path.basename(root) not in {"site-packages", "dist-packages"}:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH")]))
    # -P: the working folder is no place to import from.
    return [sys.executable, "-P", "-m", module, *words], environment


def _silent(_text: str) -> None:
    """Drop a warning."""


def _of_none(text: str) -> None:
    """Say something where the server could not be started: no session goes on."""
    say(text.removesuffix("; the session goes on"))


def _folder() -> str | None:
    """Return the working folder, if it still exists."""
    try:
        return os.getcwd()
    except OSError:
        return None
