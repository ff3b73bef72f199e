"""Which message of the client a line belongs to.

The rules, the first that says something wins:

1. an answer belongs to the scene of its request, also if its id is of the wrong type; progress to that of the request
   that offered the token;
2. in 2026-07-28 a notification with a subscription id belongs to the ``subscriptions/listen`` of that id;
3. over HTTP what comes on the stream of a POST belongs to what that POST carried (MCP transports, Streamable HTTP);
4. a cancel belongs to the scene of the request it ends;
5. an element of a batch that names nothing belongs to what another element of it names;
6. an error that names no request belongs to the latest message of the client, which it refuses;
7. else to the only request that is open, or to the client's latest message. A request for roots after the client said
   that it is ready, or that its roots have changed, belongs to that.

What a server says on pipes after the client has closed them, and that answers nothing, is its farewell.
"""

from typing import Final

from mcpsniff.protocol.exchange import Exchange, token_key
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, REQUEST, Message
from mcpsniff.protocol.revisions import META_PREFIX
from mcpsniff.replay.script import ENDLESS, Batch, Line, Scene, Talk, is_answering, is_cancel, is_progress

SUBSCRIPTION_KEY: Final = META_PREFIX + "subscriptionId"

_ASKS_FOR_ROOTS: Final = ("notifications/initialized", "notifications/roots/list_changed")


class Causes:
    """Makes the scenes of one talk from its messages, given in order."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.last: Scene | None = None
        """The scene of the client's latest message."""
        self._of_request: dict[int, Scene] = {}
        """By the number of a request of either side: the scene it belongs to."""
        self._open: dict[int, Scene] = {}
        """By its number: each request of the client that has no answer yet."""
        self._of_http: dict[int, Scene] = {}
        """By HTTP exchange: the first request that it carried, or else its first message."""
        self._batch: Batch | None = None
        self._named: Scene | None = None
        """The scene that an element of the batch names."""
        self._has_left = False

    def leave(self) -> None:
        """The client has closed the server's input."""
        self._has_left = True

    def batch(self, message: Message, elements: list[Message]) -> None:
        """A batch of the server; its elements are to be placed next."""
        self._batch = Batch(message)
        self._named = next((scene for one in elements if (scene := self._by_link(one.link, one)) is not None), None)

    def message(self, message: Message) -> Line | None:
        """Place a message; return its line, None if it is a cue."""
        self.talk.messages.append(message)
        if message.direction == "c2s":
            scene = self._of_client(message)
            if scene is None:
                self._cue(message)
                return None
        else:
            scene = self._of_server(message)
        if message.kind == REQUEST:
            self._of_request[message.n] = scene
        if message.link is not None and (is_answering(message) or is_cancel(message)):
            self._open.pop(message.link.request, None)
        line = Line(message.n, message.t, message=message, frame=message.frame)
        if scene.method in ENDLESS and message.direction == "s2c":
            line.after = self._led_to(scene)
        if message.direction == "s2c" and self._batch is not None and message.batch == self._batch.message.n:
            line.batch = self._batch
            line.batch.lines.append((scene, line))
        return add(scene, line)

    def of_http(self, number: int) -> Scene | None:
        """The scene that the request of an HTTP exchange cued."""
        return self._of_http.get(number)

    def current(self) -> Scene:
        """The scene of what has no cue of its own: the latest, or the one before the client's first message."""
        if self._has_left:
            if self.talk.farewell is None:
                self.talk.farewell = Scene(len(self.talk.scenes), self.talk, None)
            return self.talk.farewell
        return self.last if self.last is not None else self._begin(None)

    def _led_to(self, scene: Scene) -> Scene | None:
        """What the client has cued since the latest line of a subscription, and which may have led to the next one."""
        before = scene.lines[-1].t if scene.lines else 0 if scene.cue is None else scene.cue.t
        last = self.last
        return last if last is not None and last.cue is not None and last is not scene and last.cue.t > before else None

    # -- the client ------------------------------------------------------------------------------------------------

    def _of_client(self, message: Message) -> Scene | None:
        """The scene that a message of the client goes on with; None if it begins one."""
        link = message.link
        if is_answering(message):
            asked = None if link is None or link.direction != "s2c" else self._of_request.get(link.request)
            return asked if asked is not None else self.last
        if link is not None and (is_cancel(message) or is_progress(message)):
            return self._of_request.get(link.request)
        return None

    def _cue(self, message: Message) -> None:
        scene = self.last = self._begin(message)
        if scene.is_request:
            self._of_request[message.n] = self._open[message.n] = scene
        if message.http is not None:
            first = self._of_http.setdefault(message.http.number, scene)
            if scene.is_request and not first.is_request:
                self._of_http[message.http.number] = scene

    def _begin(self, cue: Message | None) -> Scene:
        scene = Scene(len(self.talk.scenes), self.talk, cue)
        self.talk.scenes.append(scene)
        if cue is None:
            self.last = scene
        return scene

    # -- the server ------------------------------------------------------------------------------------------------

    def _of_server(self, message: Message) -> Scene:
        found = self._by_link(message.link, message)
        if found is None and SUBSCRIPTION_KEY in message.meta:
            found = self._by_subscription(message)
        if found is None and message.http is not None:
            found = (
                self._of_http.get(message.http.origin)
                if message.http.method == "POST" or message.http.resumed
                else None
            )
        if found is None and self._batch is not None and message.batch == self._batch.message.n:
            found = self._named
        if found is None and message.kind in (ERROR, INVALID, BATCH):
            found = self.current()
        return found if found is not None else self._by_time(message)

    def _by_link(self, link: Exchange | None, message: Message) -> Scene | None:
        other_type = message.fact("id-type-differs")
        if other_type is not None and other_type.n is not None:
            return self._of_request.get(other_type.n)
        if link is None or not (is_answering(message) or is_progress(message) or is_cancel(message)):
            return None
        return self._of_request.get(link.request)

    def _by_subscription(self, message: Message) -> Scene | None:
        key = token_key(message.meta.get(SUBSCRIPTION_KEY))
        subscribed = [one for one in self.talk.scenes if one.method == "subscriptions/listen" and one.cue is not None]
        return next((one for one in reversed(subscribed) if one.cue is not None and one.cue.key == key), None)

    def _by_time(self, message: Message) -> Scene:
        latest = self.current()
        if self._has_left:
            return latest
        if message.method == "roots/list" and latest.method in _ASKS_FOR_ROOTS:
            return latest
        return next(iter(self._open.values())) if len(self._open) == 1 else latest


def add(scene: Scene, line: Line) -> Line:
    """Append a line to a scene, with its distance from what came before."""
    before = scene.lines[-1].t if scene.lines else line.t if scene.cue is None else scene.cue.t
    if line.after is not None and line.after.cue is not None:
        before = max(before, line.after.cue.t)
    line.gap_us = max(0, line.t - before)
    scene.lines.append(line)
    return line
