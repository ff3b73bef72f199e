"""Break points, from the options that state them."""

import atexit
from collections.abc import Callable, Sequence

from mcpsniff.errors import UsageError
from mcpsniff.proxy.breaks.desk import Desk
from mcpsniff.proxy.breaks.places import listening
from mcpsniff.proxy.breaks.point import BreakPoints
from mcpsniff.proxy.breaks.service import Service
from mcpsniff.proxy.rules.matching import Matcher, matcher
from mcpsniff.proxy.rules.texts import RuleError
from mcpsniff.transcript.filter.error import FilterError


def breaks_from(
    words: Sequence[str], timeout: float | None, transport: str, say: Callable[[str], object]
) -> BreakPoints:
    """The break points that ``words`` ask for; what they hold passes unchanged after ``timeout`` seconds.

    From now on others can attach, and are served once it begins. Raises UsageError: no filter expression, one that
    cannot be judged on a held message, no place for the socket.
    """
    if timeout is not None and timeout <= 0:
        raise UsageError("--break-timeout needs a number of seconds above 0")
    points = [(expression, _matcher(expression)) for expression in words]
    listener, path = listening()
    found = BreakPoints(points, Desk(timeout), transport, say)
    found.service = Service(found.desk, listener, path, found.describe)
    atexit.register(found.service.stop)  # for a start that fails after this; a session ends itself
    return found


def _matcher(expression: str) -> Matcher:
    try:
        return matcher(expression)
    except FilterError as error:
        raise RuleError(f"--break: {error}") from None
