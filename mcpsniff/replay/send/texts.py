"""The texts that are sent: recorded messages, in which only that is changed which must be."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from mcpsniff.protocol.message import REQUEST, IdKey, Message
from mcpsniff.protocol.param_headers import ParamHeader
from mcpsniff.replay.script import Scene, is_cancel
from mcpsniff.replay.send.headers import NAME_HEADER, has, header_value, merged, named_by, param_values
from mcpsniff.replay.send.link import Sent, said
from mcpsniff.replay.spelling import CANCELLED_ID, ID, OFFERED_TOKEN, Path, respelt, value_at


@dataclass(slots=True, eq=False)
class Text:
    """A message that is to be sent."""

    message: Message
    """As it was recorded."""
    tokens: dict[Path, str]
    """What is to stand in it, by place."""
    scene: Scene | None
    """Of a request: the scene that it cues."""
    raw: bytes = b""

    def __post_init__(self) -> None:
        """Make the text."""
        self.raw = respelt(self.message.raw, self.tokens) if self.tokens else self.message.raw


class Freshener:
    """Gives new ids where several clients were recorded as one conversation, and two of them used the same."""

    def __init__(self) -> None:
        self._count = 0
        self._live: dict[IdKey, str] = {}
        """The live id of each recorded one that has another now."""

    def tokens(self, message: Message, *, is_taken: bool) -> dict[Path, str]:
        """What is to stand in a message because of that. ``is_taken``: its id is in use."""
        found: dict[Path, str] = {}
        if message.kind == REQUEST and message.key is not None:
            self._live.pop(message.key, None)
            if is_taken:
                self._count += 1
                token = self._live[message.key] = orjson.dumps(f"mcpsniff-again-{self._count}").decode()
                found[ID] = token
                if value_at(message.body, OFFERED_TOKEN) is not None:
                    found[OFFERED_TOKEN] = token
        elif is_cancel(message) and (asked := message.params.get("requestId")) in self._live:
            found[CANCELLED_ID] = self._live[asked]
        return found


def text_of(texts: list[Text], recorded: tuple[Message, ...], asked: Mapping[str, tuple[ParamHeader, ...]]) -> Sent:
    """One text for messages that go together. ``recorded`` is what went together, ``asked`` the headers tools want."""
    first = texts[0].message
    if first.batch is None:
        data = texts[0].raw
    elif len(texts) == len(recorded) and not any(text.tokens for text in texts):
        data = first.frame.payload
    else:
        data = b"[" + b",".join(text.raw for text in texts) + b"]"
    messages = said(data)
    http = first.http
    headers = None if http is None or http.request is None else http.request.headers
    if headers is not None and first.batch is None and texts[0].tokens and has(headers, NAME_HEADER):
        name = named_by(messages[0])
        if name is not None:
            headers = tuple(merged(list(headers), {"Mcp-Name": header_value(name)}))
    params = None
    if headers is None and len(messages) == 1 and messages[0].method == "tools/call":
        params = param_values(asked.get(str(messages[0].params.get("name")), ()), messages[0])
    return Sent(data, messages, headers, params)
