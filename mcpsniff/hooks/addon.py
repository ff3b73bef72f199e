"""An addon: a file, the hooks in it, and the versions of it that follow when the file changes while it is in use."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any, Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError
from mcpsniff.hooks.context import ctx
from mcpsniff.hooks.events import EDITING, HOOKS, OBSERVING, Load
from mcpsniff.hooks.faults import broken, described, place, shortened
from mcpsniff.hooks.options import Loader, Options
from mcpsniff.hooks.script import Script, Signature, forget, run_file, signature
from mcpsniff.hooks.waiting import settled

REST: Final = 0.1
"""Seconds for which a file must have been left alone before it is read again: it may be half written."""

LOOK: Final = 0.02
"""Seconds between two looks at the file while it is in use."""
WAIT: Final = 0.05
"""Seconds for which a message waits for a new version; after that it has the old one."""
GRACE: Final = 2.0
"""Seconds that ``running`` and ``done`` may take."""
COMPLAINTS: Final = 20
"""Different failures of one version that are told of."""

type Call = Callable[..., Any]


@dataclass(slots=True)
class Version:
    """What one reading of the file has given."""

    script: Script
    options: Options
    hooks: dict[str, list[Call]]
    """By name, what is to be called."""
    calls: int = 0
    """Calls that are going on."""
    is_over: bool = False
    """True once another version has taken over."""

    def has(self, group: str) -> bool:
        """True if it has a hook of that group."""
        return any(HOOKS[name].group == group for name in self.hooks)


class _Use:
    """A call that is going on. A class of its own, since it is on the way of every message."""

    __slots__ = ("_addon", "_version")

    def __init__(self, addon: "Addon", version: Version) -> None:
        self._addon, self._version = addon, version

    def __enter__(self) -> Version:
        return self._version

    def __exit__(self, *failure: object) -> None:
        self._addon.leave(self._version)


class Addon:
    """The addon in the file at ``path``. Raises UsageError, which names file and line, if it cannot be loaded."""

    def __init__(self, path: str, say: Callable[[str], object]) -> None:
        self.path = os.path.abspath(path)
        self.name = os.path.splitext(os.path.basename(self.path))[0]
        self._say = say
        self._lock = Lock()
        self._reload = Lock()
        self._settings: list[str] = []
        self._begun = False
        self._told: set[tuple[str, str]] = set()
        self._failures = 0
        self._version = self._read(fresh=False)
        self._look_at = 0.0
        self._seen: Signature | None = signature(self._version.script.files)

    @property
    def options(self) -> Options:
        """Those that it has declared."""
        return self._version.options

    @property
    def hooks(self) -> list[str]:
        """The names of those that it has."""
        return list(self._version.hooks)

    def has(self, group: str) -> bool:
        """True if it has a hook of that group: `OBSERVING` or `EDITING`."""
        return self._version.has(group)

    def configure(self, settings: Sequence[str]) -> None:
        """Set its options, and tell it. Raises UsageError: an unknown name, a bad value, the addon's own refusal."""
        self._settings = list(settings)
        self._configure(self._version)

    def observe_apart(self) -> None:
        """Another process has it, too, if it edits, and says the same of it: what this one says tells that apart."""
        say = self._say
        if self.has(EDITING):
            self._say = lambda text: say(f"{text} (where it observes)")

    def begin(self) -> None:
        """Traffic begins. With several captures it does so for each; the addon hears of it once."""
        if not self._begun:
            self._begun = True
            with self.version() as version:
                self._tell_in_time(version, "running")

    def end(self) -> list[str]:
        """Traffic has ended; what is to be said."""
        if self._begun:
            self._begun = False
            with self.version() as version:
                self._tell_in_time(version, "done")
        if self._failures <= len(self._told):
            return []
        return [f"the addon {shown(self.name)} failed {self._failures} times in all"]

    def tell(self, name: str, *arguments: Any) -> None:
        """Call a hook whose result does not matter."""
        with self.version() as version:
            self._tell(version, name, *arguments)

    def _tell_in_time(self, version: Version, name: str) -> None:
        """Call ``running`` or ``done``, which is not waited for any longer than `GRACE`."""
        if name not in version.hooks:
            return
        thread = Thread(target=self._tell, args=(version, name), name=f"{self.name} {name}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads
            self._tell(version, name)
            return
        thread.join(GRACE)
        if thread.is_alive():
            self._say(f"the addon {shown(self.name)} is still in {name} after {GRACE:g} s, and is not waited for")

    def version(self) -> "_Use":
        """The version in force, which does not end before the block of this."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK
            if signature(self._version.script.files) != self._seen:
                self._look()
        with self._lock:
            version = self._version
            version.calls += 1
        return _Use(self, version)

    def leave(self, version: Version) -> None:
        """A call of that version has ended."""
        with self._lock:
            version.calls -= 1
            is_last = version.is_over and not version.calls
        if is_last:
            self._bury(version)

    def complain(self, hook: str, error: BaseException, what: str = "") -> None:
        """Tell of an exception, once for each place; ``what`` becomes of it."""
        where = place(error, self.path) or shown(self.path)
        if self._is_news((hook, where)):
            self._say(f"the addon {shown(self.name)} failed in {hook}: {where}: {described(error)}{what}")

    def complain_of(self, hook: str, text: str) -> None:
        """Tell what is wrong with what a hook has returned, once."""
        text = shortened(text)
        if self._is_news((hook, text)):
            self._say(f"the addon {shown(self.name)}: {text}")

    def _is_news(self, complaint: tuple[str, str]) -> bool:
        """Count a failure; True if it was not told of before, and there were not too many."""
        with self._lock:
            self._failures += 1
            if complaint in self._told or len(self._told) >= COMPLAINTS:
                return False
            self._told.add(complaint)
            return True

    # -- versions --------------------------------------------------------------------------------------------------

    def _read(self, *, fresh: bool) -> Version:
        """Read the file and let it declare its options. Raises UsageError."""
        options = Options()
        script = None
        try:
            script = run_file(self.path, fresh=fresh)
            hooks = {name: [*_calls(script, name)] for name in HOOKS}
            version = Version(script, options, {name: calls for name, calls in hooks.items() if calls})
            for call in version.hooks.get("load", ()):
                settled(call(*Load(Loader(options)).arguments()))
        except BaseException as error:
            if script is not None:
                forget(script)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise UsageError(f"cannot load the addon {broken(error, self.path)}") from None
        return version

    def _configure(self, version: Version) -> None:
        updated = version.options.set([word for word in self._settings if word.partition("=")[0] in version.options])
        ctx.options.take(version.options)
        updated |= {option.name for option in version.options}
        for call in version.hooks.get("configure", ()):
            try:
                settled(call(updated))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001
                raise UsageError(f"the addon refuses its options: {broken(error, self.path)}") from None

    def _look(self) -> None:
        """The file has changed: take its new version, unless that is broken.

        It is read in a thread of its own, for which is waited a moment only: what it imports may take its time.
        """
        if not self._reload.acquire(blocking=False):
            return
        thread: Thread | None = None
        try:
            now = signature(self._version.script.files)
            if now is None or now == self._seen:
                return
            if any(abs(time.time() - mtime / 1e9) < REST for mtime, *_ in now):
                return
            reading = Thread(target=self._renew, args=(now,), name=f"{self.name} is read again", daemon=True)
            with suppress(RuntimeError):  # no more threads; perhaps next time
                reading.start()
                thread = reading
        finally:
            if thread is None:
                self._reload.release()
        if thread is not None:
            thread.join(WAIT)

    def _renew(self, now: Signature) -> None:
        """Read the file anew; the lock of `_look` is held until then."""
        try:
            old, self._seen = self._version, now
            try:
                version = self._read(fresh=True)
                if not version.hooks:
                    raise UsageError(f"{shown(self.path)} has no hook any more")
                self._configure(version)
            except (UsageError, KeyboardInterrupt) as error:
                self._say(f"{str(error) or type(error).__name__}; its earlier version goes on")
                return
            self._take(old, version, now)
        finally:
            self._reload.release()

    def _take(self, old: Version, new: Version, seen: Signature) -> None:
        self._told.clear()
        if new.script.files != old.script.files:
            self._seen = seen[:1] + (signature(new.script.files) or ())[1:]
        if self._begun:
            self._tell_in_time(new, "running")
        with self._lock:
            self._version, old.is_over = new, True
            is_last = not old.calls
        if is_last:
            self._bury(old)
        for group, what in ((EDITING, "changes messages"), (OBSERVING, "observes")):
            if new.has(group) and not old.has(group):
                self._say(f"the addon {shown(self.name)} now {what}, which is for the next start")
        self._say(f"read {shown(self.path)} again")

    def _bury(self, version: Version) -> None:
        """The last call of an old version has ended."""
        self._tell_in_time(version, "done")
        forget(version.script)

    def _tell(self, version: Version, name: str, *arguments: Any) -> None:
        for call in version.hooks.get(name, ()):
            try:
                settled(call(*arguments))
            except BaseException as error:  # noqa: BLE001 - nothing that an addon does may end us
                self.complain(name, error)


def _calls(script: Script, name: str) -> Iterator[Call]:
    """The functions of that name on the module and its objects."""
    for target in script.targets:
        found = getattr(target, name, None)
        if callable(found):
            yield found
