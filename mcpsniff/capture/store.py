"""Where captures live: the folder, the names of the files in it, and the one way to create one.

Recorder and reader must agree on the folder, although a server that an MCP client starts sees almost none of the
user's environment (SDK clients pass on HOME, LOGNAME, PATH, SHELL, TERM and USER only). So the user's config file
comes before the platform's default. Listing and finding captures is `mcpsniff.capture.catalog`'s work.

Importing this module is cheap; what only some paths need (tomllib, platformdirs) is loaded there.
"""

import errno
import fcntl
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from mcpsniff.capture.labels import default_label, safe_label, shown
from mcpsniff.errors import CaptureError

__all__ = [
    "SUFFIX",
    "capture_folder",
    "config_file",
    "default_label",
    "is_being_written",
    "new_capture_file",
    "part_path",
    "safe_label",
    "writer_state",
]

SUFFIX: Final = ".mcpcap"
ENVIRONMENT: Final = "MCPSNIFF_DIR"
STATE: Final = "XDG_STATE_HOME"
"""What moves the platform's state folder (XDG Base Directory Specification)."""
_APP: Final = "mcpsniff"
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 10_000

type Warn = Callable[[str], object]
"""Is given one plain sentence about something odd that does not stop the work."""


def _silent(_text: str) -> None:
    """Drop a warning."""


def capture_folder(option: str | None = None, warn: Warn = _silent) -> str:
    """Return the absolute path of the folder for captures: it need not exist.

    The first that is set: ``option`` (``--dir``), the environment's ``MCPSNIFF_DIR``, ``dir`` in the config file, the
    platform's state folder. A config file that cannot be read is said through ``warn`` and passed over.
    """
    chosen = option or os.environ.get(ENVIRONMENT)
    if chosen:
        return _absolute(chosen)
    return _configured_folder(warn) or _state_folder()


def bare_folder(warn: Warn = _silent) -> str:
    """Return the folder that a process without ``MCPSNIFF_DIR`` and ``XDG_*`` uses: that of an MCP client's servers."""
    return _configured_folder(warn) or _bare("state")


def config_file() -> str:
    """Return the path of the user's config file: ``config.toml`` in the platform's config folder.

    ``XDG_CONFIG_HOME`` counts where it leads to such a file; else the file is the one that a process without that
    variable finds too.
    """
    import platformdirs

    path = os.path.join(platformdirs.user_config_dir(_APP, appauthor=False), "config.toml")
    bare = os.path.join(_bare("config"), "config.toml")
    return path if os.path.exists(path) or not os.path.exists(bare) else bare


def part_path(path: str, part: int) -> str:
    """Return where part number ``part`` of the capture at ``path`` (its first part) lies.

    ``NAME.mcpcap`` is followed by ``NAME.0002.mcpcap``; a file of another name gets the number at its end.
    """
    if part == 1:
        return path
    root = path.removesuffix(SUFFIX)
    return f"{root}.{part:04}{path[len(root) :]}"


def split_part(path: str) -> tuple[str, int]:
    """Return the path of a capture's first part and the number of the part that ``path`` names; undoes `part_path`."""
    suffix = SUFFIX if path.endswith(SUFFIX) else ""
    found = re.fullmatch(r"(.+)\.([0-9]{4,9})", path.removesuffix(SUFFIX), re.DOTALL)
    if found and int(found[2]) > 1 and part_path(found[1] + suffix, int(found[2])) == path:
        return found[1] + suffix, int(found[2])
    return path, 1


def new_capture_file(
    directory: str | None,
    output: str | None,
    label: str | None,
    argv: Sequence[str],
    *,
    warn: Warn = _silent,
    now: float | None = None,
) -> tuple[int, str]:
    """Create a capture file and return (descriptor, absolute path); the descriptor appends and is not inherited.

    ``output`` (``-o``) names the file; without it the file is ``<label>-<UTC time>-<pid>.mcpcap`` in the folder that
    ``directory`` (``--dir``) leads to, see `capture_folder`. The file is new, mode 0600 at most from its first moment,
    and no link is followed. A name that is taken is never opened: the file gets the next free ``-2``, ``-3`` … at its
    end, said through ``warn`` where the user chose the name. Missing folders are created 0700; an existing one that
    lets others in is said through ``warn``. ``now`` is seconds since the epoch (the present when None).

    Raises CaptureError when no file can be created there, before any warning about the place.
    """
    if output:
        path = _absolute(output)
        _refuse_special(path)
    else:
        name = safe_label(label) if label else default_label(argv)
        path = os.path.join(capture_folder(directory, warn), f"{name}-{_timestamp(now)}-{os.getpid()}{SUFFIX}")
    folder = os.path.dirname(path)
    try:
        mode = _prepare_folder(folder)
        descriptor, got = _create(path)
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot create the capture {shown(path)}: {reason(error)}") from None
    _claim(descriptor)
    if mode is not None:
        _judge_folder(folder, mode, warn, private=not output)
    if output and got != path:
        warn(f"{shown(path)} exists and is kept; this capture goes to {shown(got)}")
    return descriptor, got


def new_part_file(path: str, part: int) -> tuple[int, str]:
    """Create part number ``part`` (2 and later) of the capture at ``path`` as `new_capture_file` creates the first.

    Raises CaptureError when it cannot be created, or is there already.
    """
    target = part_path(path, part)
    try:
        descriptor = os.open(target, _FLAGS, 0o600)
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot create the capture part {shown(target)}: {reason(error)}") from None
    _claim(descriptor)
    return descriptor, target


def is_being_written(path: str) -> bool:
    """Return whether a recorder holds the capture file at ``path``; False where the system cannot tell."""
    return bool(writer_state(path))


def writer_state(path: str) -> bool | None:
    """Return whether a recorder holds the capture file at ``path``: however it ends, the system lets go of it.

    None where the system cannot tell: no such file, or a file system without locks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def _claim(descriptor: int) -> None:
    """Let others see that this file is being written, for as long as the descriptor is open."""
    for _ in range(5):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.001)  # somebody is looking at this very moment
        except OSError:
            return
        else:
            return


def reason(error: OSError | ValueError) -> str:
    """Return why a system call failed, in the system's words without its number."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _create(path: str) -> tuple[int, str]:
    """Open a new file at ``path``, or at the first free name beside it."""
    root = path.removesuffix(SUFFIX)
    suffix = path[len(root) :]
    for number in range(1, _TRIES):
        candidate = path if number == 1 else f"{root}-{number}{suffix}"
        try:
            return os.open(candidate, _FLAGS, 0o600), candidate
        except FileExistsError:
            continue
    raise FileExistsError(f"{_TRIES} captures of this name are there already")


def _refuse_special(path: str) -> None:
    """Refuse an output that is a folder, device or pipe, where a free name beside it is not what was meant."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(mode):
        raise CaptureError(f"cannot write the capture to {shown(path)}: it is a folder (use --dir for folders)")
    if not stat.S_ISREG(mode):
        raise CaptureError(f"cannot write the capture to {shown(path)}: it is not a regular file")


def _prepare_folder(folder: str) -> int | None:
    """Create ``folder`` and its parents with mode 0700, or return the permissions of the existing one."""
    if make_private(folder):
        return None
    mode = os.stat(folder).st_mode
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return stat.S_IMODE(mode)


def _judge_folder(folder: str, mode: int, warn: Warn, *, private: bool) -> None:
    """Say who may enter a folder that we found.

    ``private`` is for a folder of captures. Any other folder (of ``-o``) may be readable, as the file itself is not;
    it is only odd when others may replace the file.
    """
    if private and mode & 0o077:
        warn(f"the capture folder {shown(folder)} is open to others (mode {mode:04o}): chmod 700 it")
    elif mode & 0o022 and not mode & stat.S_ISVTX:
        warn(f"others can replace files in {shown(folder)} (mode {mode:04o}), the capture too")


def make_private(folder: str) -> bool:
    """Create ``folder`` with mode 0700, missing parents too; return False if it was there."""
    try:
        os.mkdir(folder, 0o700)
    except FileNotFoundError:
        parent = os.path.dirname(folder)
        if parent == folder:
            raise
        make_private(parent)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return False
    return True


def _timestamp(now: float | None) -> str:
    milliseconds = time.time_ns() // 1_000_000 if now is None else int(now * 1000)
    seconds, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}.{rest:03}Z"


def _absolute(path: str) -> str:
    """Make ``path`` absolute; ``~`` counts, since config files and client configurations are read by no shell."""
    return os.path.abspath(os.path.expanduser(path) if path == "~" or path.startswith("~/") else path)


def _configured_folder(warn: Warn) -> str | None:
    """Return ``dir`` of the config file as an absolute path (a relative one starts at that file), or None."""
    path = config_file()
    try:
        with open(path, "rb") as file:
            import tomllib

            value = tomllib.load(file).get("dir")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:  # ValueError: not TOML, or not UTF-8
        why = reason(error) if isinstance(error, OSError | ValueError) else "it is nested too deep"
        warn(f"the config file {shown(path)} is passed over: {shown(why)}")
        return None
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value:
        warn(f"`dir` in the config file {shown(path)} is passed over: it is not a path")
        return None
    return _absolute(value if value.startswith("~") else os.path.join(os.path.dirname(path), value))


def _state_folder() -> str:
    import platformdirs

    return platformdirs.user_state_dir(_APP, appauthor=False)


def _bare(kind: str) -> str:
    """Return the platform's config or state folder as it is without ``XDG_*`` in the environment."""
    base = (
        "~/Library/Application Support"
        if sys.platform == "darwin"
        else f"~/.{'local/state' if kind == 'state' else kind}"
    )
    return os.path.join(os.path.expanduser(base), _APP)
