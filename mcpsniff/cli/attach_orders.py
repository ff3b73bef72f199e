"""What a person says should become of held messages, as orders: typed at the prompt, or on the command line."""

import json
import re
from typing import Any, Final, NamedTuple

from mcpsniff.capture.labels import shown
from mcpsniff.cli.attach_link import Held
from mcpsniff.errors import UsageError

ALL: Final = "all"
LONGEST_NUMBER: Final = 9
"""Digits of the number of a message."""

COMMANDS: Final = {
    "show": "show [N]           show a message whole",
    "pass": "pass [N...|all]    let it go on as it came",
    "edit": "edit [N]           change it in your editor; saved, it goes on",
    "drop": "drop [N...]        it does not go on",
    "answer": 'answer [N] [JSON]  answer it in the receiver\'s place: a result, or {"error": ...}; @FILE reads it',
    "refuse": "refuse [N] TEXT    answer it with an error that says this",
    "list": "list               all that are held",
    "off": "off                let everything go, and hold nothing more",
    "on": "on                 hold again",
    "send": "send [N]           let what you edited go on although it is not JSON",
    "help": "help               this",
    "quit": "quit               detach; what is held stays held",
}
"""What can be typed, with its line of help. A letter is enough; N is a message's number, without it the oldest."""
_NEEDS_TEXT: Final = frozenset({"answer", "refuse"})
_SEVERAL: Final = frozenset({"pass", "drop"})


class Typed(NamedTuple):
    """A command that was typed."""

    do: str
    numbers: tuple[int, ...] = ()
    """Empty: the oldest message."""
    is_all: bool = False
    text: str = ""


def typed(line: str) -> Typed:
    """What a line means. Raises UsageError."""
    word, _, rest = line.strip().partition(" ")
    do = _command(word)
    rest = rest.strip()
    if do == "pass" and rest == ALL:
        return Typed(do, is_all=True)
    numbers: list[int] = []
    while (found := re.match(rf"(\d{{1,{LONGEST_NUMBER}}})(?:[\s,]+|$)", rest)) and (do in _SEVERAL or not numbers):
        numbers.append(int(found[1]))
        rest = rest[found.end() :]
    if rest and do not in _NEEDS_TEXT:
        raise UsageError(f"{do} takes the number of a message, not {shown(rest)}")
    return Typed(do, tuple(numbers), text=rest)


def _command(word: str) -> str:
    lower = "help" if word == "?" else word.lower()
    meant = [name for name in COMMANDS if name == lower] or [name for name in COMMANDS if name.startswith(lower)]
    if lower in ("s", "o"):  # show rather than send; off and on are never meant by one letter
        meant = ["show"] if lower == "s" else []
    if not lower or len(meant) != 1:
        raise UsageError(f"{shown(word) or 'that'} is no command; h shows them")
    return meant[0]


def answer_of(text: str) -> dict[str, Any]:
    """The result or the error that a JSON text means, as part of an order; ``@FILE`` means what is in it.

    An object of ``result`` or ``error`` alone is that; anything else is the result itself. Raises UsageError.
    """
    where = ""
    if text.startswith("@"):
        where = f" in {shown(text[1:])}"
        try:
            with open(text[1:], encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {shown(text[1:])}: {getattr(error, 'strerror', None) or error}") from None
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise UsageError(f"the answer{where} is not JSON: {place}") from None
    except RecursionError:
        raise UsageError(f"the answer{where} is nested too deeply") from None
    except ValueError as error:  # our own, or of the standard library, which reads integers of 4,300 digits at most
        is_long = "digits" in str(error)
        wrong = (
            "has a number with more digits than can be read, which are 4,300" if is_long else f"is not JSON: {error}"
        )
        raise UsageError(f"the answer{where} {wrong}") from None
    if isinstance(value, dict) and len(value) == 1:
        for name in ("result", "error"):
            if name in value:
                return {name: value[name]}
    return {"result": value}


def skeleton(held: Held) -> str:
    """What stands in the editor when somebody begins to answer a request there."""
    result: dict[str, Any] = {}
    if held.facts["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": ""}]}
    return json.dumps({"result": result}, indent=2) + "\n"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
