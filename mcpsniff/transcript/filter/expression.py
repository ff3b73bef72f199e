"""A filter: an expression compiled to tests of single events, and to a verdict over all that were true of a unit.

Every term is a bit. The *mask* of an event has the bits of the terms that are true of it; the mask of an exchange is
that of all its parts together, since a term is true of an exchange when it is true of any of its parts. Bits only ever
come to a mask, so a verdict may be certain long before an exchange has ended.
"""

from collections.abc import Callable, Iterable

from mcpsniff.decoder import Event
from mcpsniff.protocol.edits import ADDED, ANSWERED_BY, Edit
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.filter.error import BadValueError, FilterError, nearest
from mcpsniff.transcript.filter.lexer import Token
from mcpsniff.transcript.filter.parser import AND, Leaf, Tree, parse
from mcpsniff.transcript.filter.term import Context, Term, Test
from mcpsniff.transcript.filter.terms import FIELDS, OTHER_NAMES
from mcpsniff.transcript.filter.texts import Texts

type Verdict = Callable[[int, int], bool]
"""Of the bits that hold and of those that do not."""


class Filter:
    """A compiled expression. See `compile_filter`."""

    def __init__(self, expression: str, *, alone: bool, started: str | None) -> None:
        self.expression = expression
        self.alone = alone
        self._context = Context(alone, started, Texts())
        self._bits: dict[tuple[str, str, bool], int] = {}
        self._tests: dict[type[Event], list[tuple[int, Test]]] = {}
        self.late = 0
        """Bits that a part after the request can bring to an exchange."""
        self.on_findings = 0
        """Bits that a finding can bring."""
        self.of_http_alone = 0
        """Bits that an HTTP exchange does not lend to the request it carried."""
        self.inherited = 0
        """Bits of a batch that its elements have too."""
        self._verdict = self._compile(parse(expression))

    @property
    def fields(self) -> set[str]:
        """The fields that it asks about."""
        return {field for field, *_ in self._bits}

    def mask(self, event: Event) -> int:
        """The bits of the terms that are true of ``event`` itself."""
        found = 0
        for bit, test in self._tests.get(type(event), ()):
            if test(event):
                found |= bit
        if isinstance(event, Edit):
            for message in _counted(event):
                found |= self.mask(message)
        return found

    def verdict(self, mask: int, undecided: int = 0) -> bool | None:
        """True if what has ``mask`` is to be shown, None if that depends on the bits of ``undecided``."""
        if self._verdict(mask, ~(mask | undecided)):
            return True
        return None if undecided and self._verdict(mask | undecided, ~mask) else False

    def _compile(self, tree: Tree) -> Verdict:
        """The verdict over a tree; terms side by side are compared at once."""
        if isinstance(tree, Leaf):
            bit = self._bit(tree.token)
            return (lambda _, lacks: lacks & bit != 0) if tree.negated else (lambda has, _: has & bit != 0)
        wanted = unwanted = 0
        inner: list[Verdict] = []
        for part in tree.parts:
            if not isinstance(part, Leaf):
                inner.append(self._compile(part))
            elif part.negated:
                unwanted |= self._bit(part.token)
            else:
                wanted |= self._bit(part.token)
        if tree.operator == AND:
            return lambda has, lacks: (
                has & wanted == wanted and lacks & unwanted == unwanted and all(part(has, lacks) for part in inner)
            )
        return lambda has, lacks: bool(has & wanted or lacks & unwanted) or any(part(has, lacks) for part in inner)

    def _bit(self, token: Token) -> int:
        assert token.value is not None
        key = token.field.lower(), token.value.text, token.value.quoted
        if key not in self._bits:
            bit = self._bits[key] = 1 << len(self._bits)
            self._register(bit, self._term(token))
        return self._bits[key]

    def _register(self, bit: int, term: Term) -> None:
        self.late |= bit if term.late else 0
        self.on_findings |= bit if term.on_findings else 0
        self.inherited |= bit if term.inherited else 0
        self.of_http_alone |= bit if term.of_http_alone else 0
        for kind, test in term.tests.items():
            self._tests.setdefault(kind, []).append((bit, test))

    def _term(self, token: Token) -> Term:
        value = token.value
        assert value is not None
        field = FIELDS.get(token.field.lower())
        if field is None or (token.field.lower() == "http" and value.text.startswith("//")):
            raise self._no_field(token)
        try:
            return field.compile(value, self._context)
        except BadValueError as error:
            inside = error.at + 1 if value.quoted else error.at
            raise FilterError(str(error), self.expression, value.at + inside, error.suggestion) from None

    def _no_field(self, token: Token) -> FilterError:
        name = token.field
        if not name:
            return FilterError("a field belongs before the colon", self.expression, token.at, "text:…")
        word = name.lower()
        meant = OTHER_NAMES.get(word) or nearest(word, list(FIELDS))
        whole = f"{name}:{token.value.text}" if token.value else name
        sentence = f"there is no field {name[:40]}" if word not in FIELDS else f"{whole[:40]} is no term"
        meant = "" if word in FIELDS else meant
        if not meant:
            sentence += " (a text with a colon in it belongs in quotes)"
            meant = f'"{whole}"' if len(whole) <= 40 and '"' not in whole else ""
        return FilterError(sentence, self.expression, token.at, meant)


def _counted(edit: Edit) -> Iterable[Message]:
    """The messages of an edit of which terms may be true: of an exchange, what nobody else says in it."""
    if edit.link is None:
        return edit.left if edit.of is None else (edit.of, *edit.left)
    return edit.left if edit.change in (ADDED, ANSWERED_BY) else ()


def compile_filter(expression: str, *, alone: bool = False, started: str | None = None) -> Filter:
    """Compile ``expression`` (docs/filter.md has the language).

    ``alone``: judge each message by itself, not the exchange it belongs to. ``started``: when the session started
    (RFC 3339), for times of day. Raises FilterError, which points at the place.
    """
    return Filter(expression, alone=alone, started=started)
