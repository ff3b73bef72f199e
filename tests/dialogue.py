"""Dialogue tests: a readable conversation with the expected findings in the margin, played through the real decoder.

    @open 2025-11-25                             a complete handshake (``initialize`` has id 0)
    C> {"jsonrpc":"2.0","id":1,"method":"ping"}
    + 300ms
    S> {"jsonrpc":"2.0","id":7,"result":{}}      ⟵ MCP403:error:server
    S> EXIT 1                                    ⟵ MCP119 MCP409

Each line is 1 ms after the one before it. What a line can be:

    C> TEXT, S> TEXT, E> TEXT   the client, the server, or the server's stderr writes TEXT and an LF
    C| B, S| B, E| B            exactly these bytes: a bytes literal, or several with ``+`` and ``* COUNT``
    C> EOF                      the client closes the server's input
    C> HANGS UP                 the client reads the server's output no more
    S> EOF                      the server closes its output and lives on
    S> EXIT N, S> KILLED N      the process ends; ``sent TERM,KILL`` behind it: signals it got through mcpsniff
    S> FAILED WHY               the process could not be started
    G> C N WHY                  the recorder lost N bytes of the client's (or S, the server's) channel
    A> DROP WHO                 the latest line was dropped on the way by WHO
    A> CHANGE WHO TEXT          TEXT left in its place; with ``A|`` in place of ``A>`` these bytes, without an LF
    A> HOLD WHO 250ms           it left as it was, but so much later
    A> C WHO TEXT               WHO put TEXT in, as if the client (or S, the server) had said it
                                (WHO is a word, or "a name", and (the reason) may stand behind it)
    N> TEXT                     mcpsniff notes TEXT
    X> TEXT                     a line of the capture file cannot be read, and the reader says TEXT
    + 3s, + 250ms               time passes
    @open REVISION, @modern     the handshake; an exchange of server/discover in 2026-07-28
    @late                       the capture joined late (first line only)
    @limit N                    the decoder keeps N bytes of a frame (first line only)
    @break CODE                 that check raises an exception (first line only)
    @http                       what follows is a dialogue over HTTP (first line only): see tests/http_dialogue.py
    #                           a comment

``$ENVELOPE`` stands for the ``_meta`` of a request in 2026-07-28. In the margin stands every finding that hangs on the
line, as CODE, CODE:severity or CODE:severity:blame; a finding that is not there is a failure, and so is one too many.
"""

import ast
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mcpsniff.capture.records import Record
from mcpsniff.checks import Check, Finding, Runner, load
from mcpsniff.checks.recorder import damage_finding
from mcpsniff.decoder import Decoder, Event
from mcpsniff.wire.frames import DEFAULT_FRAME_LIMIT

CHANNELS = {"C": 0, "S": 1, "E": 2}
OPENINGS = (
    Record(0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}),
    Record(0, "open", 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}),
    Record(0, "open", 2, {"kind": "stderr", "dir": "s2c", "conn": 0}),
)
STEP_US = 1000
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

_MARGIN = re.compile(r"\s+⟵((?:\s+[A-Z]+\d+(?::\w+){0,2})+)\s*$")
_PAUSE = re.compile(r"\+\s*(\d+(?:\.\d+)?)\s*(ms|s)$")
_EDIT = re.compile(r'(?P<what>\w+) (?P<who>"[^"]+"|\S+)(?: \((?P<why>(?:[^()]|\([^()]*\))+)\))?(?: |$)')
_END = re.compile(r"(EXIT|KILLED) (\d+)(?: sent ([A-Z0-9,]+))?$")


class DialogueError(ValueError):
    """A dialogue that cannot be read; the text names the line."""


@dataclass
class Line:
    """One line of a dialogue with what is expected of it and what happened."""

    number: int
    text: str
    expected: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    is_more: bool = False
    """True for an indented line, which over HTTP belongs to the line above it."""

    def is_as_expected(self) -> bool:
        """True if every expected finding is there and no other."""
        left = list(self.findings)
        for words in sorted(self.expected, key=len, reverse=True):
            found = next((one for one in left if _matches(one, words)), None)
            if found is None:
                return False
            left.remove(found)
        return not left

    def as_played(self) -> str:
        """The line with the findings that hang on it, their texts below."""
        codes = " ".join(f"{one.code}:{one.severity}:{one.blame}" for one in self.findings)
        mark = "  " if self.is_as_expected() else "! "
        shown = self.text if len(self.text) < 160 else self.text[:160] + "…"
        wanted = "" if self.is_as_expected() else f"   (expected {' '.join(self.expected) or 'nothing'})"
        notes = [f"        {one.code}: {one.text}" for one in self.findings]
        return "\n".join([f"{mark}{shown}" + (f"  ⟵ {codes}" if codes else "") + wanted, *notes])


@dataclass
class Played:
    """A dialogue after it was played."""

    lines: list[Line]
    events: list[Event]
    records: list[Record]
    """What the decoder was fed, from which a capture can be made."""

    @property
    def findings(self) -> list[Finding]:
        """All findings, in the order in which the decoder gave them."""
        return [event for event in self.events if isinstance(event, Finding)]

    def codes(self) -> list[str]:
        """The codes of all findings, in order of the lines."""
        return [one.code for line in self.lines for one in line.findings]

    def __str__(self) -> str:
        return "\n".join(line.as_played() for line in self.lines)


def check_dialogue(text: str) -> Played:
    """Play ``text`` and compare; raises AssertionError with the dialogue as it was played."""
    played = play(text)
    assert all(line.is_as_expected() for line in played.lines), f"findings differ:\n{played}"
    return played


def play(text: str, checks: list[Check] | None = None) -> Played:
    """Play a dialogue; ``checks`` instead of the registered ones. Raises DialogueError if it cannot be read."""
    lines = [_line(number, raw) for number, raw in enumerate(text.splitlines(), 1) if raw.strip()]
    stage: type[Stage] = PipeStage
    if any(line.text == "@http" for line in lines):
        from tests.http_dialogue import HttpStage

        stage = HttpStage
    return stage(lines, list(load().values()) if checks is None else checks).play()


def blocks(markdown: str) -> list[str]:
    """The dialogues in a page: its code blocks that are marked ``dialogue``."""
    return re.findall(r"^```dialogue\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)


def _line(number: int, raw: str) -> Line:
    margin = _MARGIN.search(raw)
    text = raw if margin is None else raw[: margin.start()]
    return Line(number, text.strip(), [] if margin is None else margin[1].split(), is_more=text[:1].isspace())


def _matches(finding: Finding, words: str) -> bool:
    wanted = words.split(":")
    return [finding.code, finding.severity, finding.blame][: len(wanted)] == wanted


class Stage:
    """Feeds a decoder line by line and remembers which events came of which line."""

    openings: tuple[Record, ...] = ()

    def __init__(self, lines: list[Line], checks: list[Check]) -> None:
        self.lines = lines
        self.t = 0
        self._line_of: dict[int, Line] = {}
        self._events: list[Event] = []
        self.records: list[Record] = list(self.openings)
        settings = self._settings(checks)
        self._decoder = Decoder(**settings)
        for opening in self.openings:
            self._decoder.feed(opening)

    def play(self) -> Played:
        if not self.lines:
            raise DialogueError("the dialogue is empty")
        for line in self.lines:
            if not line.text.startswith(("#", "@late", "@limit", "@break", "@http")):
                self.t += STEP_US
                self._act(line)
        self.take(self.lines[-1], self._decoder.finish())
        by_line: dict[int, list[Finding]] = defaultdict(list)
        for event in self._events:
            if isinstance(event, Finding):
                by_line[self._line_of[event.at].number].append(event)
        for line in self.lines:
            line.findings = by_line[line.number]
        return Played(self.lines, self._events, self.records)

    def act(self, line: Line) -> bool:
        """Do what a line says; False if it is none of this kind of dialogue."""
        raise NotImplementedError

    def feed(self, line: Line, kind: str, channel: int | None, body: Any) -> None:
        """Give the decoder a record."""
        record = Record(self.t, kind, channel, body)
        self.records.append(record)
        self.take(line, self._decoder.feed(record))

    def take(self, line: Line, events: list[Event]) -> None:
        """Note which line the events came of."""
        for event in events:
            if not isinstance(event, Finding):
                self._line_of[event.n] = line
        self._events += events

    def _settings(self, checks: list[Check]) -> dict[str, Any]:
        late, limit = False, DEFAULT_FRAME_LIMIT
        for line in self.lines:
            word, _, argument = line.text.partition(" ")
            late = late or word == "@late"
            if word == "@limit":
                limit = int(argument)
            elif word == "@break":
                if argument not in {one.code for one in checks}:
                    raise DialogueError(f"line {line.number}: there is no check {argument!r}")
                checks = [replace(one, function=_broken) if one.code == argument else one for one in checks]
        return {"runner": Runner(checks), "joined_late": late, "frame_limit": limit}

    def _act(self, line: Line) -> None:
        pause = _PAUSE.match(line.text)
        if pause is not None:
            self.t += int(float(pause[1]) * (1000 if pause[2] == "ms" else 1_000_000)) - STEP_US
            self.take(line, self._decoder.advance(self.t))
        elif line.text.startswith("X>"):
            self._damage(line, line.text[2:].strip())
        elif line.text.startswith("N>"):
            self.feed(line, "comment", None, {"text": line.text[2:].strip(), "by": "mcpsniff"})
        elif not self.act(line):
            raise DialogueError(f"line {line.number} is none of a dialogue: {line.text}")

    def _damage(self, line: Line, rest: str) -> None:
        """As a reader does: a gap in the stream, and a finding that says what is wrong with the file."""
        self.feed(line, "gap", None, {"bytes": 0, "why": "damage"})
        at = max(self._line_of)
        self.take(line, [damage_finding(at, 0, self.t, rest)])


class PipeStage(Stage):
    """A dialogue of a wrapped server."""

    openings = OPENINGS
    _input_closed = False
    _latest = (0, 0, 0)

    def feed(self, line: Line, kind: str, channel: int | None, body: Any) -> None:
        if kind == "chunk" and channel is not None:
            start = self._offsets[channel]
            self._offsets[channel] += len(body)
            self._latest = channel, start, len(body)
        super().feed(line, kind, channel, body)

    @cached_property
    def _offsets(self) -> dict[int, int]:
        return dict.fromkeys(CHANNELS.values(), 0)

    def act(self, line: Line) -> bool:
        side, mark, rest = line.text[:1], line.text[1:2], line.text[2:].strip()
        if line.text.startswith("@open "):
            self._say(line, handshake(line.text[6:].strip()))
        elif line.text == "@modern":
            self._say(line, discovery())
        elif side in CHANNELS and mark == "|":
            self.feed(line, "chunk", CHANNELS[side], bytes_of(rest, line))
        elif side in CHANNELS and mark == ">":
            self._speak(line, side, rest)
        elif side == "G" and mark == ">":
            self._gap(line, rest)
        elif side == "A" and mark in (">", "|"):
            self._edit(line, rest)
        else:
            return False
        return True

    def _edit(self, line: Line, rest: str) -> None:
        found = _EDIT.match(rest)
        if found is None:
            raise DialogueError(f"line {line.number} does not say who changed what: {line.text}")
        what, text = found["what"], rest[found.end() :]
        by = {"by": found["who"].strip('"'), **({"why": found["why"]} if found["why"] else {})}
        channel, start, length = self._latest
        left = bytes_of(text, line) if line.text[1] == "|" else spelt_out(text).encode() + b"\n"
        if what in CHANNELS:
            channel, length = CHANNELS[what], 0
            start = self._offsets[channel]
        if what == "HOLD":
            pause = _PAUSE.match(f"+ {text}")
            us = int(float(pause[1]) * (1000 if pause[2] == "ms" else 1_000_000)) if pause is not None else 0
            self.feed(line, "hold", channel, {"start": start, "length": length, "us": us, **by})
            return
        data = b"" if what == "DROP" else left
        self.feed(line, "rewrite", channel, {"start": start, "length": length, "data": data, **by})

    def _speak(self, line: Line, side: str, rest: str) -> None:
        end = _END.match(rest)
        if side == "C" and rest == "EOF":
            self._input_closed = True
            self.feed(line, "close", 0, {"how": "eof"})
        elif side == "C" and rest == "HANGS UP":
            self.feed(line, "close", 1, {"how": "aborted", "error": "the client closed its end"})
            self._close_input(line, "the client closed its end")
        elif side == "S" and rest == "EOF":
            self.feed(line, "close", 1, {"how": "eof"})
        elif side == "S" and rest.startswith("FAILED "):
            self.feed(line, "close", 1, {"how": "error", "status": 127, "error": rest[7:]})
        elif side == "S" and end is not None:
            how = {"EXIT": ("exit", "status"), "KILLED": ("killed", "signal")}[end[1]]
            sent = {"sent": end[3].split(","), "by": "client"} if end[3] else {}
            self.feed(line, "close", 1, {"how": how[0], how[1]: int(end[2]), **sent})
            self._close_input(line, "the server ended")
        else:
            self.feed(line, "chunk", CHANNELS[side], spelt_out(rest).encode() + b"\n")

    def _close_input(self, line: Line, why: str) -> None:
        if not self._input_closed:
            self._input_closed = True
            self.feed(line, "close", 0, {"how": "aborted", "error": why})

    def _gap(self, line: Line, rest: str) -> None:
        side, count, why = rest.split(maxsplit=2)
        self.feed(line, "gap", CHANNELS[side], {"bytes": int(count), "why": why})

    def _say(self, line: Line, said: list[tuple[str, dict[str, Any]]]) -> None:
        for side, message in said:
            data = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
            self.feed(line, "chunk", CHANNELS[side], data)


def _broken(_item: object, _conversation: object) -> None:
    raise RuntimeError("broken on purpose")


def spelt_out(text: str) -> str:
    """``text`` with what its variables stand for."""
    return text.replace("$ENVELOPE", json.dumps(ENVELOPE, separators=(",", ":")))


def handshake(revision: str) -> list[tuple[str, dict[str, Any]]]:
    """The three messages of the legacy handshake, without ``jsonrpc``."""
    client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    server = {
        "protocolVersion": revision,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    }
    return [
        ("C", {"id": 0, "method": "initialize", "params": client}),
        ("S", {"id": 0, "result": server}),
        ("C", {"method": "notifications/initialized"}),
    ]


def discovery() -> list[tuple[str, dict[str, Any]]]:
    """server/discover and its result, without ``jsonrpc``."""
    found = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    return [
        ("C", {"id": "discover", "method": "server/discover", "params": {"_meta": ENVELOPE}}),
        ("S", {"id": "discover", "result": found}),
    ]


def bytes_of(source: str, line: Line) -> bytes:
    """The value of ``b"x" * 3 + b"y"``, without evaluating anything else."""

    def value(node: ast.expr) -> bytes:
        match node:
            case ast.Constant(value=bytes() as data):
                return data
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return value(left) + value(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int() as count)):
                return value(left) * count
        raise DialogueError(f"line {line.number}: not a bytes literal: {source}")

    try:
        return value(ast.parse(source, mode="eval").body)
    except SyntaxError as error:
        raise DialogueError(f"line {line.number}: not a bytes literal: {source}") from error
