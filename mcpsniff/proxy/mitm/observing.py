"""Observing hooks of addons in a mitmproxy that belongs to its user: a thread follows the capture and calls them."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

from mcpsniff.capture.follower import INTERVAL, Follower
from mcpsniff.capture.records import Record
from mcpsniff.errors import CaptureError
from mcpsniff.hooks.events import OBSERVING
from mcpsniff.hooks.manager import Told
from mcpsniff.proxy.mitm.scripts import Scripts
from mcpsniff.transcript.live.session import Facts, LiveSession


class Observing:
    """Tells addons among ``scripts`` of the capture at ``path``, as it grows."""

    def __init__(self, path: str, scripts: Scripts, say: Callable[[str], object]) -> None:
        self._follower = Follower(path)
        self._path = path
        self._scripts = scripts
        self._say = say
        self._addons: list[Any] = []
        self._session: LiveSession | None = None
        self._told: Told | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observing hooks", daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Nothing more is recorded: let what came last be told, for at most so many seconds."""
        self._over.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._say("the observing hooks did not come to an end")

    def _run(self) -> None:
        try:
            while not self._over.wait(INTERVAL):
                self._look()
            self._look()
            self._tell(self._follower.finish())
            if self._session is not None and self._told is not None:
                self._told.feed(self._session.finish().shown)
        except CaptureError as error:
            self._say(f"no addon observes any more: {error}")
        except Exception as error:  # noqa: BLE001 - a bug of ours: the traffic goes on
            self._say(f"no addon observes any more: internal error: {error!r}")
        finally:
            self._follower.close()

    def _look(self) -> None:
        """Tell of what is new."""
        records = self._follower.poll()
        header = self._follower.header
        if self._session is None and header is not None:
            facts = Facts(header, self._path, self._follower.joined_late, self._follower.damage)
            self._session = LiveSession(facts, header.label or "mitmproxy")
            self._told = Told(cast(Any, self._addons), self._session.conversation)
        if records:
            self._addons[:] = self._scripts.having(OBSERVING)
        self._tell(records)

    def _tell(self, records: Sequence[Record]) -> None:
        if self._session is not None and self._told is not None:
            for record in records:
                self._told.feed(self._session.feed(record).shown)
