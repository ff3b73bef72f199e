"""Find the recorded scene for what a client says now.

Two requests are the same if method and params are, with what differs from run to run left out:

* ``_meta`` (progress tokens, trace contexts, in 2026-07-28 the client and its revision), and ids, which are no params;
* the params of ``initialize``: another client, or another revision of the same, still wants to be let in;
* what ``ignore`` names.

The order of names does not count, nor whether there are no params or empty ones; 1 and 1.0 are two values, as JSON
readers may see them. A cursor is first compared as it is and then by its position: the next page of the same list. The
retry of 2026-07-28 that brings input is first compared as it is and then by its ``requestState`` alone, since what a
person answers may differ.

Equal requests get the recorded answers one after the other, and then the last one again. Each client's session walks
through one recorded conversation, in the order in which they were opened, and looks into the others only for what its
own does not have. Over HTTP in 2026-07-28 there are no sessions: in a sequence all clients walk through it together.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from mcpsniff.protocol.exchange import target_of
from mcpsniff.protocol.message import NOTIFICATION, Message
from mcpsniff.protocol.paths import Places
from mcpsniff.protocol.revisions import METHODS
from mcpsniff.protocol.talk import MODERN
from mcpsniff.replay.ignoring import without
from mcpsniff.replay.script import Scene, Talk

EXACT: Final = "exact"
METHOD: Final = "method"
SEQUENCE: Final = "sequence"

WAYS: Final = {
    EXACT: "method and params",
    METHOD: "the method and what it is about (the tool's name, the URI); its arguments do not count",
    SEQUENCE: "the next recorded request of that method, whatever it asks",
}
"""The ways of matching, as ``--match`` names them."""

LONGEST_KEPT: Final = 256
"""Bytes of params that an index keeps as they are."""

NOWHERE: Final = Places(())
_CURSOR: Final = "cursor"

type Key = tuple[str, bytes]
"""A method and what counts of its params."""


class Rules(NamedTuple):
    """How requests are compared."""

    way: str = EXACT
    """A key of WAYS."""
    ignore: Places = NOWHERE
    """What does not count, see `ignoring`."""


class Miss(NamedTuple):
    """A request that was never recorded."""

    asked: Message
    nearest: Scene | None
    """The recorded request that is most like it: of the same method, or None."""
    others: tuple[str, ...] = ()
    """Where nothing was recorded about what it asks for: what that method was recorded for, such as names of tools."""


def canonical(value: Any) -> bytes:
    """A JSON value as bytes that are equal where the values are: names sorted, 1 and 1.0 apart, no white space."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER)
    except orjson.JSONEncodeError:
        pass
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_spelt).encode(errors="surrogatepass")
    except (RecursionError, ValueError, TypeError):
        return repr(type(value)).encode()


def _spelt(value: Any) -> str:
    return f"decimal {value}" if isinstance(value, Decimal) else repr(type(value))


DEFAULT_RULES: Final = Rules()


def request_keys(method: str, params: Any, rules: Rules = DEFAULT_RULES) -> list[Key]:
    """What a message is found by, the strictest first; of two messages that are the same the first keys are equal."""
    if method == "initialize" or rules.way == SEQUENCE:
        return [(method, b"")]
    if rules.way == METHOD:
        return [(method, _target(method, params)), (method, b"")]
    counted = counted_params(params, rules)
    if not isinstance(counted, dict):
        return [(method, _kept(counted))]
    keys = [(method, _kept(counted))]
    if _CURSOR in counted:
        keys.append((method, _kept({**counted, _CURSOR: None}) + b" at any page"))
    if "requestState" in counted:
        without = {name: value for name, value in counted.items() if name != "inputResponses"}
        keys.append((method, _kept(without) + b" with any input"))
    return keys


def counted_params(params: Any, rules: Rules = DEFAULT_RULES) -> Any:
    """What counts of the params of a request; params of none are empty ones."""
    if not isinstance(params, dict):
        return {} if params is None else params
    counted = {name: value for name, value in params.items() if name != "_meta"}
    return without(counted, rules.ignore) if rules.ignore else counted


def _kept(value: Any) -> bytes:
    """What stands for a value in the index, of which there is one for each request: short, or its hash."""
    spelt = canonical(value)
    if len(spelt) > LONGEST_KEPT:
        return b"blake2b " + blake2b(spelt, digest_size=32).digest()
    return bytes(memoryview(spelt))  # a copy: what orjson returns keeps the 4 KiB it began with


def _target(method: str, params: Any) -> bytes:
    named = METHODS.get(method)
    if named is None or named.target is None or not isinstance(params, dict):
        return b""
    return canonical(params.get(named.target))


def key_of(message: Message, rules: Rules = DEFAULT_RULES) -> Key:
    """The strictest key of a message."""
    return request_keys(message.method or "", message.body.get("params"), rules)[0]


class Matcher:
    """The scenes of some talks, to be found by what cues them; and which of them have been played."""

    def __init__(self, talks: Sequence[Talk], rules: Rules = DEFAULT_RULES) -> None:
        self.talks = list(talks)
        self.rules = rules
        self.played: dict[Scene, int] = {}
        """How often each scene was played."""
        self.misses: list[Miss] = []
        """The first of them: at most MISSES_KEPT, and of at most so many bytes in all."""
        self.missed = 0
        """How many there are in all."""
        self._kept = 0
        self._leaves: dict[Scene, set[bytes]] = {}
        self._bound: set[int] = set()
        self._given: dict[int, set[Scene]] = {
            at: set() for at, talk in enumerate(talks) if rules.way == SEQUENCE and talk.kind == MODERN
        }
        """By conversation that all clients share: what was given of it."""
        self._index = [_Index(talk, rules) for talk in self.talks]

    def begin(self) -> "Walk":
        """A client has come: what it says is looked up by the walk."""
        return Walk(self)

    def given(self, at: int) -> set[Scene] | None:
        """What was given of a conversation that all clients go through together; None for any other."""
        return self._given.get(at)

    def miss(self, miss: Miss) -> None:
        """Remember that something was asked that was never recorded."""
        self.missed += 1
        self._kept += len(miss.asked.raw)
        if len(self.misses) < MISSES_KEPT and self._kept <= MISSED_BYTES_KEPT:
            self.misses.append(miss)

    def forgive(self, miss: Miss) -> None:
        """Take a miss back: there is an answer to it, although it is not in the capture."""
        self.missed -= 1
        self._kept -= len(miss.asked.raw)
        if miss in self.misses:
            self.misses.remove(miss)

    def never_asked(self) -> list[Scene]:
        """The recorded requests that no client has made."""
        return [scene for talk in self.talks for scene in talk.requests() if scene not in self.played]

    def bind(self, wanted: "Wanted") -> int:
        """Which conversation a client goes through, given what it says: the next that has it, or the last; -1: none."""
        has_it = [at for at, index in enumerate(self._index) if any(index.find(key, wanted) for key in wanted.keys)]
        waiting = [at for at in has_it if self._waits(at, wanted)]
        free = [at for at in has_it if at not in self._bound]
        chosen = waiting[0] if waiting else free[0] if free else has_it[-1] if has_it else -1
        self._bound.add(chosen)
        return chosen

    def _waits(self, at: int, wanted: "Wanted") -> bool:
        """True if nobody was given one of the scenes of ``initialize``: of several in one conversation, too.

        A client that hangs up before it knows its session, and the next one, are one conversation in a capture.
        """
        if not wanted.is_request or wanted.keys[0][0] != "initialize":
            return False
        found = (self._index[at].find(key, wanted) for key in wanted.keys)
        return any(scene not in self.played for scenes in found for scene in scenes)

    def look(self, at: int, wanted: "Wanted") -> tuple[int, Key, list[Scene]] | None:
        """The scenes for what is wanted, all under one key of one conversation: ``at``, or else the first other one."""
        order = sorted(range(len(self.talks)), key=lambda number: number != at)
        for key in wanted.keys:
            for number in order:
                if scenes := self._index[number].find(key, wanted):
                    return number, key, scenes
        return None

    def nearest(self, message: Message, at: int) -> Scene | None:
        """The recorded request most like one that was not recorded: of its method, best of its target, too."""
        candidates = [scene for talk in self.talks for scene in talk.requests() if scene.method == message.method]
        if not candidates:
            return None
        wanted, target = set(_leaves(message.params)), target_of(message)
        own = None if at < 0 else self.talks[at]

        def likeness(scene: Scene) -> tuple[bool, float, bool]:
            assert scene.cue is not None
            leaves = self._leaves.get(scene)
            if leaves is None:
                leaves = self._leaves[scene] = set(_leaves(scene.cue.params))
            shared = len(wanted & leaves) / (len(wanted | leaves) or 1)
            return (target_of(scene.cue) == target, shared, scene.talk is own)

        return max(candidates[:LOOKED_AT], key=likeness)

    def others(self, message: Message) -> tuple[str, ...]:
        """What the method of a message was recorded for, if never for what the message asks for; in that order."""
        target = target_of(message)
        if target is None:
            return ()
        found: dict[str, None] = {}
        for scene in (scene for talk in self.talks for scene in talk.requests() if scene.method == message.method):
            recorded = None if scene.cue is None else target_of(scene.cue)
            if recorded == target:
                return ()
            if recorded is not None:
                found[recorded] = None
        return tuple(found)


LOOKED_AT: Final = 1_000
"""Recorded requests of one method that are compared to find the nearest."""
_LEAVES: Final = 200
MISSES_KEPT: Final = 1_000
MISSED_BYTES_KEPT: Final = 64_000_000


def _leaves(value: Any) -> Iterable[bytes]:
    """Each value with its path, as far as they are few; enough to tell which of two params is nearer."""
    stack: list[tuple[str, Any]] = [("", value)]
    given = 0
    while stack and given < _LEAVES:
        path, item = stack.pop()
        if isinstance(item, dict) and item:
            stack += [(f"{path}.{name}", inner) for name, inner in item.items() if path or name != "_meta"]
        elif isinstance(item, list) and item:
            stack += [(f"{path}[{index}]", inner) for index, inner in enumerate(item[:_LEAVES])]
        else:
            given += 1
            yield f"{path}=".encode(errors="surrogatepass") + canonical(item)


class Wanted(NamedTuple):
    """What is looked for."""

    keys: list[Key]
    is_request: bool
    where: Callable[[Scene], bool] | None = None


class _Index:
    """The scenes of one talk by their keys."""

    def __init__(self, talk: Talk, rules: Rules) -> None:
        self._requests: dict[Key, list[Scene]] = {}
        self._notifications: dict[Key, list[Scene]] = {}
        for scene in talk.scenes:
            if scene.cue is None or scene.cue.method is None or not isinstance(scene.cue.body, dict):
                continue
            into = self._requests if scene.is_request else self._notifications
            for key in request_keys(scene.cue.method, scene.cue.body.get("params"), rules):
                into.setdefault(key, []).append(scene)

    def find(self, key: Key, wanted: Wanted) -> list[Scene]:
        """The scenes with this key that fit, in the order in which they were recorded."""
        scenes = (self._requests if wanted.is_request else self._notifications).get(key, [])
        return scenes if wanted.where is None else [scene for scene in scenes if wanted.where(scene)]


class Walk:
    """One client's way through the recorded conversations."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._at = -1
        self._given: set[Scene] = set()
        """What was given: equal requests get one answer after the other."""
        self._positions: dict[tuple[int, Key], int] = {}
        """By conversation and key: how many scenes from the first on were given."""

    def find(self, message: Message, where: Callable[[Scene], bool] | None = None) -> Scene | Miss | None:
        """The scene that a request or a notification cues now.

        A request without one is a `Miss`, which the matcher remembers; a notification without one gives None.
        ``where`` narrows the choice: a scene for which it is false is taken only if there is no other.
        """
        matcher = self._matcher
        keys = request_keys(message.method or "", message.body.get("params"), matcher.rules)
        wanted = Wanted(keys, message.kind != NOTIFICATION, where)
        scene = self._next(wanted, message) or (
            None if where is None else self._next(wanted._replace(where=None), message)
        )
        if scene is not None:
            matcher.played[scene] = matcher.played.get(scene, 0) + 1
            return scene
        if not wanted.is_request:
            return None
        miss = Miss(message, matcher.nearest(message, self._at), matcher.others(message))
        matcher.miss(miss)
        return miss

    @property
    def talk(self) -> Talk | None:
        """The recorded conversation it goes through; None before the client has said anything that was recorded."""
        return None if self._at < 0 else self._matcher.talks[self._at]

    def _next(self, wanted: Wanted, message: Message) -> Scene | None:
        """The first scene that was not given yet, or the last again."""
        found = self._matcher.look(self._at, wanted)
        if found is None:
            return None
        begins = message.method == "initialize" and wanted.is_request
        if self._at < 0 or (begins and (found[0] != self._at or self._new(found, wanted) is None)):
            self._at = self._matcher.bind(wanted)
            found = self._matcher.look(self._at, wanted) or found
        scene = self._opening(found[2]) if begins else self._new(found, wanted) or found[2][-1]
        self._given.add(scene)
        shared = self._matcher.given(found[0])
        if shared is not None:
            shared.add(scene)
        return scene

    def _opening(self, scenes: list[Scene]) -> Scene:
        """The first ``initialize`` that no client was given, or the last again."""
        return next((scene for scene in scenes if scene not in self._matcher.played), scenes[-1])

    def _new(self, found: tuple[int, Key, list[Scene]], wanted: Wanted) -> Scene | None:
        """The first of these scenes that was not given yet."""
        number, key, scenes = found
        shared = self._matcher.given(number)
        if shared is not None:
            return self._new_to_all(shared, scenes)
        start = self._positions.get((number, key), 0) if wanted.where is None else 0
        for position in range(start, len(scenes)):
            if scenes[position] not in self._given:
                if wanted.where is None:
                    self._positions[number, key] = position
                return scenes[position]
        return None

    def _new_to_all(self, given: set[Scene], scenes: list[Scene]) -> Scene | None:
        """The first of these scenes that no client was given; when none is left, a client without any begins again."""
        if given.issuperset(scenes) and self._given.isdisjoint(scenes):
            given.difference_update(scenes)
        return next((scene for scene in scenes if scene not in given), None)
