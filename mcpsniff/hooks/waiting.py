"""Asynchronous hooks: all run in the loop of one thread, which begins with the first of them."""

from collections.abc import Awaitable, Coroutine
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from mcpsniff.hooks.strays import of_loop, of_loop_thread

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from mcpsniff.hooks.editor import Lane

AT_ONCE: Final = 0.001
"""Seconds in which a hook that does not wait is done."""
LOOK: Final = 0.1
"""Seconds between two looks whether anybody is still there to whom a held message could go."""

LONG: Final = 1.0
"""Seconds: a longer wait is told of when it begins, or as soon as it is that long (`Lane.held`)."""

_lock: Final = Lock()
_loops: "Final[list[asyncio.AbstractEventLoop]]" = []


class GoneError(Exception):
    """Nobody is there any more to whom the message could go."""


def settled(returned: Any, lane: "Lane | None" = None, by: str = "") -> Any:
    """What a hook of ``by`` has returned, awaited if it is asynchronous. Raises what it raises, and GoneError."""
    if not hasattr(returned, "__await__"):
        return returned
    future = _begin(returned)
    if lane is None or _is_done(future, AT_ONCE):
        return _outcome(future)
    with lane.holding():
        long: float | None = monotonic() + LONG
        while not _is_done(future, LOOK):
            if long is not None and monotonic() >= long:
                long = None
                lane.held(by)
            if lane.is_gone:
                future.cancel()
                raise GoneError
    return _outcome(future)


def _begin(awaitable: Awaitable[Any]) -> "Future[tuple[Any, BaseException | None]]":
    import asyncio

    try:
        with _lock:
            if not _loops:
                _loops.append(_loop())
    except BaseException:
        if isinstance(awaitable, Coroutine):
            awaitable.close()  # else Python tells of it, too
        raise
    return asyncio.run_coroutine_threadsafe(_guarded(awaitable), _loops[0])


def _loop() -> "asyncio.AbstractEventLoop":
    """A loop that runs in a thread of its own. Raises OSError or RuntimeError: no descriptors, no threads."""
    import asyncio

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(of_loop)
    try:
        Thread(target=_run, args=(loop,), name="asynchronous hooks", daemon=True).start()
    except BaseException:
        loop.close()
        raise
    return loop


def _run(loop: "asyncio.AbstractEventLoop") -> None:
    """Run it for ever: a SystemExit in any of its tasks ends that, and so does an addon that stops it."""
    while not loop.is_closed():
        try:
            loop.run_forever()
        except BaseException as error:  # noqa: BLE001 - the other hooks go on
            of_loop_thread(error)
    with _lock:
        _loops.clear()  # the next hook gets another one


async def _guarded(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """The result, or the exception: a SystemExit would end the loop."""
    try:
        return await awaitable, None
    except BaseException as error:  # noqa: BLE001
        return None, error


def _is_done(future: "Future[tuple[Any, BaseException | None]]", seconds: float) -> bool:
    """Wait for so long or less."""
    from concurrent.futures import wait

    return bool(wait([future], seconds).done)


def _outcome(future: "Future[tuple[Any, BaseException | None]]") -> Any:
    """What came of it, for which it is waited."""
    result, error = future.result()
    if error is not None:
        raise error
    return result
