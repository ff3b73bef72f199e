"""What a client is to do, in order, so that it says nothing before it has seen what its recorded self had seen.

A recorded conversation is walked through from its first message to its last. What the client said is sent; before that,
whatever the client had seen by then is waited for: answers, and what a client acts upon without having asked for it.
Requests that were on their way together are so again, since nothing stands between them that could be waited for.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from mcpsniff.protocol.exchange import CANCELLED
from mcpsniff.protocol.message import NOTIFICATION, REQUEST, Message
from mcpsniff.replay.script import Scene, Talk, is_answer, is_progress
from mcpsniff.wire.frames import INCOMPLETE

SAY: Final = "say"
ANSWER: Final = "answer"
REPLY: Final = "reply"
NOTICE: Final = "notice"
DROP: Final = "drop"
LEAVE: Final = "leave"

ACTED_UPON: Final = frozenset(
    [
        *("notifications/tools/list_changed", "notifications/prompts/list_changed"),
        *("notifications/resources/list_changed", "notifications/resources/updated"),
        *("notifications/elicitation/complete", "notifications/tasks/status", "notifications/tasks"),
        "notifications/subscriptions/acknowledged",
    ]
)
"""Notifications after which a client may do something because of them."""


class Item(NamedTuple):
    """One thing to do, or to wait for."""

    kind: str
    """SAY; DROP the response to a request, which cancels it; LEAVE the session, if more was said after it; or to wait
    for: ANSWER to a request, NOTICE of the server, REPLY of ours to what the server asked."""
    t: int
    """When it was, in microseconds of the capture."""
    messages: tuple[Message, ...]
    """What is said: several if they are a batch. Else the one that is waited for; none for a refusal by HTTP."""
    scene: Scene | None
    """The scene it belongs to; of a batch, that of its first message."""


def items_of(talk: Talk) -> list[Item]:
    """What the client of a recorded conversation did, in order."""
    scenes = _scenes(talk)
    items = list(_said_and_seen(talk, scenes))
    items += [
        Item(ANSWER, web.ended_at if web.ended_at is not None else scene.cue.t, (), scene)
        for scene in talk.requests()
        if scene.is_refused and scene.answer is None and (web := scene.web) is not None and scene.cue is not None
    ]
    items += _dropped(talk)
    items += _left(talk, max((item.t for item in items if item.kind == SAY), default=0))
    return sorted(items, key=lambda item: item.t)


def _left(talk: Talk, last: int) -> list[Item]:
    """The end of the session (DELETE) if the client said something after it."""
    ends = [web.http.t_request for web in talk.webs if web.http.method == "DELETE"]
    return [Item(LEAVE, min(ends), (), None)] if ends and min(ends) < last else []


def _dropped(talk: Talk) -> Iterator[Item]:
    """The requests that the client cancelled by hanging up, as it does over HTTP in 2026-07-28."""
    if not talk.is_modern:
        return
    for scene in talk.requests():
        exchange, web = scene.exchange, scene.web
        if exchange is None or exchange.state != CANCELLED or exchange.cancel is not None:
            continue
        if web is not None and web.ended_at is not None:
            yield Item(DROP, web.ended_at, (), scene)


def _said_and_seen(talk: Talk, scenes: dict[int, Scene]) -> Iterator[Item]:
    batch: list[Message] = []
    for message in talk.messages:
        if batch and (message.direction != "c2s" or message.batch != batch[0].batch):
            yield Item(SAY, batch[0].t, tuple(batch), scenes.get(batch[0].n))
            batch = []
        scene = scenes.get(message.n)
        if message.direction == "s2c":
            if is_answer(message) and scene is not None and _is_awaited(message, scene):
                yield Item(ANSWER, message.t, (message,), scene)
            elif message.kind == NOTIFICATION and message.method in ACTED_UPON:
                yield Item(NOTICE, message.t, (message,), scene)
        elif is_reply(message):
            yield Item(REPLY, message.t, (message,), scene)
        elif is_progress(message) and _is_of_question(message):
            continue  # said with the reply
        elif message.batch is not None:
            batch.append(message)
        else:
            yield Item(SAY, message.t, (message,), scene)
    if batch:
        yield Item(SAY, batch[0].t, tuple(batch), scenes.get(batch[0].n))


def _is_awaited(message: Message, scene: Scene) -> bool:
    """True for the answer of a request that was not cancelled before: to a cancelled one there need not be one."""
    exchange, answer = scene.exchange, scene.answer
    return answer is message and exchange is not None and exchange.state != CANCELLED


def is_reply(message: Message) -> bool:
    """True for what the client answered to a request of the server: said when that asks, not at its place."""
    return is_answer(message) and _is_of_question(message)


def _is_of_question(message: Message) -> bool:
    return message.link is not None and message.link.direction == "s2c"


def _scenes(talk: Talk) -> dict[int, Scene]:
    """The scene that each message belongs to, by the message's number."""
    found = {scene.cue.n: scene for scene in talk.scenes if scene.cue is not None}
    for scene in talk.scenes:
        found |= {message.n: scene for message in scene.messages()}
    return found


def is_whole(message: Message) -> bool:
    """True if the capture has all of it."""
    return INCOMPLETE.isdisjoint(message.flaws)


def lacks_handshake(talk: Talk) -> bool:
    """True for a conversation that needs an ``initialize`` and has none that could be sent."""
    if talk.is_modern or talk.opening is not None:
        return False
    working = [scene for scene in talk.requests() if scene.method not in ("ping", "server/discover")]
    return any(not scene.is_refused for scene in working)


class Question(NamedTuple):
    """What the server asked of the client, and what that answered."""

    asked: Message
    answer: Message | None
    scene: Scene | None
    progress: tuple[Message, ...] = ()
    """What the client told of its progress before."""


def questions_of(talk: Talk) -> list[Question]:
    """The server's requests, in order."""
    scenes = _scenes(talk)
    answers = {message.link.request: message for message in talk.messages if is_reply(message) and message.link}
    told: dict[int, list[Message]] = {}
    for message in talk.messages:
        if message.direction == "c2s" and is_progress(message) and message.link and _is_of_question(message):
            told.setdefault(message.link.request, []).append(message)
    return [
        Question(message, answers.get(message.n), scenes.get(message.n), tuple(told.get(message.n, ())))
        for message in talk.messages
        if message.direction == "s2c" and message.kind == REQUEST
    ]
