"""Addons of a mitmproxy that belongs to its user, as far as they have hooks of mcpsniff.

mitmproxy loads the files, sets their options, tells them when it runs and when it ends, and reads them again when they
change; here only our hooks are found in them and called.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from mitmproxy.addonmanager import traverse
from mitmproxy.addons.script import Script

from mcpsniff.capture.labels import shown
from mcpsniff.hooks.events import HOOKS, LIFE
from mcpsniff.hooks.faults import described, place

_OURS: Final = [name for name, hook in HOOKS.items() if hook.group != LIFE]


@dataclass(slots=True)
class Version:
    """The hooks of an addon at the moment."""

    hooks: dict[str, list[Callable[..., Any]]]


class StockAddon:
    """An addon of mitmproxy, to `AddonInterceptor` and `Manager` what an `mcpsniff.hooks.addon.Addon` is."""

    def __init__(self, addon: Any, say: Callable[[str], object]) -> None:
        """``say`` is given a sentence about what went wrong."""
        self.addon = addon
        self.path = os.path.abspath(addon.fullpath) if isinstance(addon, Script) else ""
        named = os.path.splitext(os.path.basename(self.path))[0]
        self.name = named or str(getattr(addon, "name", type(addon).__name__.lower()))
        self._say = say
        self._told: set[tuple[str, str]] = set()
        self._parts: list[Any] = []
        self._version = Version({})

    def has(self, group: str) -> bool:
        """True if it has a hook of that group at the moment: `OBSERVING` or `EDITING`."""
        with self.version() as version:
            return any(HOOKS[name].group == group for name in version.hooks)

    @contextmanager
    def version(self) -> Iterator[Version]:
        """The hooks that it has now; mitmproxy may have read its file again."""
        parts: list[Any] = list(traverse([self.addon]))  # type: ignore[no-untyped-call]
        if len(parts) != len(self._parts) or any(
            one is not other for one, other in zip(parts, self._parts, strict=True)
        ):
            found = {name: [call for part in parts if callable(call := getattr(part, name, None))] for name in _OURS}
            self._parts, self._version = parts, Version({name: calls for name, calls in found.items() if calls})
            self._told.clear()
        yield self._version

    def complain(self, hook: str, error: BaseException, what: str = "") -> None:
        """Tell of an exception, once for each place; ``what`` becomes of it."""
        where = place(error, self.path) or shown(self.path or self.name)
        if (hook, where) not in self._told:
            self._told.add((hook, where))
            self._say(f"the addon {shown(self.name)} failed in {hook}: {where}: {described(error)}{what}")

    def complain_of(self, hook: str, text: str) -> None:
        """Tell what is wrong with what a hook has returned, once."""
        if (hook, text) not in self._told:
            self._told.add((hook, text))
            self._say(f"the addon {shown(self.name)}: {text}")

    def begin(self) -> None:
        """Mitmproxy has told it."""

    def end(self) -> list[str]:
        """Mitmproxy tells it."""
        return []

    def tell(self, name: str, *arguments: Any) -> None:
        """See `begin`."""


class Scripts:
    """The addons among those of ``chain``, which is mitmproxy's list, that have hooks of ours."""

    def __init__(self, chain: Callable[[], Sequence[Any]], say: Callable[[str], object]) -> None:
        self._chain = chain
        self._say = say
        self._known: dict[int, StockAddon] = {}

    def having(self, group: str) -> list[StockAddon]:
        """Return those that have hooks of a group now, in their order."""
        known = self._known
        self._known = {}
        for addon in _tops(self._chain()):
            found = known.get(id(addon))
            if found is None or found.addon is not addon:
                found = StockAddon(addon, self._say)
            self._known[id(addon)] = found
        return [addon for addon in self._known.values() if addon.has(group)]


def _tops(chain: Sequence[Any]) -> Iterator[Any]:
    """Scripts, wherever they are, and other addons of the chain."""
    for addon in chain:
        scripts = [one for one in getattr(addon, "addons", ()) if isinstance(one, Script)]
        yield from scripts or [addon]
