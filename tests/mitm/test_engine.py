"""The engine, as whoever starts and ends it sees it."""

import asyncio
import warnings

import pytest

from mcpsniff.proxy.mitm.engine import Engine


@pytest.mark.parametrize("is_closed", [False, True])
def test_calls_to_an_engine_that_has_ended_are_nothing(is_closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread may still be alive then, for a moment."""
    engine = Engine([], modes=["regular@127.0.0.1:0"])
    loop: asyncio.AbstractEventLoop = engine._loop
    monkeypatch.setattr(engine._thread, "is_alive", lambda: True)
    if is_closed:
        loop.close()
    called: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.call(lambda: called.append(1))
    loop.close()
    assert called == []


def test_what_is_called_in_an_engine_raises_where_it_was_called() -> None:
    engine = Engine([], modes=["regular@127.0.0.1:0"])
    engine.start()
    try:
        with pytest.raises(ZeroDivisionError):
            engine.call(lambda: 1 / 0)
    finally:
        engine.stop()
