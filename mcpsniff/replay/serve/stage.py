"""Serve a script to live clients: a client's message finds its scene, and what belongs to it is played.

    shell (pipes, HTTP) ──heard(message, port)──▶ Session ──▶ Performance ──port.send(Outgoing)──▶ shell

The stage knows no transport: the shell reads messages and says where what a scene holds is to go (`Port`). Everything
runs in one event loop; a performance is a task of its own, so that scenes overlap as their cues do.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from mcpsniff.protocol.exchange import token_key
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, REQUEST, RESPONSE, IdKey, Message
from mcpsniff.protocol.reading import Unread
from mcpsniff.replay import spelling
from mcpsniff.replay.match import Matcher, Miss
from mcpsniff.replay.normalise import Rules
from mcpsniff.replay.script import Line, Scene, Script, is_cancel, is_empty_batch
from mcpsniff.replay.serve import made_up
from mcpsniff.replay.serve.batches import Batches
from mcpsniff.replay.serve.live_ids import LiveIds
from mcpsniff.replay.serve.performance import Asked, Outgoing, Performance, Port
from mcpsniff.replay.serve.stand_in import is_probe, stand_in
from mcpsniff.replay.serve.tally import Tally
from mcpsniff.replay.spelling import Template
from mcpsniff.replay.tempo import AT_ONCE, Tempo

__all__ = ["Outgoing", "Performance", "Port", "Session", "Stage"]

KEPT_TEMPLATE: Final = 1_000_000
"""Bytes of a message whose template is kept; those of longer ones take several times their length."""
TIMEOUT: Final = 30.0
"""Seconds that a client has for each thing that it said in the recording."""


class Stage:
    """All clients of one replay."""

    def __init__(
        self,
        script: Script,
        matcher: Matcher,
        *,
        tempo: Tempo = AT_ONCE,
        timeout: float = TIMEOUT,
        rules: Rules | None = None,
        over_http: bool = False,
    ) -> None:
        """``rules`` are how answers of clients are compared with the recorded ones.

        ``over_http`` says that the shell itself gives back what HTTP refused; else the stage makes an error of it.
        """
        self.script = script
        self.matcher = matcher
        self.tempo = tempo
        self.timeout = timeout
        self.rules = Rules() if rules is None else rules
        self.over_http = over_http
        self.tally = Tally()
        scenes = [] if over_http else [scene for talk in matcher.talks for scene in talk.scenes]
        self.where = _is_accepted if any(scene.is_refused for scene in scenes) else None
        """Which scenes are preferred. Without HTTP the attempts that HTTP refused are passed over."""
        self.bug: BaseException | None = None
        """What went wrong in a performance and is our fault: whoever runs the stage is to raise it at the end."""
        self.in_pieces: frozenset[str] = frozenset()
        """Set by a shell to the framings (`Frame.framing`) of what it sends in the pieces in which that was read: then
        such a line is given to it when its first piece is due, and `Outgoing.due` says when its last one is."""
        self.on_bug: Callable[[], None] | None = None
        """Called when that happens."""
        self._templates: dict[Line, Template] = {}
        self._sessions = 0

    def fail(self, error: BaseException) -> None:
        """Note a fault of ours; the first one counts."""
        if self.bug is None:
            self.bug = error
            if self.on_bug is not None:
                self.on_bug()

    def moment(self, out: Outgoing, t: int) -> float | None:
        """When the piece of a line that was read at ``t`` (`Script.pieces`) is due, by the loop's clock; None: now."""
        return None if out.due is None or out.line is None else out.due - self.tempo.seconds(out.line.t - t)

    def session(self) -> "Session":
        """A client has come."""
        self._sessions += 1
        return Session(self, self._sessions - 1)

    def template(self, line: Line) -> Template:
        """The text of a line's message, with holes for what differs from run to run."""
        found = self._templates.get(line)
        if found is None:
            assert line.message is not None
            message = line.message
            is_plain = isinstance(message.body, dict) and not isinstance(message.body, Unread) and not message.flaws
            found = Template(message.raw, spelling.paths_of(message), is_plain=is_plain)
            if len(message.raw) <= KEPT_TEMPLATE:
                self._templates[line] = found
        return found


def _is_accepted(scene: Scene) -> bool:
    return not scene.is_refused


class Session:
    """One client of the stage."""

    def __init__(self, stage: Stage, number: int) -> None:
        self.stage = stage
        self.number = number
        self.walk = stage.matcher.begin()
        """Its way through the recorded conversations. A shell may look a scene up by itself, see `heard`."""
        self.ids = LiveIds()
        self._tasks: set[Performance] = set()
        self.batches = Batches(self._tasks, stage.timeout)
        self._running: dict[IdKey, Performance] = {}
        """By the id of the live request."""
        self._asked: dict[IdKey, Asked] = {}
        """By live id: the requests of the server that the client has not answered."""
        self._cued: dict[Scene, asyncio.Future[float]] = {}
        self._invalid: set[Scene] = set()
        self.is_ending = False
        """True once the client says nothing more."""

    def heard(
        self,
        message: Message,
        port: Port,
        *,
        where: Callable[[Scene], bool] | None = None,
        scene: Scene | None = None,
    ) -> Performance | None:
        """The client has said something; what follows from it goes to ``port``.

        A request or a notification cues a scene: the one that the shell has found already, else the one that the walk
        finds (``where`` narrows the choice). A response goes to whoever awaits it. A cancel stops what it names, unless
        it was recorded, too. The elements of a batch are to be given one by one, an empty batch itself. To be called
        in the event loop.

        Returns the performance that the message began, be it only an error for what was never recorded; else None.
        """
        if message.kind in (RESPONSE, ERROR) or (message.kind == INVALID and message.key in self._asked):
            self._answered(message)
            return None
        if is_empty_batch(message):
            return self._nonsense(message, port)
        if message.kind == BATCH or (is_cancel(message) and scene is None and self._cancelled(message)):
            return None
        if scene is None and (message.kind == INVALID or not isinstance(message.body, dict)):
            return self._nonsense(message, port)
        found = scene if scene is not None else self.walk.find(message, where or self.stage.where)
        if found is None:
            self.stage.tally.unheard += 1
            return None
        if isinstance(found, Miss) or (found.is_cut and found.method == "initialize"):
            return self._missed(found, message, port)
        if message.kind == REQUEST:
            self.stage.tally.served += 1
        return self._begin(found, message, port, None)

    def prologue(self, port: Port) -> Performance | None:
        """Play what the server said before its client had said anything; None if that is nothing."""
        talks = self.stage.matcher.talks
        if not talks:
            return None
        scenes = talks[min(self.number, len(talks) - 1)].scenes
        return self._begin(scenes[0], None, port, None) if scenes and scenes[0].cue is None else None

    def farewell(self, port: Port) -> Performance | None:
        """Play what the server said after the client had closed its input; None if that is nothing."""
        talk = self.walk.talk
        scene = None if talk is None else talk.farewell
        return None if scene is None else self._begin(scene, None, port, None)

    async def done(self) -> None:
        """The client will say nothing more: give up what waits for it, and play everything else to its end."""
        self.is_ending = True
        for performance in list(self._tasks):
            performance.expect_nothing()
        while self._tasks:
            await asyncio.wait([performance.task for performance in self._tasks])

    def left(self) -> None:
        """The client has gone: all that is played for it ends at once."""
        self.is_ending = True
        for performance in list(self._tasks):
            performance.task.cancel()

    # -- for performances ------------------------------------------------------------------------------------------

    def ask(self, recorded: Message, scene: Scene) -> Asked:
        """The server asks the client something: find an id, and remember who waits for the answer."""
        token, key = self.ids.ask(recorded, scene.talk)
        asked = Asked(recorded, token)
        if key is not None:
            self._asked[key] = asked
        return asked

    def cued(self, scene: Scene) -> asyncio.Future[float]:
        """When the client cued the scene, once it has."""
        found = self._cued.get(scene)
        if found is None:
            found = self._cued[scene] = asyncio.get_running_loop().create_future()
        return found

    def over(self, performance: Performance) -> None:
        """A performance has come to its end."""
        self._tasks.discard(performance)
        key = None if performance.live is None else performance.live.key
        if key is not None and self._running.get(key) is performance:
            del self._running[key]

    # -- what the client says --------------------------------------------------------------------------------------

    def _nonsense(self, message: Message, port: Port) -> Performance:
        """The client has said what is no message, or an empty batch: answer as recorded, or as JSON-RPC wants it."""
        found = self._next_invalid(message)
        if found is not None:
            return self._begin(found, message, port, None)
        self.stage.tally.made_up += 1
        return self._begin(None, message, port, made_up.invalid_answer(message))

    def _next_invalid(self, message: Message) -> Scene | None:
        """The recorded scene for what is no message: of the same bytes, or else the next one of that kind."""
        talk = self.walk.talk or next(iter(self.stage.matcher.talks), None)
        scenes = [] if talk is None else [one for one in talk.scenes if one.cue and one.cue.kind == message.kind]
        same = [one for one in scenes if one.cue is not None and one.cue.raw == message.raw]
        fresh = [one for one in (*same, *scenes) if one not in self._invalid]
        found = next(iter(fresh), None) or next(reversed(same), None)
        if found is not None:
            self._invalid.add(found)
        return found

    def _missed(self, found: Miss | Scene, message: Message, port: Port) -> Performance:
        """Answer what was never recorded, or a handshake whose answer the capture lacks."""
        matcher = self.stage.matcher
        made = stand_in(matcher, message)
        if made is None and not isinstance(found, Miss):
            return self._begin(found, message, port, None)
        if isinstance(found, Miss):
            if made is not None or is_probe(matcher, message):
                matcher.forgive(found)
                self.stage.tally.made_up += 1
            made = made or made_up.miss_answer(found, matcher.rules)
        return self._begin(None, message, port, made)

    def _begin(self, scene: Scene | None, live: Message | None, port: Port, made: bytes | None) -> Performance:
        performance = Performance(self, scene, live, port, made)
        if scene is not None and scene.cue is not None and live is not None:
            self.ids.requests[scene.cue.n] = live
            cued = self.cued(scene)
            if not cued.done():
                cued.set_result(asyncio.get_running_loop().time())
        self._tasks.add(performance)
        if live is not None and live.key is not None:
            self._running[live.key] = performance
        performance.begin()
        return performance

    def _answered(self, message: Message) -> None:
        asked = None if message.key is None else self._asked.pop(message.key, None)
        if asked is None:
            self.stage.tally.stray += 1
        elif not asked.answer.done():
            asked.answer.set_result((message, asyncio.get_running_loop().time()))

    def _cancelled(self, message: Message) -> bool:
        """Tell the performance that a cancel names, if it goes on; False if it names nothing that was asked."""
        key = token_key(message.params.get("requestId"))
        performance = None if key is None else self._running.get(key)
        if performance is None:
            return key is not None and any(asked.key == key for asked in self.ids.requests.values())
        performance.cancelled()
        return True
