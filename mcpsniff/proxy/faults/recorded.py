"""The faults that a capture has, by the places of their messages."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.records import HOLD, REWRITE
from mcpsniff.errors import CaptureError, UsageError
from mcpsniff.proxy.faults.chosen import Strike
from mcpsniff.proxy.faults.places import PLACE
from mcpsniff.proxy.faults.spec import kind_of, read_value

_FAULT: Final = re.compile(rf"fault (\S+(?: \+ \S+)*) \(({PLACE})\)")


def faults_of(name: str, directory: str | None = None) -> dict[str, list[Strike]]:
    """Read the faults of a capture: a file, or a label as `mcpsniff show` takes it.

    Raises UsageError for what cannot be read, for a capture without faults, and for a fault that is not known here.
    """
    places: dict[str, list[Strike]] = {}
    try:
        path = find(name, directory).path
        for why in _reasons(path):
            for said, place in _FAULT.findall(why):
                known = places.setdefault(place, [])
                known += [strike for strike in _strikes(said, path) if strike not in known]
    except CaptureError as error:
        raise UsageError(f"--fault-from: {error}") from None
    if not places:
        raise UsageError(f"--fault-from: {shown(path)} has no faults of --fault in it")
    return places


def _reasons(path: str) -> Iterator[str]:
    for record in open_capture(path).records():
        if record.kind in (REWRITE, HOLD):
            yield str(record.body.get("why", ""))


def _strikes(said: str, path: str) -> list[Strike]:
    strikes = []
    for one in said.split(" + "):
        name, has_value, value = one.partition("=")
        try:
            kind = kind_of(name)
            strikes.append(Strike(kind, read_value(unquote(value) if has_value else kind.default, kind.read)))
        except ValueError as error:
            raise UsageError(f"--fault-from: {shown(path)} has a fault {shown(one)}: {shown(str(error))}") from None
    return strikes
