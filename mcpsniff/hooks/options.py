"""Options of addons: declared with a name, a type and a default, set with ``--set NAME=VALUE``."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from mcpsniff.errors import UsageError

_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


@dataclass(slots=True)
class AddonOption:
    """One option, as an addon has declared it."""

    name: str
    kind: type
    """bool, int, float or str."""
    is_optional: bool
    """True if it may be None, which an empty value means."""
    is_list: bool
    default: Any
    help: str
    choices: Sequence[str] | None = None

    @property
    def kind_name(self) -> str:
        """Its type in words, such as ``list of text``."""
        name = {bool: "true or false", int: "integer", float: "number", str: "text"}[self.kind]
        return f"list of {name}" if self.is_list else name


class Options:
    """The options of all addons of this process: ``options.name`` is the value."""

    def __init__(self) -> None:
        self._known: dict[str, AddonOption] = {}
        self._values: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """The value of an option. Raises AttributeError, which names the nearest."""
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"no addon has declared an option {name}{_near(name, self._known)}") from None

    def __iter__(self) -> Iterator[AddonOption]:
        """All that are known, in the order in which they were declared."""
        return iter(self._known.values())

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def add(self, option: AddonOption) -> None:
        """Add an option with its default. Raises ValueError if the name has another type already."""
        known = self._known.get(option.name)
        if known is not None and (known.kind, known.is_list) != (option.kind, option.is_list):
            raise ValueError(f"the option {option.name} is declared twice, as {known.kind_name} and {option.kind_name}")
        self._known[option.name] = option
        self._values[option.name] = option.default

    def set(self, settings: Sequence[str]) -> set[str]:
        """Set what ``NAME=VALUE`` words say and return the names. Raises UsageError: an unknown name, a bad value."""
        names: set[str] = set()
        for word in settings:
            name, equals, text = word.partition("=")
            option = self._known.get(name)
            if option is None:
                raise UsageError(_unknown(name, self._known))
            value = _value(option, text if equals else None)
            if option.is_list:
                value = [*self._values[name], *value] if name in names else value
            self._values[name] = value
            names.add(name)
        return names

    def take(self, other: "Options") -> None:
        """Let the options of ``other`` be known here, with their values."""
        self._known.update(other._known)
        self._values.update(other._values)


class Loader:
    """What ``load(loader)`` of an addon is given."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def add_option(
        self,
        name: str,
        typespec: Any,
        default: Any,
        help: str = "",  # noqa: A002 - the name that mitmproxy has
        choices: Sequence[str] | None = None,
    ) -> None:
        """Declare an option.

        ``typespec`` is bool, int, float or str, one of those or None (``int | None``), or ``Sequence[str]``. Raises
        TypeError for another type, or a default that does not fit it; ValueError if the name has another type already.
        """
        kind, is_optional, is_list = _kind(name, typespec)
        values = default if is_list and isinstance(default, Sequence) and not isinstance(default, str) else [default]
        if not all((is_optional and value is None) or _fits(value, kind) for value in values):
            raise TypeError(f"the default {default!r} of the option {name} is no {kind.__name__}")
        value = list(values) if is_list else default
        self._options.add(AddonOption(name, kind, is_optional, is_list, value, help, choices))


def _kind(name: str, typespec: Any) -> tuple[type, bool, bool]:
    """The plain type that ``typespec`` means, whether it may be None, and whether there may be several."""
    is_optional = is_list = False
    if get_origin(typespec) in (Union, UnionType):
        inner = [one for one in get_args(typespec) if one is not NoneType]
        is_optional = len(inner) < len(get_args(typespec))
        typespec = inner[0] if len(inner) == 1 else None
    if isinstance(get_origin(typespec), type) and issubclass(get_origin(typespec) or object, Sequence):
        is_list = True
        typespec = get_args(typespec)[0]
    if typespec not in (bool, int, float, str):
        raise TypeError(f"an option is bool, int, float, str, one of those or None, or Sequence[str]; {name} is not")
    return typespec, is_optional, is_list


def _fits(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _value(option: AddonOption, text: str | None) -> Any:
    """What a word says. Raises UsageError."""
    if text is None:
        if option.kind is bool and not option.is_list:
            return True
        raise UsageError(f"--set {option.name} needs a value: {option.name}={option.kind_name}")
    if option.is_list and not text:
        return []
    if option.is_optional and not text:
        return None
    if option.choices is not None and text not in option.choices:
        raise UsageError(f"--set {option.name} is one of {', '.join(option.choices)}, not {text!r}")
    readers: dict[type, Callable[[str], Any]] = {bool: _truth, int: int, float: float, str: str}
    try:
        value = readers[option.kind](text)
    except ValueError:
        raise UsageError(f"--set {option.name} needs {option.kind_name}, not {text!r}") from None
    return [value] if option.is_list else value


def _truth(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def _unknown(name: str, known: dict[str, AddonOption]) -> str:
    if not known:
        return f"--set {name}: the addons have no options"
    return f"--set {name}: no addon has an option of that name{_near(name, known)}; there is {', '.join(sorted(known))}"


def _near(name: str, known: dict[str, AddonOption]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
