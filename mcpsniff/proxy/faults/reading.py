"""Faults, from the options that state them."""

import os
from collections.abc import Callable, Mapping
from random import randrange
from typing import Any, Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError
from mcpsniff.proxy.faults.chosen import Again, Drawn, Strike
from mcpsniff.proxy.faults.interceptor import Faults
from mcpsniff.proxy.faults.kinds import STATUS
from mcpsniff.proxy.faults.recorded import faults_of
from mcpsniff.proxy.faults.spec import read

SEEDS: Final = 1_000_000
"""How many seeds there are to choose from where none is given."""


def faults_from(
    options: Mapping[str, Any], transport: str, say: Callable[[str], object] = lambda _: None
) -> list[Faults]:
    """The faults that options ask for: ``--fault``, ``--fault-seed``, ``--fault-from`` (looked for in ``--dir``).

    ``say`` is told what of a capture there cannot be on this transport. Raises UsageError.
    """
    words, seed, captures = options["fault"], options["fault_seed"], options["fault_from"]
    if captures and (words or seed is not None):
        raise UsageError("--fault-from repeats the faults of a capture, so it goes without --fault and --fault-seed")
    if not captures:
        if not words:
            raise UsageError("--fault-seed goes with --fault")
        return [Faults(Drawn([read(text, transport) for text in words], _number(seed)))]
    places: dict[str, list[Strike]] = {}
    for capture in captures:
        for place, strikes in faults_of(capture, options.get("dir")).items():
            places.setdefault(place, []).extend(strikes)
    name = " and ".join(os.path.basename(capture) for capture in captures)
    if transport == "stdio":
        places = _without_http(places, name, say)
    return [Faults(Again(places, name))]


def _without_http(places: dict[str, list[Strike]], name: str, say: Callable[[str], object]) -> dict[str, list[Strike]]:
    """What of it there is on pipes."""
    kept = {
        place: left
        for place, strikes in places.items()
        if (left := [strike for strike in strikes if strike.kind.name != STATUS])
    }
    number = sum(map(len, places.values())) - sum(map(len, kept.values()))
    if not kept:
        raise UsageError(f"--fault-from: {shown(name)} has only faults of HTTP (status), and these are pipes")
    if number:
        say(f"faults: {number} of {shown(name)} left out: a status is one of HTTP, and pipes have none")
    return kept


def _number(seed: str | None) -> int:
    if seed is None:
        return randrange(SEEDS)
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 18):
        raise UsageError(f"--fault-seed is a whole number, not {shown(seed) or 'nothing'}")
    return int(seed)
