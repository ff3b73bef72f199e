"""From the words of a filter expression to a tree in which ``not`` stands before single terms only.

    any   = all ("or" all)*
    all   = one (["and"] one)*
    one   = "not" one | "(" any ")" | term

A tree is a `Leaf` or a `Branch`; it is at most DEPTH deep, however long the expression.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mcpsniff.transcript.filter.error import FilterError
from mcpsniff.transcript.filter.lexer import CLOSE, OPEN, TERM, Token, tokens

LENGTH: Final = 10_000
"""Characters of an expression."""
TERMS: Final = 500
DEPTH: Final = 50
"""Brackets inside of brackets."""

AND: Final = "and"
OR: Final = "or"
NOT: Final = "not"


class Leaf(NamedTuple):
    """A term, or its opposite."""

    token: Token
    negated: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """True if all (AND) or any (OR) of its parts are."""

    operator: str
    parts: "list[Tree]" = field(default_factory=list)


type Tree = Leaf | Branch


def parse(expression: str) -> Tree:
    """The tree of ``expression``. Raises FilterError."""
    if len(expression) > LENGTH:
        raise FilterError(f"the expression has more than {LENGTH:,} characters", expression, LENGTH)
    words = tokens(expression)
    if not words:
        raise FilterError("the expression is empty", expression, 0, "tool:*")
    terms = [word for word in words if word.kind == TERM]
    if len(terms) > TERMS:
        raise FilterError(f"the expression has more than {TERMS} terms", expression, terms[TERMS].at)
    return _Parser(expression, words).whole()


class _Parser:
    def __init__(self, expression: str, words: list[Token]) -> None:
        self._expression = expression
        self._words = words
        self._at = 0
        self._brackets: list[Token] = []

    def whole(self) -> Tree:
        tree = self._any(negated=False)
        left = self._peek()
        if left is not None:
            raise self._error("this bracket closes nothing", left)
        return tree

    def _any(self, *, negated: bool) -> Tree:
        parts = [self._all(negated=negated)]
        while (word := self._peek()) is not None and word.kind == OR:
            self._at += 1
            parts.append(self._all(negated=negated, after=word))
        # De Morgan: what is negated as a whole is negated in its parts, with the other operator.
        return parts[0] if len(parts) == 1 else Branch(AND if negated else OR, parts)

    def _all(self, *, negated: bool, after: Token | None = None) -> Tree:
        parts = [self._one(negated=negated, after=after)]
        while (word := self._peek()) is not None and word.kind not in (OR, CLOSE):
            joined = word.kind == AND
            self._at += joined
            parts.append(self._one(negated=negated, after=word if joined else None))
        return parts[0] if len(parts) == 1 else Branch(OR if negated else AND, parts)

    def _one(self, *, negated: bool, after: Token | None) -> Tree:
        word = self._peek()
        while word is not None and word.kind == NOT:
            negated, after = not negated, word
            self._at += 1
            word = self._peek()
        if word is None:
            raise self._missing(after)
        if word.kind == TERM:
            self._at += 1
            return Leaf(word, negated)
        if word.kind == OPEN:
            return self._bracket(word, negated=negated)
        if after is None and word.kind in (AND, OR):
            raise self._error(f'nothing stands before "{word.kind}"', word)
        if word.kind == CLOSE and after is None:
            empty = bool(self._brackets)
            raise self._error("nothing stands in these brackets" if empty else "this bracket closes nothing", word)
        raise self._missing(after)

    def _bracket(self, opening: Token, *, negated: bool) -> Tree:
        if len(self._brackets) >= DEPTH:
            raise self._error(f"brackets stand more than {DEPTH} deep", opening)
        self._brackets.append(opening)
        self._at += 1
        if self._peek() is None:
            raise self._error("this bracket is never closed", opening)
        tree = self._any(negated=negated)
        if self._peek() is None:
            raise self._error("this bracket is never closed", opening)
        self._at += 1
        self._brackets.pop()
        return tree

    def _peek(self) -> Token | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def _missing(self, after: Token | None) -> FilterError:
        assert after is not None, "only a keyword asks for more"
        return self._error(f'nothing to match stands after "{after.kind}"', after)

    def _error(self, sentence: str, word: Token) -> FilterError:
        return FilterError(sentence, self._expression, word.at)
