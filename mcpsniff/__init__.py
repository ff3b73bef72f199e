"""mcpsniff: an intercepting proxy and protocol analyser for the Model Context Protocol.

What addons need is here by name: ``mcpsniff.Message``, ``mcpsniff.answer``, ``mcpsniff.ctx`` (docs/addons.md).
Nothing of it is loaded before it is asked for.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpsniff.checks import Finding as Finding
    from mcpsniff.hooks.actions import Action as Action
    from mcpsniff.hooks.actions import Back as Back
    from mcpsniff.hooks.actions import Cut as Cut
    from mcpsniff.hooks.actions import Disconnect as Disconnect
    from mcpsniff.hooks.actions import Drop as Drop
    from mcpsniff.hooks.actions import Headed as Headed
    from mcpsniff.hooks.actions import HttpAnswer as HttpAnswer
    from mcpsniff.hooks.actions import HttpHead as HttpHead
    from mcpsniff.hooks.actions import Later as Later
    from mcpsniff.hooks.actions import Paced as Paced
    from mcpsniff.hooks.actions import Raw as Raw
    from mcpsniff.hooks.actions import Returned as Returned
    from mcpsniff.hooks.actions import Stall as Stall
    from mcpsniff.hooks.actions import Text as Text
    from mcpsniff.hooks.actions import Told as Told
    from mcpsniff.hooks.actions import answer as answer
    from mcpsniff.hooks.actions import back as back
    from mcpsniff.hooks.actions import copy as copy
    from mcpsniff.hooks.actions import notification as notification
    from mcpsniff.hooks.actions import refuse as refuse
    from mcpsniff.hooks.actions import request as request
    from mcpsniff.hooks.context import ctx as ctx
    from mcpsniff.hooks.options import Loader as Loader
    from mcpsniff.protocol.conversation import Conversation as Conversation
    from mcpsniff.protocol.edits import Edit as Edit
    from mcpsniff.protocol.events import Close as Close
    from mcpsniff.protocol.events import Stderr as Stderr
    from mcpsniff.protocol.exchange import Exchange as Exchange
    from mcpsniff.protocol.message import Message as Message
    from mcpsniff.wire.frames import Frame as Frame

_ROOMS = {
    "mcpsniff.checks": "Finding",
    "mcpsniff.hooks.actions": "Action Back Cut Disconnect Drop Headed HttpAnswer HttpHead Later Paced Raw Returned"
    " Stall Text Told answer back copy notification refuse request",
    "mcpsniff.hooks.context": "ctx",
    "mcpsniff.hooks.options": "Loader",
    "mcpsniff.protocol.conversation": "Conversation",
    "mcpsniff.protocol.edits": "Edit",
    "mcpsniff.protocol.events": "Close Stderr",
    "mcpsniff.protocol.exchange": "Exchange",
    "mcpsniff.protocol.message": "Message",
    "mcpsniff.wire.frames": "Frame",
}
_ROOM = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """What addons need, loaded when it is asked for first."""
    room = _ROOM.get(name)
    if room is None:
        raise AttributeError(f"module 'mcpsniff' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(room), name)
    return found


def __dir__() -> list[str]:
    """All names, those included that are not loaded yet."""
    return sorted([*globals(), *_ROOM])
