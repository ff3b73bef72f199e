"""The least of a conversation that is needed to send one of its requests again.

That is its handshake, the request with what the client did while it was open, and before it those requests whose
answers gave what it hands back: a cursor, a task, a ``requestState`` (pagination, tasks, multi round-trip requests).
"""

from collections import OrderedDict
from dataclasses import replace
from typing import Any, Final

from mcpsniff.errors import UsageError
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.param_headers import ParamHeader, learn
from mcpsniff.protocol.revisions import is_modern
from mcpsniff.replay.resend.pick import Picked
from mcpsniff.replay.script import Scene, Script, Talk
from mcpsniff.replay.send.link import said
from mcpsniff.replay.send.values import CURSOR, RELATED, STATE, TASK, given
from mcpsniff.replay.spelling import value_at

INITIALIZED: Final = "notifications/initialized"
_HANDED_BACK: Final = (CURSOR, STATE, TASK, RELATED)


def least_talk(picked: Picked, edited: bytes | None = None) -> tuple[Talk, Scene]:
    """A conversation of that request alone, and its scene in it; ``edited`` is what is sent in its place.

    Raises UsageError for what is no request, or would be none.
    """
    talk, scene, message = picked.talk, picked.scene, picked.message
    if message is None or talk is None:
        raise UsageError("this is an HTTP exchange without a message, which is not sent again: --as curl prints it")
    if scene is None or not scene.is_request:
        raise UsageError(f"#{message.n} is a notification, to which no answer comes: --as prints it, replay sends all")
    chosen = _with_cue(scene, replace(message, batch=None) if edited is None else edited_message(message, edited))
    scenes = [*_needed(talk, scene, chosen)]
    if message.method != "initialize":
        opening = talk.opening
        scenes = ([] if opening is None or opening in scenes else [opening]) + _ready(talk) + scenes
    scenes.append(chosen)
    least = replace(talk, scenes=scenes, messages=_messages(talk, scenes, chosen))
    return least, chosen


def edited_message(message: Message, raw: bytes) -> Message:
    """A recorded request with another text. Raises UsageError unless that is a request (or both are notifications)."""
    made = said(raw)
    if len(made) != 1 or made[0].kind != message.kind:
        what = "several messages" if len(made) != 1 else f"{'an' if made[0].kind[0] in 'ei' else 'a'} {made[0].kind}"
        has = "jsonrpc, id and method" if message.kind == REQUEST else "jsonrpc and method, and no id"
        raise UsageError(f"what was edited is {what}, not a {message.kind}, which has {has}")
    live = made[0]
    http = None if is_modern(message.revision) else message.http  # its headers repeat what the old text says
    return replace(
        message,
        raw=raw,
        body=live.body,
        id=live.id,
        key=live.key,
        method=live.method,
        frame=live.frame,
        flaws=live.flaws,
        batch=None,
        http=http,
    )


def tool_headers(script: Script, server: str) -> OrderedDict[str, tuple[ParamHeader, ...]]:
    """In 2026-07-28: the headers that the tools of a server ask for, by tool, as far as the capture lists them."""
    known: OrderedDict[str, tuple[ParamHeader, ...]] = OrderedDict()
    for talk in script.talks:
        for scene in talk.requests() if talk.server == server else ():
            if scene.method == "tools/list" and scene.answer is not None:
                learn(known, scene.answer.result.get("tools"))
    return known


def _with_cue(scene: Scene, cue: Message) -> Scene:
    return Scene(scene.number, scene.talk, cue, scene.lines, scene.web)


def _ready(talk: Talk) -> list[Scene]:
    """The client's word that it is ready."""
    return [scene for scene in talk.scenes if scene.method == INITIALIZED][:1]


def _needed(talk: Talk, scene: Scene, chosen: Scene) -> list[Scene]:
    """The requests before it that gave what it hands back, and what they hand back, in their order."""
    before = [one for one in talk.requests() if one.number < scene.number]
    found: set[Scene] = set()
    wanted = _handed_back(chosen)
    while wanted:
        value = wanted.pop()
        giver = next((one for one in reversed(before) if one not in found and value in _given_by(one)), None)
        if giver is not None:
            found.add(giver)
            wanted |= _handed_back(giver)
    return [one for one in before if one in found]


def _handed_back(scene: Scene) -> set[str]:
    assert scene.cue is not None
    values: list[Any] = [value_at(scene.cue.body, path) for path in _HANDED_BACK]
    return {value for value in values if isinstance(value, str)}


def _given_by(scene: Scene) -> set[str]:
    answer = scene.answer
    return set() if answer is None else {value for _, value in given(scene.method, answer.result)}


def _messages(talk: Talk, scenes: list[Scene], chosen: Scene) -> list[Message]:
    """What was said in these scenes, in order."""
    kept = {id(message) for scene in scenes for message in scene.messages()}
    cues = {id(scene.cue) for scene in scenes}
    messages: list[Message] = []
    for message in talk.messages:
        if chosen.cue is not None and message.n == chosen.cue.n:
            messages.append(chosen.cue)
        elif id(message) in kept or id(message) in cues:
            messages.append(message)
    return messages
