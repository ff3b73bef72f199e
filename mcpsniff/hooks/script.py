"""Run the file of an addon as a module of its own, and what it imports from its folder beside it.

A module beside the file is found after the standard library and before installed packages. Addons from several folders
may each have a ``helpers.py``: each gets its own.
"""

import errno
import importlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from itertools import count
from threading import RLock
from types import ModuleType
from typing import Any, Final

_lock: Final = RLock()
_numbers: Final = count(1)
_beside: Final[dict[str, dict[str, ModuleType]]] = {}
"""By folder: the modules that addons have imported from there."""
_PACKAGES: Final = ("site-packages", "dist-packages")
_OURS: Final = __name__.partition(".")[0]

type Signature = tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class Script:
    """A file that was run."""

    path: str
    module: ModuleType
    targets: list[Any] = field(default_factory=list)
    """The module, and the objects of its ``addons``: what hooks are looked for on."""
    files: tuple[str, ...] = ()
    """The file, and those beside it that it was made of."""


def run_file(path: str, *, fresh: bool = False) -> Script:
    """Run the file at ``path``, an absolute path. ``fresh``: also what it imports from its folder is read anew.

    Raises whatever goes wrong.
    """
    with open(path, "rb", opener=_opened) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        code = compile(file.read(), path, "exec", dont_inherit=True)
    stem = os.path.splitext(os.path.basename(path))[0]
    module = ModuleType(f"__mcpsniff_addon_{next(_numbers)}_{stem}__")
    module.__file__ = path
    sys.modules[module.__name__] = module
    folder = os.path.dirname(path)
    try:
        with _importing(folder, fresh=fresh):
            exec(code, module.__dict__)  # noqa: S102 - the user's own file, named on the command line
            targets = list(_targets(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return Script(path, module, targets, (path, *_files(folder)))


def forget(script: Script) -> None:
    """Another version of the file has taken over."""
    sys.modules.pop(script.module.__name__, None)


def signature(files: Sequence[str]) -> Signature | None:
    """What changes when one of the files does; None while one of them is not there, or is no regular file."""
    try:
        found = [os.stat(file) for file in files]
    except OSError:
        return None
    if not all(stat.S_ISREG(one.st_mode) for one in found):
        return None
    return tuple([(one.st_mtime_ns, one.st_size, one.st_ino) for one in found])


def _opened(path: str, flags: int) -> int:
    """Open a file without waiting for anybody who writes to it, as a FIFO does."""
    return os.open(path, flags | os.O_NONBLOCK)


def _targets(target: Any) -> Iterator[Any]:
    """``target`` and the objects of its ``addons``, and theirs; a class among them is called for its object."""
    yield target
    inner = getattr(target, "addons", None)
    for one in inner if isinstance(inner, list | tuple) else ():
        yield from _targets(one() if isinstance(one, type) else one)


def _files(folder: str) -> list[str]:
    return sorted({str(module.__file__) for module in _beside.get(folder, {}).values()})


@contextmanager
def _importing(folder: str, *, fresh: bool) -> Iterator[None]:
    """Let modules in ``folder`` be imported, and keep them apart from those of other folders."""
    with _lock:
        is_ours = folder in sys.path and folder not in _beside
        if is_ours:  # somebody else's arrangement
            yield
            return
        own = _beside.setdefault(folder, {})
        others = _taken_out({name for at, names in _beside.items() if at != folder for name in names})
        mine = {} if fresh else dict(own)
        if fresh:
            _taken_out(set(own))
        sys.modules.update(mine)
        before = set(sys.modules)
        with _path(folder):
            try:
                yield
            except BaseException:
                _taken_out(_new(folder, before))
                raise
            else:
                own |= {name: sys.modules[name] for name in _new(folder, before)}
            finally:
                clashing = [name for name in own if name in others or _is_elsewhere(name, folder)]
                _taken_out(set(clashing))
                for name, module in {**others, **own}.items():
                    if name not in clashing or name in others:
                        sys.modules.setdefault(name, module)


def _new(folder: str, before: set[str]) -> set[str]:
    """Names of the modules that were imported from ``folder``."""
    return {
        name
        for name, module in list(sys.modules.items())
        if name not in before
        and _is_in(getattr(module, "__file__", None) or "", folder)
        and name.split(".")[0] != _OURS
    }


def _is_in(file: str, folder: str) -> bool:
    """True for a module of the addon's folder, but not for a package installed in an environment there."""
    return file.startswith(folder + os.sep) and not any(part in _PACKAGES for part in file.split(os.sep))


def _taken_out(names: set[str]) -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in names if name in sys.modules}


@contextmanager
def _path(folder: str) -> Iterator[None]:
    """Let ``folder`` stand before installed packages for now, and at the end for what is imported later."""
    while folder in sys.path:
        sys.path.remove(folder)
    place = next((at for at, one in enumerate(sys.path) if one.endswith(_PACKAGES)), len(sys.path))
    sys.path.insert(place, folder)
    importlib.invalidate_caches()
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = bytecode
        sys.path.remove(folder)
        sys.path.append(folder)


def _is_elsewhere(name: str, folder: str) -> bool:
    """True if others mean something else by this name."""
    paths = [one for one in sys.path if one != folder]
    try:
        return PathFinder.find_spec(name.partition(".")[0], paths) is not None
    except (ImportError, ValueError):
        return True
