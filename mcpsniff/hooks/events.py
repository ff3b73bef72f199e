"""The hooks: one dataclass each, the single source of its name, its arguments and what the documentation says of it.

The name is the class's in small letters: `McpRequest` is ``mcp_request``; the fields are the arguments, in order. The
first sentence of a docstring is what tables show.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:  # the process on the wire calls few of these, and what it loads delays the server's start
    from mcpsniff.checks import Finding
    from mcpsniff.hooks.actions import HttpHead
    from mcpsniff.hooks.options import Loader
    from mcpsniff.protocol.conversation import Conversation
    from mcpsniff.protocol.edits import Edit
    from mcpsniff.protocol.events import Close, Stderr
    from mcpsniff.protocol.exchange import Exchange
    from mcpsniff.protocol.message import Message
    from mcpsniff.wire.frames import Frame

LIFE: Final = "life"
"""About the addon itself; the same as in mitmproxy, in each process that has loaded it."""
OBSERVING: Final = "observing"
"""Told of what has passed, in a process that follows the capture, and with `show` and `tail`."""
EDITING: Final = "editing"
"""In line: what it returns is what leaves."""

HOOKS: Final[dict[str, type["Hook"]]] = {}
"""All hooks by name, in the order of the documentation."""


class Hook:
    """Something that addons are told of."""

    name: ClassVar[str]
    group: ClassVar[str]

    def __init_subclass__(cls, *, group: str) -> None:
        """Enter the hook under its name."""
        cls.name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        cls.group = group
        HOOKS[cls.name] = cls

    def arguments(self) -> Sequence[Any]:
        """What a hook function is called with."""
        return [getattr(self, one.name) for one in fields(self)]  # type: ignore[arg-type]

    @classmethod
    def parameters(cls) -> list[tuple[str, str]]:
        """Names and types of the arguments."""
        return [(one.name, str(one.type)) for one in fields(cls)]  # type: ignore[arg-type]

    @classmethod
    def documentation(cls) -> str:
        """The docstring as one paragraph."""
        return " ".join((cls.__doc__ or "").split())


@dataclass
class Load(Hook, group=LIFE):
    """The addon was loaded: declare its options with ``loader.add_option(name, type, default, help)``."""

    loader: "Loader"


@dataclass
class Configure(Hook, group=LIFE):
    """Options have got their values, which ``mcpsniff.ctx.options`` has; ``updated`` are their names."""

    updated: "set[str]"


@dataclass
class Running(Hook, group=LIFE):
    """Traffic begins."""


@dataclass
class Done(Hook, group=LIFE):
    """Traffic has ended, or another version of the file takes over."""


@dataclass
class McpOpen(Hook, group=OBSERVING):
    """A conversation begins: one client and one server. It fills up with what they tell about themselves."""

    conversation: "Conversation"


@dataclass
class McpFrame(Hook, group=OBSERVING):
    """A frame was seen: a line, an event of a stream, a body. Before the messages in it."""

    frame: "Frame"


@dataclass
class McpMessage(Hook, group=OBSERVING):
    """A message of any kind was seen, what is none included; then comes the hook of its kind."""

    message: "Message"


@dataclass
class McpRequest(Hook, group=OBSERVING):
    """A request was seen, of either side: ``message.direction`` is ``c2s`` or ``s2c``."""

    message: "Message"


@dataclass
class McpResponse(Hook, group=OBSERVING):
    """A response was seen, a result or an error; ``message.link`` is the exchange that it ends."""

    message: "Message"


@dataclass
class McpNotification(Hook, group=OBSERVING):
    """A notification was seen."""

    message: "Message"


@dataclass
class McpExchange(Hook, group=OBSERVING):
    """A request has found its end: answered, errored, input-required, cancelled, abandoned or, at the end, open."""

    exchange: "Exchange"


@dataclass
class McpRewrite(Hook, group=OBSERVING):
    """Something else left than what came, or it was held: ``edit.by``, ``edit.change``, ``edit.of``, ``edit.left``."""

    edit: "Edit"


@dataclass
class McpStderr(Hook, group=OBSERVING):
    """A wrapped server wrote a line to its standard error."""

    line: "Stderr"


@dataclass
class McpFinding(Hook, group=OBSERVING):
    """A check found something: ``code``, ``name``, ``severity``, ``blame``, ``text``."""

    finding: "Finding"


@dataclass
class McpClose(Hook, group=OBSERVING):
    """A stream, a connection or the server's process has ended."""

    close: "Close"


@dataclass
class McpEdit(Hook, group=EDITING):
    """A message is held: what is returned leaves in its place. The message itself passes, changed if its body was.

    None drops it; a list lets others pass before or after it; ``mcpsniff.answer`` and ``mcpsniff.refuse`` answer a
    request in the receiver's place.
    """

    message: "Message"


@dataclass
class McpEditHead(Hook, group=EDITING):
    """The head of an HTTP request or response is held: changes to ``head.headers`` and ``head.status`` count."""

    head: "HttpHead"
