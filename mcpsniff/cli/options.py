"""The options of the commands that record, as plain data, and the small parser that `mcpsniff stdio` starts with.

The wrapper stands in front of every server that a client launches, so it must not pay for a command-line library.
The click command is built from the same table (a test holds the two together), and prints the help.
Importing this module imports nothing; only a wrong option loads what finds the right one.
"""

from mcpsniff.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final


class Option:
    """One option: its spellings, the name of its value, and what the user reads about it."""

    __slots__ = ("default", "help", "kind", "metavar", "name", "spellings")

    def __init__(
        self,
        spellings: "tuple[str, ...]",
        metavar: "str | None",
        text: str,
        default: "str | float | bool | None" = None,
        kind: type = str,
    ) -> None:
        self.spellings = spellings
        self.name = spellings[-1].lstrip("-").replace("-", "_")
        """The key under which the value is found: the longest spelling as an identifier."""
        self.metavar = metavar
        """What the help calls the value; None for a flag, which takes none."""
        self.help = text
        self.default = default
        self.kind = kind
        """str, or float for a number of seconds, or bool for a flag."""


RECORDING: "Final" = (
    Option(("-o", "--output"), "FILE", "Write the capture to this file."),
    Option(("--dir",), "DIR", "Write the capture into this folder (also: MCPSNIFF_DIR, or dir in the config file)."),
    Option(("--label",), "NAME", "Call the capture by this name (default: taken from the command)."),
    Option(
        ("--keep-secrets",),
        None,
        "Record the server's command line as it is. Otherwise secrets among its arguments are masked; what passes on"
        " the pipes is recorded as it is in any case.",
        False,
        bool,
    ),
    Option(
        ("--no-transcript",), None, "Do not write a Markdown transcript beside the capture at the end.", False, bool
    ),
    Option(
        ("--quiet",),
        None,
        "Do not say on stderr where the capture goes, nor warn about that folder. A failure to record is still said.",
        False,
        bool,
    ),
)
"""Common to stdio, http, forward and run."""

STDIO: "Final" = (
    *RECORDING,
    Option(
        ("--grace",),
        "SECONDS",
        "How long the server may take to end after the client closed its stdin, or after a TERM, INT or HUP.",
        10.0,
        float,
    ),
)
"""The options of `mcpsniff stdio`."""

HELP: "Final" = ("-h", "--help")


class HelpAskedError(Exception):
    """The words ask for the help text, which click prints."""


def parse(
    table: "Sequence[Option]", words: "Sequence[str]"
) -> "tuple[dict[str, str | float | bool | None], list[str]]":
    """Split ``words`` into option values (by `Option.name`, defaults filled in) and the command that follows them.

    Options end at ``--`` or at the first word that is none. ``--name VALUE``, ``--name=VALUE``, ``-o VALUE`` and
    ``-oVALUE`` are understood; of an option given twice the last one counts.

    Raises UsageError for an unknown option or a bad value, HelpAskedError for ``--help``.
    """
    by_spelling = {spelling: option for option in table for spelling in option.spellings}
    values: dict[str, str | float | bool | None] = {option.name: option.default for option in table}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word in HELP:
            raise HelpAskedError
        spelling, attached = _split(word)
        option = by_spelling.get(spelling)
        if option is None:
            raise UsageError(f"no such option: {spelling}{_suggestion(spelling, [*by_spelling, *HELP])}")
        if option.metavar is None:
            if attached is not None:
                raise UsageError(f"option {spelling} takes no value")
            values[option.name] = True
            continue
        if attached is None and not rest:
            raise UsageError(f"option {spelling} needs a value: {option.metavar}")
        values[option.name] = _value(option, spelling, rest.pop(0) if attached is None else attached)
    return values, rest


def _suggestion(spelling: str, known: "list[str]") -> str:
    """Say which option may have been meant."""
    from difflib import get_close_matches

    near = get_close_matches(spelling, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _split(word: str) -> "tuple[str, str | None]":
    """Separate an option from a value written in the same word."""
    if word.startswith("--"):
        spelling, equals, value = word.partition("=")
        return spelling, value if equals else None
    return word[:2], word[2:] or None


def _value(option: Option, spelling: str, text: str) -> "str | float":
    """Convert the text of a value to the option's kind."""
    if option.kind is not float:
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:  # not a number (nan) compares false, too
        raise UsageError(f"option {spelling} needs a number of seconds, not {text!r}")
    return seconds
