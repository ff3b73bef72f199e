"""Exchanges of two captures: which is which, and what came of them here and there.

Requests are the same if method and params are (`mcpsniff.replay.match`), ids, ``_meta``, cursors and the params of
``initialize`` aside; of those that are left, also if they are by the rules. Of equal requests the first is the first,
but those that HTTP refused come last: clients look for the transport, or for a token, before they ask.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final

from mcpsniff.protocol.exchanges import ABANDONED, ANSWERED, OPEN
from mcpsniff.protocol.revisions import SERVER_INFO_KEY
from mcpsniff.replay.compare import compare_messages
from mcpsniff.replay.compare_lists import Forms, Place
from mcpsniff.replay.compare_text import brief
from mcpsniff.replay.diff.facts import LISTS, OPENINGS, Ask, Server
from mcpsniff.replay.diff.report import ADDED, CHANGED, MISSING, Entry
from mcpsniff.replay.match import request_keys
from mcpsniff.replay.normalise import Pairs, Pattern, Rules

NO_ANSWER: Final = "no answer"
UNKNOWN: Final = "unknown"
"""What came of a request whose answer may be in what the capture lacks."""
LONGEST_PARAMS: Final = 100

_TOLD_ELSEWHERE: Final = (Pattern(f'result._meta["{SERVER_INFO_KEY}"]'),)
"""What is compared once, and not again in every answer."""


def exchange_entries(
    one: Server | None, other: Server | None, rules: Rules, pairs: Pairs, where: str
) -> tuple[int, list[Entry]]:
    """How many exchanges with a server are in both captures, and what is to be said of all."""
    ours, theirs = one.asks if one else [], other.asks if other else []
    matched, missing, added = match(ours, theirs, rules)
    rules = Rules(rules.names, rules.tolerance, rules.ignored + _TOLD_ELSEWHERE)
    entries: list[tuple[int, Entry]] = []
    for ask, partner in matched:
        in_lists = one is not None and other is not None and _is_of(ask, one) and _is_of(partner, other)
        entry = _changed(ask, partner, rules, pairs, in_lists=in_lists)
        if entry is not None:
            entries.append((ask.request.n, entry))
    entries += [(ask.request.n, _alone(ask, MISSING)) for ask in missing]
    entries.sort(key=lambda item: item[0])
    found = [entry for _, entry in entries] + [_alone(ask, ADDED) for ask in added]
    for entry in found:
        entry.where = where
    return len(matched), found


def match(
    ours: Iterable[Ask], theirs: Iterable[Ask], rules: Rules
) -> tuple[list[tuple[Ask, Ask]], list[Ask], list[Ask]]:
    """The requests that are the same, those that only the first has, and those that only the second has."""
    forms, at, kept = Forms(rules), Place.of(("params",)), list[Any]()

    def by_rules(ask: Ask) -> Hashable:
        kept.append(_counted(ask))  # what has a form must stay alive
        return forms(kept[-1], at)

    matched, missing, added = _matched(ours, theirs, lambda ask: request_keys(ask.exchange.method, _params(ask))[-1])
    also, missing, added = _matched(missing, added, by_rules)
    return matched + also, missing, added


def _matched(
    ours: Iterable[Ask], theirs: Iterable[Ask], key: Callable[[Ask], Hashable]
) -> tuple[list[tuple[Ask, Ask]], list[Ask], list[Ask]]:
    places: dict[Hashable, deque[Ask]] = {}
    ours, theirs = (sorted(asks, key=lambda ask: (ask.exchange.is_refused, ask.request.n)) for asks in (ours, theirs))
    for ask in theirs:
        places.setdefault((ask.exchange.direction, ask.exchange.method, key(ask)), deque()).append(ask)
    matched: list[tuple[Ask, Ask]] = []
    missing: list[Ask] = []
    for ask in ours:
        partners = places.get((ask.exchange.direction, ask.exchange.method, key(ask)))
        if partners:
            matched.append((ask, partners.popleft()))
        else:
            missing.append(ask)
    left = {id(ask) for partners in places.values() for ask in partners}
    return matched, missing, sorted((ask for ask in theirs if id(ask) in left), key=lambda ask: ask.request.n)


def _params(ask: Ask) -> Any:
    return ask.request.body.get("params") if isinstance(ask.request.body, dict) else None


def _counted(ask: Ask) -> Any:
    """The params without what never counts."""
    params = _params(ask)
    return {name: value for name, value in params.items() if name != "_meta"} if isinstance(params, dict) else params


def _is_of(ask: Ask, server: Server) -> bool:
    """True if the answer is a page of the list that is compared as definitions."""
    listing = server.lists.get(ask.exchange.method)
    return listing is not None and listing.number == ask.listed


def came_to(ask: Ask) -> str:
    """What came of a request, in words."""
    exchange = ask.exchange
    if exchange.may_be_answered:
        return UNKNOWN
    if exchange.state in (OPEN, ABANDONED):
        return f"refused with HTTP {exchange.status}" if exchange.is_refused else NO_ANSWER
    return exchange.state


def _changed(ask: Ask, partner: Ask, rules: Rules, pairs: Pairs, *, in_lists: bool) -> Entry | None:
    """What is to be said of an exchange that is in both captures."""
    states = came_to(ask), came_to(partner)
    is_known = UNKNOWN not in states
    told_elsewhere = in_lists or (ask.exchange.method in OPENINGS and states == (ANSWERED, ANSWERED))
    differences = []
    if ask.answer is not None and partner.answer is not None and not told_elsewhere:
        differences = compare_messages(ask.answer, partner.answer, rules, pairs)
    if not differences and (states[0] == states[1] or not is_known):
        return None
    remark = f"{states[0]} → {states[1]}" if states[0] != states[1] else ""
    facts = {"a": _facts(ask), "b": _facts(partner)}
    return Entry(CHANGED, "exchange", _title(ask, partner), remark, differences=differences, facts=facts)


def _alone(ask: Ask, kind: str) -> Entry:
    facts = {"a" if kind == MISSING else "b": _facts(ask)}
    return Entry(kind, "exchange", _title(ask), came_to(ask), facts=facts)


def _title(ask: Ask, partner: Ask | None = None) -> str:
    exchange = ask.exchange
    number = f"#{ask.request.n}" if partner is None else f"#{ask.request.n} and #{partner.request.n}"
    arrow = "" if exchange.direction == "c2s" else "← "
    pieces = [f"{number} {arrow}{exchange.method}"]
    if exchange.target:
        pieces.append(exchange.target)
    params = _counted(ask)
    arguments = params.get("arguments") if exchange.target and isinstance(params, dict) else params
    if arguments and exchange.method not in (*OPENINGS, *LISTS):
        pieces.append(brief(arguments, LONGEST_PARAMS))
    return " ".join(pieces)


def _facts(ask: Ask) -> dict[str, Any]:
    facts = {"n": ask.request.n, "direction": ask.exchange.direction, "method": ask.exchange.method}
    if ask.exchange.target is not None:
        facts["target"] = ask.exchange.target
    if ask.exchange.latency_us is not None:
        facts["latency_us"] = ask.exchange.latency_us
    return facts | {"state": came_to(ask)}
