"""The ids and tokens of a live session in the place of the recorded ones."""

from collections.abc import Mapping
from typing import Final

from mcpsniff.protocol.exchange import token_key
from mcpsniff.protocol.message import IdKey, Message
from mcpsniff.replay import spelling
from mcpsniff.replay.causes import SUBSCRIPTION_KEY
from mcpsniff.replay.script import Scene, Talk, is_answering, is_cancel, is_progress
from mcpsniff.replay.spelling import Path

LISTEN: Final = "subscriptions/listen"


def twin(token: str) -> str | None:
    """The id that is spelt alike and of the other type: ``"7"`` for ``7``; None if it has none."""
    if not token.startswith('"'):
        return f'"{token}"'
    inner = token[1:-1]
    return inner if inner.removeprefix("-").isdecimal() and inner.isascii() and str(int(inner)) == inner else None


class LiveIds:
    """One client's session: which live request stands for which recorded one, in both directions."""

    def __init__(self) -> None:
        self.requests: dict[int, Message] = {}
        """By the number of a recorded request of the client: the live one that was taken for it last."""
        self._used: dict[IdKey, tuple[Talk, set[int]]] = {}
        """The ids under which the server has asked, and for which recorded requests."""
        self._highest: dict[Talk, int] = {}

    def ask(self, recorded: Message, talk: Talk) -> tuple[str | None, IdKey | None]:
        """The id for a request of the server: the recorded one, or a fresh one if it was sent before."""
        token, key = recorded.id, recorded.key
        if key is None or token is None:
            return token, key
        used = self._used.setdefault(key, (talk, set()))
        if used[0] is talk and recorded.n not in used[1]:
            used[1].add(recorded.n)
        else:
            token, key = self._fresh(token, key, talk)
        return token, key

    def _fresh(self, token: str, key: IdKey, talk: Talk) -> tuple[str, IdKey]:
        if isinstance(key, str):
            number = 2
            while f"{key}-{number}" in self._used:
                number += 1
            fresh: IdKey = f"{key}-{number}"
            token = f'{token[:-1]}-{number}"'
        else:
            if talk not in self._highest:
                keys = [m.key for m in talk.messages if m.direction == "s2c" and m.method and isinstance(m.key, int)]
                self._highest[talk] = max((key for key in keys if isinstance(key, int)), default=0)
            used = [one for one in self._used if isinstance(one, int)]
            fresh = max([self._highest[talk], *used]) + 1
            token = str(fresh)
        self._used[fresh] = (talk, set())
        return token, fresh

    def tokens(
        self, message: Message, scene: Scene, live: Message | None, asked: Mapping[int, str]
    ) -> Mapping[Path, str] | None:
        """What to put into a recorded message of the server; None if it must not be sent at all.

        ``live`` cued the scene, in which the server has sent the requests ``asked``: recorded numbers, and live ids as
        JSON tokens. A request of the server itself is to be sent by `ask`.
        """
        found: dict[Path, str] = {}
        if is_answering(message):
            found = self._answer(message, scene, live)
        elif is_progress(message) and message.link is not None:
            token = _offered(self._live(message.link.request, scene, live))
            if token is None:
                return None
            found[spelling.TOKEN] = token
        elif is_cancel(message) and message.link is not None:
            number = message.link.request
            meant = self._live(number, scene, live)
            token = asked.get(number) if message.link.direction == "s2c" else None if meant is None else meant.id
            if token is not None:
                found[spelling.CANCELLED_ID] = token
        if message.meta and SUBSCRIPTION_KEY in message.meta:
            token = self._subscription(message, scene, live)
            if token is not None:
                found[spelling.SUBSCRIPTION] = found[spelling.SUBSCRIPTION_RESULT] = token
        return found

    def _live(self, number: int, scene: Scene, live: Message | None) -> Message | None:
        """The live request for a recorded one: where it is the scene's own, the one that cued it."""
        return live if scene.cue is not None and scene.cue.n == number else self.requests.get(number)

    def _answer(self, message: Message, scene: Scene, live: Message | None) -> dict[Path, str]:
        """The live id, wrong in the way in which the recorded answer had it wrong."""
        other_type = message.fact("id-type-differs")
        number = message.link.request if message.link is not None else None if other_type is None else other_type.n
        meant = None if number is None else self._live(number, scene, live)
        if meant is None or meant.id is None or message.id in (None, "null"):
            return {}
        if other_type is not None:
            wrong = twin(meant.id)
            return {} if wrong is None else {spelling.ID: wrong}
        recorded = None if message.link is None else message.link.id
        if message.id != recorded and message.id is not None and message.id.endswith(".0"):
            return {spelling.ID: f"{meant.key}.0" if isinstance(meant.key, int) else meant.id}
        return {spelling.ID: meant.id}

    def _subscription(self, message: Message, scene: Scene, live: Message | None) -> str | None:
        """The id of the live request that subscribed to what this is about."""
        key = token_key(message.meta.get(SUBSCRIPTION_KEY))
        cues = [one.cue for one in scene.talk.scenes if one.method == LISTEN and one.cue is not None]
        cue = next((cue for cue in reversed(cues) if cue.key == key and cue.n <= message.n), None)
        meant = None if cue is None else self._live(cue.n, scene, live)
        return None if meant is None else meant.id


def _offered(live: Message | None) -> str | None:
    """The token that a request offered; None if it offered none, and so wants no progress (MCP progress)."""
    meta = {} if live is None else live.params.get("_meta")
    if live is None or not isinstance(meta, dict) or token_key(meta.get("progressToken")) is None:
        return None
    return spelling.token_of(live.raw, spelling.OFFERED_TOKEN)
