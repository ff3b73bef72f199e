"""Load addons: files whose functions, or the methods of whose objects, are hooks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError
from mcpsniff.hooks.addon import Addon
from mcpsniff.hooks.context import ctx
from mcpsniff.hooks.editor import Interceptor
from mcpsniff.hooks.events import EDITING, OBSERVING
from mcpsniff.hooks.interceptor import AddonInterceptor
from mcpsniff.hooks.options import Options
from mcpsniff.hooks.shipped import resolved


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the files hold."""

    editing: list[Interceptor]
    observers: list[str]
    """Words for the process that follows the capture: ``--addon FILE``, ``--set NAME=VALUE``; empty: none."""


def load(files: Sequence[str], settings: Sequence[str], say: Callable[[str], object]) -> Loaded:
    """Load addons for the process that passes messages on: it has their edit hooks, and tells who observes.

    Raises UsageError, which names file and line: what cannot be loaded, an option that nobody has, or a bad value.
    """
    addons = read(files, settings, say)
    editing: list[Interceptor] = []
    observers: list[str] = []
    for addon in addons:
        if addon.has(EDITING):
            addon.configure(settings)
            editing.append(AddonInterceptor(addon))
        if addon.has(OBSERVING):
            observers += ["--addon", addon.path]
        if not addon.has(EDITING) and not addon.has(OBSERVING):
            say(f"{shown(addon.path)} has no hook that would be called (mcpsniff addons --hooks lists them)")
    if observers:
        observers += [word for setting in settings for word in ("--set", setting)]
    return Loaded(editing, observers)


def read(files: Sequence[str], settings: Sequence[str], say: Callable[[str], object]) -> list[Addon]:
    """Load addons and look whether ``settings`` fit their options, which have their defaults so far.

    Raises UsageError.
    """
    if settings and not files:
        raise UsageError(f"--set {settings[0]} sets an option of an addon, and there is no --addon")
    ctx.options, ctx.say, ctx.captures = Options(), say, []
    addons = [Addon(resolved(file), say) for file in files]
    known = Options()
    for addon in addons:
        for option in addon.options:
            try:
                known.add(option)
            except ValueError as error:
                raise UsageError(f"{shown(addon.path)}: {error}") from None
    known.set(settings)
    return addons
