"""The faults that a capture has, by the places of their messages."""

import re
from typing import Final
from urllib.parse import unquote

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.records import HOLD, REWRITE
from mcpsniff.errors import UsageError
from mcpsniff.proxy.faults.chosen import Strike
from mcpsniff.proxy.faults.places import PLACE
from mcpsniff.proxy.faults.spec import kind_of, read_value

_FAULT: Final = re.compile(rf"fault (\S+(?: \+ \S+)*) \(({PLACE})\)")


def faults_of(name: str, directory: str | None = None) -> dict[str, list[Strike]]:
    """Read the faults of a capture: a file, or a label as `mcpsniff show` takes it.

    Raises CaptureError for what is no capture, UsageError for one that has no faults, or one that is not known here.
    """
    path = find(name, directory).path
    places: dict[str, list[Strike]] = {}
    for record in open_capture(path).records():
        if record.kind in (REWRITE, HOLD):
            for said, place in _FAULT.findall(str(record.body.get("why", ""))):
                places.setdefault(place, []).extend(
                    strike for strike in _strikes(said, path) if strike not in places[place]
                )
    if not places:
        raise UsageError(f"--fault-from: {shown(path)} has no faults of --fault in it")
    return places


def _strikes(said: str, path: str) -> list[Strike]:
    strikes = []
    for one in said.split(" + "):
        name, _, value = one.partition("=")
        try:
            kind = kind_of(name)
            strikes.append(Strike(kind, read_value(unquote(value), kind.read)))
        except ValueError as error:
            raise UsageError(f"--fault-from: {shown(path)} has a fault {shown(one)}: {shown(str(error))}") from None
    return strikes
