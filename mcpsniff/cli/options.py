"""The options of the commands that record, as plain data, and the small parser that `mcpsniff stdio` starts with.

The wrapper stands in front of every server that a client launches, so it must not pay for a command-line library.
The click command is built from the same table (a test holds the two together), and prints the help.
Importing this module imports nothing; only a wrong option loads what finds the right one.
"""

from mcpsniff.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

    type Kind = type[str] | type[float] | type[bool] | Callable[[str], float | None]
    type Value = str | float | bool | list[str] | None


def age(text: str) -> float | None:
    """Return the seconds that an age such as ``12h`` means; None for 0, never. Raises UsageError."""
    from mcpsniff.cli.ages import seconds

    return None if text.strip() == "0" else seconds(text)


def size(text: str) -> float | None:
    """Return the bytes that a size such as ``64M`` means; None for 0, no limit. Raises UsageError."""
    from mcpsniff.cli.sizes import in_bytes

    return in_bytes(text) or None


class Option:
    """One option: its spellings, the name of its value, and what the user reads about it."""

    __slots__ = ("choices", "default", "help", "is_repeated", "kind", "metavar", "name", "spellings")

    def __init__(
        self,
        spellings: "tuple[str, ...]",
        metavar: "str | None",
        text: str,
        default: "str | float | bool | None" = None,
        kind: "Kind" = str,
        *,
        choices: "tuple[str, ...]" = (),
        is_repeated: bool = False,
    ) -> None:
        self.spellings = spellings
        self.name = spellings[-1].lstrip("-").replace("-", "_")
        """The key under which the value is found: the longest spelling as an identifier."""
        self.metavar = metavar
        """What the help calls the value; None for a flag, which takes none."""
        self.help = text
        self.default = default
        self.kind = kind
        """str, or float for a number of seconds, or bool for a flag; or what makes the value of a text (UsageError)."""
        self.choices = choices
        """The texts that are allowed; empty: any."""
        self.is_repeated = is_repeated
        """True if it may be given several times; its value is the list of them."""


RECORDING: "Final" = (
    Option(("-o", "--output"), "FILE", "Write the capture to this file."),
    Option(("--dir",), "DIR", "Write the capture into this folder (also: MCPSNIFF_DIR, or dir in the config file)."),
    Option(
        ("--label",),
        "NAME",
        "Call the capture by this name (default: from the command or the upstream's address; forward has neither, and"
        " calls it forward).",
    ),
    Option(
        ("--keep-secrets",),
        None,
        "Record secrets as they are. Otherwise those in the server's command line, in HTTP headers and URLs, and in"
        " the bodies of OAuth are masked. What passes on pipes, and what MCP itself says, is recorded as it is.",
        False,
        bool,
    ),
    Option(
        ("--no-transcript",), None, "Do not write a Markdown transcript beside the capture at the end.", False, bool
    ),
    Option(
        ("--quiet",),
        None,
        "Do not say on stderr where the capture goes, nor warn about that folder. A failure to record is still said."
        " With mcpsniff http and forward: no live view either, only the address for the client on stdout.",
        False,
        bool,
    ),
)
"""Common to stdio, http, forward and run."""

INTERCEPTING: "Final" = (
    Option(
        ("--addon",),
        "FILE",
        "Load this Python file, or a ready addon by its name (mcpsniff addons lists them): its functions named mcp_..."
        " are told of messages, and may change them (docs/addons.md).",
        is_repeated=True,
    ),
    Option(("--set",), "NAME=VALUE", "Set an option of an addon.", is_repeated=True),
    Option(
        ("--rules",),
        "FILE",
        "Change messages as the rules in this TOML file say (docs/rules.md). At the end each rule tells what it did.",
        is_repeated=True,
    ),
    Option(
        ("--block",),
        "WHAT",
        "Hide tool:NAME, prompt:NAME or resource:URI (* stands for anything) and refuse its use as of one that is not"
        " there; or refuse every request that a filter expression matches.",
        is_repeated=True,
    ),
    Option(("--map-tool",), "NAME=OTHER", "Show the tool NAME to the client as OTHER.", is_repeated=True),
    Option(
        ("--set-argument",),
        "[TOOL.]NAME=JSON",
        "Set an argument of calls of TOOL, or of all tools; a string in its quotes.",
        is_repeated=True,
    ),
    Option(
        ("--set-header",),
        "NAME=VALUE",
        "Set a header of every HTTP request; without VALUE it is removed.",
        is_repeated=True,
    ),
    Option(
        ("--respond",),
        "WHAT=JSON",
        "Answer requests that WHAT (as of --block, or a filter expression) matches in the receiver's place: with this"
        ' result, or this {"error": ...}, or the one in @FILE.',
        is_repeated=True,
    ),
    Option(
        ("--break",),
        "EXPR",
        "Hold each message that a filter expression matches, until somebody passes, changes, drops or answers it: here,"
        " or with mcpsniff attach.",
        is_repeated=True,
    ),
    Option(
        ("--break-timeout",),
        "SECONDS",
        "Let what is held at a break point pass unchanged after so long (default: it waits for somebody).",
        None,
        float,
    ),
    Option(
        ("--fault",),
        "FAULT",
        "Do this to messages on purpose: NAME[=VALUE][,p=0.1][,if=EXPR][,after=N][,times=N], such as latency=1s or"
        " drop,p=10% (mcpsniff addons --faults lists them).",
        is_repeated=True,
    ),
    Option(
        ("--fault-seed",),
        "NUMBER",
        "Choose as an earlier run has chosen, which has told its seed: the same faults for the same traffic.",
    ),
    Option(
        ("--fault-from",),
        "CAPTURE",
        "Do exactly the faults that this capture has, at the same messages.",
        is_repeated=True,
    ),
)
"""What changes messages, or lets addons see them: common to stdio, http, forward and run."""

STDIO: "Final" = (
    *RECORDING,
    *INTERCEPTING,
    Option(
        ("--grace",),
        "SECONDS",
        "How long the server may take to end after the client closed its stdin, or after a TERM, INT or HUP.",
        10.0,
        float,
    ),
)
"""The options of `mcpsniff stdio`."""

HTTP: "Final" = (
    *RECORDING,
    *INTERCEPTING,
    Option(
        ("--listen",),
        "HOST:PORT",
        "Where to listen, once for each upstream in their order (default: 127.0.0.1 and a free port). Any other"
        " interface than loopback is open to others.",
        is_repeated=True,
    ),
    Option(
        ("--host-header",),
        "keep|upstream",
        "Pass Host on as the client sent it, or put the upstream's in its place (default: keep for an upstream on this"
        " machine, else upstream).",
        choices=("keep", "upstream"),
    ),
    Option(
        ("--allow-host",),
        "NAME",
        "Let requests pass whose Host or Origin is NAME, or any with *. Otherwise those that come from a web page, or"
        " name another host than this listener, are refused, unless the upstream is on this machine and can do so.",
        is_repeated=True,
    ),
    Option(
        ("--insecure",),
        None,
        "Trust any certificate of an upstream with https://.",
        False,
        bool,
    ),
    Option(
        ("--upstream-ca",),
        "FILE",
        "Trust the certificates in this PEM file, and those that they have issued, besides the known authorities.",
    ),
    Option(
        ("--rotate-size",),
        "SIZE",
        "Begin a new part of the capture when one has this size.",
        "64M",
        size,
    ),
    Option(
        ("--rotate-every",),
        "AGE",
        "Begin a new part of the capture when one is this old, such as 12h or 1d.",
        None,
        age,
    ),
    Option(
        ("--max-size",),
        "SIZE",
        "Let a capture take no more room than this: its oldest parts are removed as it grows. 0: no limit.",
        "1G",
        size,
    ),
)
"""The options of `mcpsniff http`."""

ONLY: "Final" = Option(
    ("--only",),
    "HOST",
    "Look only into what goes to HOST (*.HOST: to any host below it; HOST:PORT: to that port); all else passes without"
    " being decrypted. May be given several times.",
    is_repeated=True,
)
"""Common to forward and run."""

FORWARD: "Final" = (
    *RECORDING,
    *INTERCEPTING,
    Option(
        ("--listen",),
        "HOST:PORT",
        "Where to listen (default: 127.0.0.1 and a free port). Any other interface than loopback is open to others.",
    ),
    ONLY,
    Option(("--all",), None, "Record what is no MCP, too: everything that HTTP carries.", False, bool),
    *[
        option
        for option in HTTP
        if option.name in {"insecure", "upstream_ca", "rotate_size", "rotate_every", "max_size"}
    ],
)
"""The options of `mcpsniff forward`."""

RUN: "Final" = tuple([option for option in FORWARD if option.name not in {"listen", "all"}])
"""The options of `mcpsniff run`."""

HELP: "Final" = ("-h", "--help")


class HelpAskedError(Exception):
    """The words ask for the help text, which click prints."""


def parse(
    table: "Sequence[Option]", words: "Sequence[str]", *, anywhere: bool = False
) -> "tuple[dict[str, Value], list[str]]":
    """Split ``words`` into option values (by `Option.name`, defaults filled in) and the words that follow them.

    Options end at ``--`` or at the first word that is none; with ``anywhere`` they may stand between other words, too.
    ``--name VALUE``, ``--name=VALUE``, ``-o VALUE`` and ``-oVALUE`` are understood; of an option given twice the last
    one counts, unless it may be repeated.

    Raises UsageError for an unknown option or a bad value, HelpAskedError for ``--help``.
    """
    by_spelling = {spelling: option for option in table for spelling in option.spellings}
    values: dict[str, Value] = {option.name: default(option) for option in table}
    rest = list(words)
    others: list[str] = []
    while rest:
        if not rest[0].startswith("-") or rest[0] == "-":
            if not anywhere:
                break
            others.append(rest.pop(0))
            continue
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
        value = _value(option, spelling, rest.pop(0) if attached is None else attached)
        earlier = values[option.name]
        if isinstance(earlier, list):
            earlier.append(str(value))
        else:
            values[option.name] = value
    return values, others + rest


def default(option: Option) -> "Value":
    """Return the value of an option that is not given."""
    if option.is_repeated:
        return []
    if isinstance(option.default, str) and not isinstance(option.kind, type):
        return option.kind(option.default)
    return option.default


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


def _value(option: Option, spelling: str, text: str) -> "str | float | None":
    """Convert the text of a value to the option's kind."""
    if option.choices and text not in option.choices:
        raise UsageError(f"option {spelling} is one of {', '.join(option.choices)}, not {text!r}")
    if not isinstance(option.kind, type):
        return option.kind(text)
    if option.kind is not float:
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:  # not a number (nan) compares false, too
        raise UsageError(f"option {spelling} needs a number of seconds, not {text!r}")
    return seconds
