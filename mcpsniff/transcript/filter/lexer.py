r"""Split a filter expression into words: terms (``tool:echo``), texts, ``and``, ``or``, ``not`` and brackets.

One pass over the characters, without regular expressions, so that no expression takes more than linear time.
Inside double quotes ``\"``, ``\\``, ``\n``, ``\t``, ``\r`` and ``\uXXXX`` stand for characters.
"""

from typing import Final, NamedTuple

from mcpsniff.transcript.filter.error import FilterError

TEXT: Final = "text"
"""The field of a word that names none."""
KEYWORDS: Final = ("and", "or", "not")
OPEN: Final = "("
CLOSE: Final = ")"
TERM: Final = "term"

_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r", "/": "/"}
_CURLY: Final = "“”„"
_FULL_WIDTH_COLON: Final = "："


class Value(NamedTuple):
    """The value of a term, and where it stands."""

    text: str
    quoted: bool
    """True if it stood in quotes, inside of which nothing but the escapes is special."""
    at: int


class Token(NamedTuple):
    """One word of an expression."""

    kind: str
    """TERM, OPEN, CLOSE or one of KEYWORDS."""
    at: int
    field: str = ""
    value: Value | None = None


def tokens(expression: str) -> list[Token]:
    """The words of ``expression``. Raises FilterError."""
    found = []
    at = 0
    while at < len(expression):
        character = expression[at]
        if character.isspace():
            at += 1
        elif character in (OPEN, CLOSE):
            found.append(Token(character, at))
            at += 1
        else:
            token, at = _word(expression, at)
            found.append(token)
    return found


def _word(expression: str, start: int) -> tuple[Token, int]:
    """The word that begins at ``start``, and where it ends."""
    if expression[start] == '"':
        value, at = _quoted(expression, start)
        return Token(TERM, start, TEXT, value), at
    at = start
    while at < len(expression) and not expression[at].isspace() and expression[at] not in '():"':
        at += 1
    word = expression[start:at]
    if at < len(expression) and expression[at] == ":":
        value, at = _value(expression, start, at + 1)
        return Token(TERM, start, word, value), at
    if word.lower() in KEYWORDS:
        return Token(word.lower(), start), at
    _no_look_alikes(expression, start, word)
    _ends(expression, start, at)
    return Token(TERM, start, TEXT, Value(word, False, start)), at


def _value(expression: str, start: int, at: int) -> tuple[Value, int]:
    """The value that begins at ``at``, of a term that begins at ``start``."""
    if at < len(expression) and expression[at] == '"':
        return _quoted(expression, at)
    stop = at
    while stop < len(expression) and not expression[stop].isspace() and expression[stop] not in '()"':
        stop += 1
    word = expression[at:stop]
    if not word:
        _ends(expression, start, stop)
        raise FilterError(f"{expression[start:at]} needs a value directly after the colon", expression, at)
    if word[0] in _CURLY:
        raise FilterError('quotes must be straight: "…"', expression, at)
    _ends(expression, at, stop)
    return Value(word, False, at), stop


def _ends(expression: str, start: int, at: int) -> None:
    """Raise FilterError if what begins at ``start`` runs into a bracket or quote at ``at``."""
    if at < len(expression) and expression[at] in '("':
        word = expression[start:at]
        what = "bracket" if expression[at] == OPEN else "quote"
        sentence = f"a {what} directly after {word[:40]}; put a space between them, or the whole value in quotes"
        raise FilterError(sentence, expression, at)


def _no_look_alikes(expression: str, start: int, word: str) -> None:
    """Characters that a keyboard or an editor puts in place of those of the language would silently mean a text."""
    if word[0] in _CURLY:
        raise FilterError('quotes must be straight: "…"', expression, start)
    name, colon, rest = word.partition(_FULL_WIDTH_COLON)
    if colon and name.isascii() and name.isalpha():
        raise FilterError("a full-width colon", expression, start + len(name), f"{name}:{rest}")


def _quoted(expression: str, start: int) -> tuple[Value, int]:
    """The string whose opening quote stands at ``start``, and the place behind its closing quote."""
    parts = []
    at = start + 1
    while at < len(expression) and expression[at] != '"':
        if expression[at] != "\\":
            parts.append(expression[at])
            at += 1
            continue
        character, at = _escape(expression, at)
        parts.append(character)
    if at >= len(expression):
        raise FilterError("this quote is never closed", expression, start)
    at += 1
    if at < len(expression) and not expression[at].isspace() and expression[at] not in (OPEN, CLOSE):
        raise FilterError(r"a space belongs after a closing quote (a quote inside of quotes is \")", expression, at)
    if at < len(expression) and expression[at] == OPEN:
        _ends(expression, start, at)
    return Value(_joined(parts), True, start), at


def _escape(expression: str, at: int) -> tuple[str, int]:
    r"""The character that the escape at ``at`` stands for, and the place behind it."""
    letter = expression[at + 1 : at + 2]
    if letter in _ESCAPES:
        return _ESCAPES[letter], at + 2
    digits = expression[at + 2 : at + 6]
    if letter == "u" and len(digits) == 4 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
        return chr(int(digits, 16)), at + 6
    raise FilterError(r"an unknown escape; there are \" \\ \n \t \r and \uXXXX", expression, at)


def _joined(parts: list[str]) -> str:
    """The characters as one string; two escapes of a surrogate pair are one character, as in JSON."""
    text = "".join(parts)
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return text
