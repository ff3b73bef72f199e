"""Reads the documents of a capture for the first time: which values are to be removed, and where only here."""

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from mcpsniff.export.redact.documents import BODY, EVENT, FORM, HEAD, HEADER, LINE, SAID, Document
from mcpsniff.export.redact.fields import (
    Field,
    head_fields,
    header_fields,
    is_definition,
    is_json,
    json_fields,
    looks_like_json,
    pair_fields,
    said_fields,
)
from mcpsniff.export.redact.matcher import SHORTEST
from mcpsniff.export.redact.pattern import Patterns
from mcpsniff.export.redact.rules import Rules, joined
from mcpsniff.export.redact.search import texts_in
from mcpsniff.export.redact.values import HOME, NUMBER, Values, is_everyday, is_ours
from mcpsniff.export.redact.views import Interest, unescaped

LONG: Final = 16 << 10
"""Bytes of a value beyond which only its beginning is looked for elsewhere."""
BEGINNING: Final = 1024
LARGE: Final = 1024
SIGNIFICANT: Final = 16
"""Bytes of the shortest encoded text in which forms are looked for."""
LEAST_DIGITS: Final = 4
"""Of a number beside a telling name that may be a secret."""

_EDGES: Final = b" \t\r\n\"'\\"
"""What is no part of a value at its ends: in JSON, it might be what ends a string."""
_KEY_LINE = re.compile(rb"[A-Za-z0-9+/=]{1,1024}+|[A-Z][A-Za-z-]{1,40}+: [^\r\n]{0,200}+")
_BETWEEN_STRINGS = re.compile(rb"\"[ \t\r\n]{0,40}+,[ \t\r\n]{0,40}+\"")
"""In a list of strings: a key may be in one line by line."""
_WHO = re.compile(rb"[\\/](?:home|Users)[\\/](.+)", re.DOTALL)
_ACCOUNTS: Final = frozenset(
    b"administrator codespace container developer ec2-user example jenkins-agent linuxbrew postgres username workspace"
    b" yourname your-name user-name".split()
)
"""Names of home folders that are nobody's: not looked for elsewhere."""


class Place(NamedTuple):
    """A value that is replaced here because a rule names this place."""

    start: int
    stop: int
    value: bytes


class Discoverer:
    """Finds what the rules name. ``places`` has, by the key of the document, what is replaced only there."""

    def __init__(self, rules: Rules, values: Values, patterns: Patterns | None) -> None:
        self._rules = rules
        self._values = values
        self._patterns = patterns
        self._forms = rules.forms
        hints = self._hint_words = {hint for form in rules.forms for hint in form.hints}
        self._interest = Interest(self._may_have_form)
        self._hints = re.compile(b"|".join(map(re.escape, sorted(hints)))) if hints else None
        self._is_message = True
        names = rules.names
        self._member, self._credential = lru_cache(4096)(names.member), lru_cache(4096)(names.credential)
        self._keys: set[str] = set()
        """The pipes on which a private key is being printed."""
        self._hits: set[object] = set()
        """The keys and paths that something had."""
        self.places: dict[object, list[Place]] = {}
        self._given = [_core(value) if len(_core(value)) >= SHORTEST else value for value in rules.values]
        for value in self._given:
            values.add(value, "value", everywhere=True)

    def idle(self) -> Iterator[str]:
        """The rules of the user that matched nothing, once all was replaced; of a value only its number is told."""
        rules, patterns = self._rules, self._patterns
        yield from (f"--key {word}" for key, word in rules.words if key not in self._hits)
        yield from (f"--path {'.'.join(path)}" for path in rules.paths if path not in self._hits)
        for number, value in enumerate(self._given, 1):
            if not any(value in other for other in self._values.places):
                yield f"--value {number}" if len(self._given) > 1 else "--value"
        if patterns is not None and not patterns.cut:
            yield from (
                f"--pattern {pattern}" for number, pattern in enumerate(rules.patterns) if number not in patterns.hits
            )

    def read(self, document: Document) -> None:
        """Take note of the values in a document."""
        self._values.take_note(document.data)
        self._look_for_forms(document)
        if document.kind == LINE:
            self._follow_key(document)
        self._is_message = document.kind != BODY or b'"jsonrpc"' in document.data
        for field in fields_of(document):
            if field.how != "text":
                self._judge(document, field)
            if self._patterns is not None and field.how in ("string", "header", "text"):
                self._try_patterns(document, field, self._patterns)

    def _look_for_forms(self, document: Document) -> None:
        if self._hints is None:
            return
        escaped_json = b"\\" in document.data and is_json_text(document)
        for encoding, text in texts_in(document.data, SIGNIFICANT, self._interest):
            if (not encoding and escaped_json) or not self._may_have_form(text):
                continue  # `\nbob@…` in JSON is no `nbob@…`
            for form in self._forms:
                if any(hint in text for hint in form.hints):
                    for found in form.pattern.finditer(text):
                        for part in _BETWEEN_STRINGS.split(found[found.lastindex or 0]):
                            self._add(part, form.what)

    def _follow_key(self, document: Document) -> None:
        """Take note of the lines of a key on a pipe that is read line by line."""
        line = document.data.strip()
        if line[:1] in (b"{", b"["):
            return
        begin = line.rfind(b"-----BEGIN ")
        if begin >= 0 and b"PRIVATE KEY" in line[begin:] and b"-----END " not in line[begin:]:
            self._keys.add(document.where)
        elif document.where in self._keys and line:
            if _KEY_LINE.fullmatch(line) is None:
                self._keys.discard(document.where)
                return
            self._values.add(line, "private key")
            if is_everyday(line):
                start = document.data.index(line)
                self._place(document, start, start + len(line), line)

    def _add(self, value: bytes, kind: str) -> None:
        """Take note of a value; of a home folder also in names of folders made of paths, and of whose it is."""
        self._values.add(value, kind)
        if kind != HOME or is_ours(value) or (found := _WHO.search(value)) is None:
            return
        who = found[1]
        slug = re.sub(rb"[^A-Za-z0-9]", b"-", who)
        self._values.add((b"-home-" if b"/home/" in value else b"-Users-") + slug, HOME, everywhere=True)
        if not is_everyday(who) and who.lower() not in _ACCOUNTS:
            self._values.add(who, HOME)

    def _may_have_form(self, text: bytes) -> bool:
        if self._hints is None:
            return False
        if len(text) > LARGE:
            return any(hint in text for hint in self._hint_words)  # sooner than by an expression of as many branches
        return self._hints.search(text) is not None

    def _judge(self, document: Document, field: Field) -> None:
        """Take note of a value that its name or its path announces."""
        named = self._rules.key_of(field.path)
        if named is not None:
            self._hits.add(joined(named))
        if field.how in ("string", "number"):
            hits = set(self._rules.paths_to(field.path))
            self._hits |= hits
            named = named if named is not None or not hits else field.name
        if named is None and self._rules.by_name:
            named = self._announced(document, field)
        if named is not None:
            self._take(document, field, NUMBER if field.how == "number" else named)

    def _announced(self, document: Document, field: Field) -> str | None:
        """The telling name of a value; in JSON also that of a list or object around it."""
        names, path = self._rules.names, field.path
        name = path[-1] if path else ""
        if field.how == "header":
            return name if names.header(name) else None
        if field.how == "pair":
            is_telling = names.credential(name) if document.kind == FORM else names.key(name)
            return name if is_telling else None
        tells = self._member if self._is_message or field.how == "said" else self._credential
        if field.how == "said":
            return name if tells(name) and _is_strong(field.value) else None
        if field.how == "number" and sum(byte in b"0123456789" for byte in field.value) < LEAST_DIGITS:
            return None
        for at in range(len(path) - 1, -1, -1):
            if tells(path[at]) and not is_definition(path, at, values=False):
                return path[at]
        return None

    def _take(self, document: Document, field: Field, kind: str) -> None:
        value, core = field.value, _core(field.value)
        if not core or is_ours(core):
            return
        if len(value) > LONG:
            self._values.add(value[:BEGINNING], kind, everywhere=True)
            self._values.add(value, kind, everywhere=False)
            self._place(document, field.start, field.stop, value)
            return
        if core != value and (is_everyday(core) or field.how == "number"):
            self._values.add(value, kind, everywhere=False)
            self._place(document, field.start, field.stop, value)
            return
        value = core
        if field.how == "pair" and (plain := _unquoted(value)) != value:
            self._values.add(plain, kind)
            value = plain
        self._values.add(value, kind)
        if field.how == "header" and (pair := _user_and_password(value)) is not None:
            for one in (pair, pair.partition(b":")[2]):
                self._values.add(one, "user and password")
        if is_everyday(value) or field.how == "number":
            self._place(document, field.start, field.stop, value)

    def _try_patterns(self, document: Document, field: Field, patterns: Patterns) -> None:
        found = patterns.find(field.value)
        if found is None:
            self._values.add(field.value, "field", everywhere=False)
            self._place(document, field.start, field.stop, field.value)
            return
        for start, stop in found:
            value = field.value[start:stop]
            if is_everyday(core := _core(value)):
                self._values.add(value, "pattern", everywhere=False if core != value else None)
            else:
                self._values.add(core, "pattern")
                value = core
            if is_everyday(core) and not is_ours(core):
                self._place_within(document, field, start, stop)

    def _place_within(self, document: Document, field: Field, start: int, stop: int) -> None:
        """A part of a field is replaced here; all of it, if it is in a text within a string, which has two escapes."""
        view = unescaped(document.data[field.start : field.stop])
        if view.text == field.value:
            first, last = field.start + view.place(start), field.start + view.place(stop, is_stop=True)
            self._place(document, first, last, field.value[start:stop])
            return
        if document.data[field.start : field.stop] == field.value:
            self._place(document, field.start + start, field.start + stop, field.value[start:stop])
            return
        self._values.add(field.value, "pattern", everywhere=False)
        self._place(document, field.start, field.stop, field.value)

    def _place(self, document: Document, start: int, stop: int, value: bytes) -> None:
        self.places.setdefault(document.key, []).append(Place(start, stop, value))


def is_json_text(document: Document) -> bool:
    """Say whether all of a document is JSON, so that a quote in it begins or ends a string."""
    if document.kind == EVENT:
        return b"{" in document.data
    return document.kind in (LINE, BODY) and is_json(document.data)


def fields_of(document: Document) -> Iterator[Field]:
    """The named values of a document, whatever it is."""
    data = document.data
    if document.kind == HEAD:
        yield from head_fields(data)
        return
    if document.kind == HEADER:
        yield from header_fields(document.name, data)
        return
    if document.kind == FORM:
        yield from pair_fields(data)
        yield from _lines(data)
        return
    if document.kind == SAID:
        if document.name:
            yield Field(0, len(data), data, (document.name,), "header")
        yield from _free(data, 0)
        if not document.name:
            yield from _lines(data)
        return
    start = data.find(b"{") if document.kind == EVENT else 0
    if start >= 0 and (document.kind == EVENT or looks_like_json(data)):
        for field in json_fields(data):
            yield field
            if field.value.lstrip()[:1] in (b"{", b"["):
                continue  # what is in it comes by itself
            if field.how == "string" and data[field.start : field.stop] == field.value:
                yield from _free(field.value, field.start)
            elif field.how == "string":
                yield from _within_escapes(data, field)
        return
    yield from _free(data, 0)
    yield from _lines(data)


def _within_escapes(data: bytes, field: Field) -> Iterator[Field]:
    """What free text in a string says that has escapes."""
    view = unescaped(data[field.start : field.stop])
    if view.text == field.value:
        for said in _free(field.value, 0):
            start, stop = view.place(said.start), view.place(said.stop, is_stop=True)
            yield said._replace(start=field.start + start, stop=field.start + stop)


def _free(text: bytes, start: int) -> Iterator[Field]:
    """What free text says."""
    if b"=" in text or b":" in text or b"-" in text:
        pairs = list(pair_fields(text, start))
        yield from pairs
        starts = {pair.start for pair in pairs}  # a key of a URL ends at a mark that free text would go on over
        yield from (said for said in said_fields(text, start) if said.start not in starts)


def _lines(text: bytes) -> Iterator[Field]:
    """The lines of a text, on which patterns are tried."""
    position = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip(b"\r\n")
        yield Field(position, position + len(bare), bare, (), "text")
        position += len(line)


def _is_strong(value: bytes) -> bool:
    """Say whether what free text has beside a telling name may be a secret, and no word of a sentence."""
    return len(value) >= 8 and any(byte in b"0123456789" for byte in value) and b"://" not in value


def _user_and_password(value: bytes) -> bytes | None:
    """What the credentials of Basic authentication are (RFC 7617), which may be elsewhere, too; else None."""
    try:
        decoded = b64decode(value, validate=True)
    except ValueError:
        return None
    return decoded if b":" in decoded and decoded.isascii() and decoded.decode().isprintable() else None


def _core(value: bytes) -> bytes:
    return value.strip(_EDGES)


def _unquoted(value: bytes) -> bytes:
    return unquote_to_bytes(value.replace(b"+", b" "))
