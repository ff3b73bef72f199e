"""`mcpsniff run` with a proxy that is none, for what has nothing to do with one: `python -m tests.mitm.fake_run`.

The environment may hold FAKE_SEEN, JSON of what the proxy is to have seen.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpsniff.cli.options import RUN, parse
from mcpsniff.proxy.client import launch
from mcpsniff.proxy.recording import Recording

URL = "http://127.0.0.1:9"
AUTHORITY = Path(__file__).with_name("fake_ca.pem")


@dataclass
class Seen:
    connections: int = 0
    recorded: int = 0
    unrecorded: int = 0
    hosts: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    suspects: list[tuple[str, str]] = field(default_factory=list)
    disagreed: list[tuple[str, str]] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    answered: int = 0
    rejected: int = 0
    rejections: list[str] = field(default_factory=list)


class Session:
    ca_path = str(AUTHORITY)

    def __init__(self, options: Mapping[str, Any], label: str, only: Sequence[str]) -> None:
        self.recording = Recording("forward", (), {**options, "label": label})

    def start(self) -> str:
        self.recording.start()
        return URL

    def finish(self) -> Seen:
        self.recording.finish()
        seen = Seen(**json.loads(os.environ.get("FAKE_SEEN", "{}")))
        for pairs in (seen.refusals, seen.suspects, seen.disagreed):
            pairs[:] = [(place, what) for place, what in pairs]
        return seen


if __name__ == "__main__":
    options, words = parse(RUN, sys.argv[1:])
    sys.exit(launch(words, options, Session))
