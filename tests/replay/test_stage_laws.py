"""Laws of serving: whoever says what the recorded client said is told the same, byte for byte; nothing ever hangs."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpsniff.capture.reader import open_capture
from mcpsniff.protocol.message import INVALID
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.script import Script, Talk, is_answer
from tests.captures.samples import FOLDER, NAMES
from tests.replay.staging import MOMENT, Client, Kept, messages_of, on_stage
from tests.sessions import records
from tests.transcript.http_sessions import TROUBLE
from tests.transcript.http_sessions import records as http_records


def scripts() -> dict[str, Script]:
    found = {name: read_script(open_capture(str(FOLDER / f"{name}.mcpcap"))) for name in NAMES}
    found["trouble"] = read_script(Kept(http_records(TROUBLE), "http"))
    return found


SCRIPTS = scripts()


def told(talk: Talk) -> Counter[bytes]:
    """What the server said in a talk: batches as one, where the client did not ask in one."""
    said: Counter[bytes] = Counter()
    for scene in [*talk.scenes, *([talk.farewell] if talk.farewell is not None else [])]:
        was_batch = scene.cue is not None and scene.cue.batch is not None
        for line in scene.lines:
            if line.message is not None and line.message.direction == "s2c":
                is_whole = line.batch is not None and not was_batch
                if not is_whole:
                    said[line.message.raw] += 1
                elif line.batch is not None and line.batch.lines[0][1] is line:
                    said[line.batch.message.raw] += 1
    return said


async def say_all(client: Client, talk: Talk) -> None:
    """Say what the recorded client said, in its order, answers under the ids under which is asked now."""
    prologue = client.session.prologue(client)
    if prologue is not None:
        await prologue.wait()
    asked = {message.n: message for message in talk.messages if message.direction == "s2c" and message.method}
    for message in talk.messages:
        if message.direction == "s2c":
            continue
        assert not is_answer(message) or message.link is None or message.link.request in asked
        client.hear(message.raw)
        await asyncio.sleep(MOMENT)
    await client.session.done()
    farewell = client.session.farewell(client)
    if farewell is not None:
        await farewell.wait()


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_recorded_client_is_told_the_same(name: str) -> None:
    script = SCRIPTS[name]
    served: list[tuple[Counter[bytes], Counter[bytes]]] = []

    async def act(client: Client) -> None:
        for talk in script.talks:
            if not any(scene.cue for scene in talk.scenes):
                continue
            one = Client(client.stage)
            await say_all(one, talk)
            came = [out for out in one.out if out.line is not None and out.line.message is not None]
            served.append((told(talk), Counter(out.data for out in came)))

    stage = on_stage(script, act, timeout=1.0, over_http=script.is_http)
    assert stage.matcher.missed == 0
    for wanted, got in served:
        assert got == wanted


IDS = st.integers(0, 3) | st.sampled_from(["0", "1", "x"])
METHODS = st.sampled_from(["initialize", "tools/call", "ping", "sampling/createMessage", "notifications/progress"])
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from("ab"),
        "progressToken": IDS,
        "requestId": IDS,
        "_meta": st.fixed_dictionaries({}, optional={"progressToken": IDS}),
    },
)
MESSAGES = st.one_of(
    st.builds(lambda n, m, p: {"jsonrpc": "2.0", "id": n, "method": m, "params": p}, IDS, METHODS, PARAMS),
    st.builds(
        lambda m, p: {"jsonrpc": "2.0", "method": f"notifications/{m}", "params": p},
        st.sampled_from(["progress", "cancelled", "x"]),
        PARAMS,
    ),
    st.builds(lambda n: {"jsonrpc": "2.0", "id": n, "result": {}}, IDS),
    st.builds(lambda n: {"jsonrpc": "2.0", "id": n, "error": {"code": 1, "message": ""}}, IDS | st.none()),
    st.just("noise"),
    st.just('[{"jsonrpc":"2.0","id":1,"method":"ping"},5]'),
)
SESSIONS = st.lists(st.tuples(st.sampled_from(["c2s", "s2c"]), MESSAGES), max_size=14)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(SESSIONS, st.lists(MESSAGES, max_size=10), st.sampled_from(["none", "original"]))
def test_whatever_was_recorded_and_whatever_is_said_everything_ends(
    recorded: list[tuple[str, Any]], live: list[Any], timing: str
) -> None:
    """Each request is answered at most once more often than it was, nothing hangs, and nothing is made of nothing."""
    script = read_script(Kept(records(*recorded), "stdio"))

    async def act(client: Client) -> None:
        for one in live:
            for message in messages_of(one):
                client.session.heard(message, client)
            await asyncio.sleep(MOMENT)
        await client.session.done()
        assert all(out.data for out in client.out)
        for out in client.out:
            if out.line is None:
                assert json.loads(out.data)["jsonrpc"] == "2.0"
            elif out.line.message is not None and out.line.message.kind == INVALID and not out.is_batch:
                assert out.data == out.line.message.raw

    on_stage(script, act, timing=timing, timeout=2.0)
