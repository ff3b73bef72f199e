"""Batches of the server: what it said in one JSON array is said in one again, also where it answers several requests.

An element is filled in by the performance of its scene. The last of those that are on their way says the whole; what
belongs to scenes that nobody has cued now is left out.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from mcpsniff.protocol.jsonrpc import BATCH_LIMIT
from mcpsniff.protocol.outline import outline
from mcpsniff.replay.script import Batch, Line

if TYPE_CHECKING:
    from mcpsniff.replay.serve.performance import Performance

_ENCODING: Final = ("utf-8", "surrogateescape")


def filled(batch: Batch, texts: Mapping[Line, bytes | None]) -> bytes | None:
    """The array with these texts as its elements; an element without one is left out. None if none is left."""
    text = batch.message.raw.decode(*_ENCODING)
    places = outline(text, BATCH_LIMIT).elements
    if len(places) != len(batch.lines):  # an event that was delivered twice
        known = [one for _, line in batch.lines if (one := texts.get(line)) is not None]
        return b"[" + b",".join(known) + b"]" if known else None
    parts: list[str] = []
    end = 0
    for (start, stop), (_, line) in zip(places, batch.lines, strict=True):
        data = texts.get(line)
        if data is not None:
            parts.append(text[end:start] if parts or not end else text[: places[0][0]])
            parts.append(data.decode(*_ENCODING))
        end = stop
    return "".join((*parts, text[end:])).encode(*_ENCODING) if parts else None


class Batches:
    """The batches that one client is told."""

    def __init__(self, running: Iterable["Performance"], timeout: float) -> None:
        """``running`` are the performances that go on, now and whenever it is asked."""
        self._running = running
        self._timeout = timeout
        self._joints: list[_Joint] = []

    async def say(self, performance: "Performance", line: Line, data: bytes | None, *, is_answer: bool) -> None:
        """Say an element, None for one that is left out: the whole goes out once all who have a part in it are here."""
        assert line.batch is not None
        own = [one for scene, one in line.batch.lines if scene is performance.scene]
        joint = self._joint(performance, line.batch, line)
        joint.texts[line] = data
        if is_answer:
            joint.answers[performance] = line
        if line is not own[-1]:
            return
        try:
            await self._gather(joint, performance)
        except asyncio.CancelledError:
            joint.leave(performance, own)
            raise
        if joint.said.done():
            return
        joint.said.set_result(None)
        self._joints.remove(joint)
        whole = filled(line.batch, joint.texts)
        if whole is not None:
            for one in joint.answers:
                one.is_answered = True
            lead = joint.answers.get(performance, line)
            await performance.say(whole, lead, is_answer=bool(joint.answers), is_batch=True)

    def _joint(self, performance: "Performance", batch: Batch, line: Line) -> "_Joint":
        for joint in self._joints:
            if joint.batch is batch and line not in joint.texts and _is_together(joint.first, performance):
                return joint
        self._joints.append(_Joint(batch, performance))
        return self._joints[-1]

    async def _gather(self, joint: "_Joint", performance: "Performance") -> None:
        """Wait for the performances that have a part in it and have not come to it yet."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._timeout
        while not joint.said.done() and (left := until - loop.time()) > 0:
            scenes = {scene for scene, line in joint.batch.lines if line not in joint.texts}
            awaited = [
                one.task
                for one in self._running
                if one.scene in scenes and not one.task.done() and _is_together(one, performance)
            ]
            if not awaited:
                return
            await asyncio.wait([joint.said, *awaited], timeout=left, return_when=asyncio.FIRST_COMPLETED)


class _Joint:
    """A batch that is put together."""

    def __init__(self, batch: Batch, first: "Performance") -> None:
        self.batch = batch
        self.first = first
        self.texts: dict[Line, bytes | None] = {}
        self.answers: dict[Performance, Line] = {}
        """Whose requests it answers, and with what."""
        self.said: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def leave(self, performance: "Performance", lines: list[Line]) -> None:
        """The client wants no answer any more."""
        self.answers.pop(performance, None)
        for line in lines:
            self.texts[line] = None


def _is_together(one: "Performance", other: "Performance") -> bool:
    """True if what they say can be said at once: it goes the same way, or the client has asked for it in one batch."""
    if one.port is other.port:
        return True
    return one.live is not None and other.live is not None and one.live.frame is other.live.frame
