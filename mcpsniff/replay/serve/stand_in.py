"""An answer to ``initialize`` where the capture has none, so that the rest of it can be served all the same.

A capture that joined a session late lacks the handshake, and no client goes on without one. What a server would have
declared is taken from what clients asked it for; whoever serves the capture says that it is not recorded.
"""

from typing import Final

from mcpsniff import __version__
from mcpsniff.protocol.message import RESPONSE, Message
from mcpsniff.protocol.revisions import is_modern
from mcpsniff.replay.match import Matcher
from mcpsniff.replay.serve.made_up import result

_CAPABILITIES: Final = {
    "tools": "tools",
    "resources": "resources",
    "prompts": "prompts",
    "logging": "logging",
    "completion": "completions",
}
"""By the first part of a method: the capability that a server declares which has it."""


def lacks_handshake(matcher: Matcher) -> bool:
    """True if legacy clients were served and no ``initialize`` was answered with a result.

    A server that did no more than refuse it wants to be heard so.
    """
    scenes = [scene for talk in matcher.talks if not talk.is_modern for scene in talk.requests()]
    answered = any(
        scene.method == "initialize" and scene.answer is not None and scene.answer.kind == RESPONSE for scene in scenes
    )
    return not answered and any(scene.answer is not None and scene.method != "initialize" for scene in scenes)


def is_probe(matcher: Matcher, asked: Message) -> bool:
    """True if a modern client asks a legacy server whether it is a modern one.

    That it knows no ``server/discover`` is what such a server would say, too; then the client goes on with
    ``initialize`` (MCP 2026-07-28, versioning).
    """
    scenes = [scene for talk in matcher.talks for scene in talk.requests()]
    methods = {scene.method for scene in scenes}
    return asked.method == "server/discover" and "initialize" in methods and asked.method not in methods


def stand_in(matcher: Matcher, asked: Message) -> bytes | None:
    """The answer that the capture lacks to ``initialize``, or to a ``ping``; None if something else is asked.

    A ping must be answered at any time (MCP, ping), and clients that keep a connection alive send as many as they like.
    """
    if asked.method == "ping" and not all(talk.is_modern for talk in matcher.talks):
        return result(asked.id, {})
    if asked.method != "initialize" or not lacks_handshake(matcher):
        return None
    revisions = [talk.revision for talk in matcher.talks if talk.revision is not None and not is_modern(talk.revision)]
    methods = {scene.method.split("/")[0] for talk in matcher.talks for scene in talk.requests()}
    wanted = asked.params.get("protocolVersion")
    value: dict[str, object] = {
        "protocolVersion": next(iter(revisions), wanted if isinstance(wanted, str) else "2025-11-25"),
        "capabilities": {name: {} for method, name in _CAPABILITIES.items() if method in methods},
        "serverInfo": {"name": "mcpsniff-replay", "version": __version__},
    }
    return result(asked.id, value)
