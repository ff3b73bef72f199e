"""What is told at the end of a capture that was served."""

import json

from mcpsniff.replay.serve.report import report, report_lines
from tests.replay.staging import Client, answer, call, note, on_stage, request

OPEN = "@open 2025-11-25\n"


def lines(side: str, *messages: object) -> str:
    return "".join(f"{side}> {json.dumps(message)}\n" for message in messages)


ASKING = (
    OPEN
    + lines("C", call(1))
    + lines("S", request(0, "roots/list"))
    + lines("C", answer(0, roots=[{"uri": "file:///a"}]))
    + lines("S", answer(1))
    + lines("C", call(2, "slow"), note("cancelled", requestId=2))
    + lines("C", call(3, "other"))
    + lines("S", answer(3))
    + "C> EOF\nS> EXIT 0\n"
)


def test_everything_that_differs_is_told() -> None:
    async def act(client: Client) -> None:
        await client.say(call(11), answer(0, roots=[{"uri": "file:///b\x1b[2J"}]))
        await client.say(call(12), call(13, "slow"), note("x"), answer(99), call(14, "\x1b[2J"))
        await client.session.done()

    stage = on_stage(ASKING, act, timeout=2.0)
    told = report_lines(stage)
    assert told[0] == "mcpsniff: served 3 requests: 2 of the 4 recorded, 1 request that is not in the capture"
    assert told[1:] == [
        (
            "mcpsniff:   missed: tools/call \\x1b[2J is not in the capture:"
            " tools/call was recorded only for t, slow, other"
        ),
        "mcpsniff:   record again what is missed (mcpsniff stdio, mcpsniff http)",
        "mcpsniff:   answered otherwise: #11 roots/list: differs in result.roots[0].uri",
        "mcpsniff:   answered otherwise: #11 roots/list: no answer in time",
        "mcpsniff:   not cancelled: #19 tools/call slow",
        "mcpsniff:   never asked: #2 initialize",
        "mcpsniff:   never asked: #24 tools/call other",
        "mcpsniff:   1 answer of the client to nothing that it was asked",
    ]
    asked = {"n": 11, "method": "roots/list", "target": None}
    data = json.loads(json.dumps(report(stage)))
    assert data["answers"] == {
        "same": 0,
        "other": 2,
        "differences": [
            {
                "asked": asked,
                "recorded": 13,
                "came": True,
                "differences": [
                    {
                        "path": "result.roots[0].uri",
                        "kind": "changed",
                        "recorded": "file:///a",
                        "live": "file:///b\x1b[2J",
                    }
                ],
            },
            {
                "asked": asked,
                "recorded": 13,
                "came": False,
                "differences": [],
            },
        ],
        "stray": 1,
    }
    assert data["notifications_not_recorded"] == 1
    assert [one["n"] for one in data["not_cancelled"]] == [19]


def test_of_many_the_first_are_told() -> None:
    async def act(client: Client) -> None:
        await client.say(*(call(n, f"unknown-{n}") for n in range(50)))

    told = report_lines(on_stage(ASKING, act))
    assert sum("missed: tools/call unknown" in line for line in told) == 20
    assert "mcpsniff:   missed: 30 more" in told
