"""What a live server asks of the client: answered as the recorded client answered it."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import orjson

from mcpsniff.protocol.message import Message
from mcpsniff.replay.match import request_keys
from mcpsniff.replay.send.plan import Question
from mcpsniff.replay.spelling import OFFERED_TOKEN, TOKEN, respelt, token_of

PING: Final = "ping"
NOT_RECORDED: Final = -32601


@dataclass(slots=True, eq=False)
class Asked:
    """A recorded question of the server, and whether it has come again."""

    question: Question
    live: Message | None = None
    replied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it was answered as recorded."""

    def progress(self) -> list[bytes]:
        """What the client told of its progress, for the token that the live server has offered."""
        token = None if self.live is None else token_of(self.live.raw, OFFERED_TOKEN)
        return [] if token is None else [respelt(message.raw, {TOKEN: token}) for message in self.question.progress]

    @property
    def is_matched(self) -> bool:
        """True if the live server has asked it."""
        return self.live is not None


class Questions:
    """The recorded questions of one conversation, found by method and params, in order."""

    def __init__(self, questions: list[Question]) -> None:
        self.asked = [Asked(question) for question in questions]
        self.unrecorded: list[Message] = []
        """What the live server asked that its recorded self did not."""
        self._by_answer = {asked.question.answer.n: asked for asked in self.asked if asked.question.answer is not None}

    def of_answer(self, answer: Message) -> Asked | None:
        """The question that a recorded message of the client answers."""
        return self._by_answer.get(answer.n)

    def find(self, live: Message) -> Asked | None:
        """The recorded question for a live one: the same, or else the next of its method; None if there is none."""
        free = [one for one in self.asked if not one.is_matched and one.question.asked.method == live.method]
        wanted = _key(live)
        same = next((one for one in free if _key(one.question.asked) == wanted), None)
        found = same if same is not None else next(iter(free), None)
        if found is not None:
            found.live = live
            return found
        if live.method != PING:
            self.unrecorded.append(live)
        return None


def _key(message: Message) -> tuple[str, bytes]:
    return request_keys(message.method or "", message.body.get("params"))[0]


def own_reply(live: Message) -> bytes:
    """The answer to a question that was not recorded: to a ping what any client says, to all else that it is not."""
    token = (live.id or "null").encode()
    if live.method == PING:
        return b'{"jsonrpc":"2.0","id":' + token + b',"result":{}}'
    error = {"code": NOT_RECORDED, "message": f"{live.method} was not asked in the recording that is replayed"}
    return b'{"jsonrpc":"2.0","id":' + token + b',"error":' + orjson.dumps(error) + b"}"
