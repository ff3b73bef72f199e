"""What came of serving a capture: noted while it is played, told at the end."""

from dataclasses import dataclass, field
from typing import Final

from mcpsniff.protocol.message import Message
from mcpsniff.replay.compare import Difference

KEPT: Final = 1_000
"""Of each kind of remark so many are kept; the others are counted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client answered to a request of the server, where it is not what was recorded."""

    asked: Message
    """The recorded request."""
    recorded: Message
    live: Message | None
    """None if the client did not answer in time."""
    differences: tuple[Difference, ...] = ()


@dataclass(slots=True)
class Tally:
    """Counts and remarks of one replay, over all its clients."""

    served: int = 0
    """Requests of clients that were found in the capture."""
    made_up: int = 0
    """Answers that are not in the capture, misses aside: to ``initialize`` if it lacks it, to what is no message."""
    unheard: int = 0
    """Notifications of clients that are not in the capture."""
    answers: list[Answer] = field(default_factory=list)
    answers_same: int = 0
    """Answers of clients that are as recorded."""
    answers_other: int = 0
    """All that are not, also those that are not kept in ``answers``."""
    stray: int = 0
    """Answers of clients to nothing that was asked."""
    uncancelled: list[Message] = field(default_factory=list)
    """The recorded requests that were cancelled in the recording, and not now."""
    elsewhere: int = 0
    """HTTP requests to paths at which nothing is served."""
    stopped: int = 0
    """Requests that the client cancelled now, and not in the recording."""

    def answer(self, answer: Answer) -> None:
        """Note an answer of a client."""
        if answer.live is not None and not answer.differences:
            self.answers_same += 1
            return
        self.answers_other += 1
        if len(self.answers) < KEPT:
            self.answers.append(answer)
