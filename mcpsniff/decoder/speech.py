"""Frames to messages to exchanges: what a frame says, whichever transport it came by."""

from collections.abc import Iterable

from mcpsniff.decoder.editing import Editing
from mcpsniff.decoder.emitter import Emitter, Event
from mcpsniff.protocol.by_revision import revision_flaws
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.exchanges import Exchange, Exchanges
from mcpsniff.protocol.fragments import FragmentWatch
from mcpsniff.protocol.jsonrpc import BATCH_CUT, classify
from mcpsniff.protocol.message import INVALID, Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.protocol.talk import Talk
from mcpsniff.wire.frames import EMPTY_LINE, INCOMPLETE, Frame


class Speech:
    """Reads frames and messages in a talk, and has them judged."""

    def __init__(self, emitter: Emitter, editing: Editing) -> None:
        self._emitter = emitter
        self.editing = editing
        self._runner = emitter.runner
        self._reader = JsonReader()
        self._fragments = FragmentWatch()

    def line[P: Exchanges](self, out: list[Event], frame: Frame, talk: Talk[P]) -> None:
        """A line of a pipe, and the messages in it."""
        self.frame(out, frame, talk.conversation)
        if frame.flaws:
            talk.conversation.frame_flaws.update((frame.channel, flaw) for flaw in frame.flaws)
            if EMPTY_LINE in frame.flaws:
                return
        messages = classify(frame, self._reader)
        self.messages(out, messages, talk)
        self.editing.came(frame, messages, talk)

    def read(self, frame: Frame) -> list[Message]:
        """The messages of a frame, without place and number."""
        return classify(frame, self._reader)

    def frame(self, out: list[Event], frame: Frame, conversation: Conversation) -> None:
        """Number a frame, append it and the findings on it."""
        self._emitter.n += 1
        frame.n = self._emitter.n
        out.append(frame)
        out.extend(self._runner.frame(frame, conversation))

    def messages[P: Exchanges](self, out: list[Event], messages: Iterable[Message], talk: Talk[P]) -> None:
        """All messages of one frame."""
        whole = None
        for message in messages:
            if message.batch is not None and whole is not None:
                message.batch = whole.n
            else:
                whole = message
            self._message(out, message, talk)

    def _message[P: Exchanges](self, out: list[Event], message: Message, talk: Talk[P]) -> None:
        self._emitter.n += 1
        message.n = self._emitter.n
        message.t = message.frame.t_last
        conversation = talk.conversation
        message.conversation = conversation.number
        message.revision = conversation.govern(message)
        message.facts = conversation.place(message)
        ended = talk.exchanges.observe(message)
        asked = message.link if message.link is not None and message.link.response == message.n else None
        if asked is not None:
            message.revision = conversation.govern(message)
        if message.revision is not None:
            message.flaws += revision_flaws(message, message.revision)
        if message.flaws and _is_partly_unknown(message):
            talk.exchanges.lose(message.direction)
            conversation.lose()
        out.append(message)
        for exchange in ended:
            self.exchange(out, exchange, talk.conversation, message.t)
        if message.flaws or self._fragments.watching:
            self._judge(out, self._fragments.observe(message), conversation)
        else:
            out.extend(self._runner.message(message, conversation))
        conversation.observe(message, asked)

    def repeat(self, out: list[Event], messages: Iterable[Message], conversation: Conversation) -> None:
        """Messages that were said before and have come again: they change nothing and are not judged again."""
        for message in messages:
            self._emitter.n += 1
            message.n = self._emitter.n
            message.t = message.frame.t_last
            message.conversation = conversation.number
            message.revision = conversation.govern(message)
            out.append(message)

    def exchange(self, out: list[Event], exchange: Exchange, conversation: Conversation, t: int) -> None:
        """An exchange has ended, or never will."""
        self._emitter.tell(out, exchange, conversation, t)

    def release(self, out: list[Event], conversation: Conversation, channel: int | None = None) -> None:
        """Lines of a channel (None: of any) that were held back are judged as they stand."""
        held = self._fragments.release_all() if channel is None else self._fragments.release(channel)
        self._judge(out, held, conversation)

    def _judge(self, out: list[Event], messages: Iterable[Message], conversation: Conversation) -> None:
        for message in messages:
            out.extend(self._runner.message(message, conversation))


def _is_partly_unknown(message: Message) -> bool:
    """True if it said something, and the observer does not know what: kept in part, or too long a batch."""
    return BATCH_CUT in message.flaws or (message.kind == INVALID and not INCOMPLETE.isdisjoint(message.flaws))
