"""What each client does under faults, written once for every version of the Python SDK.

For each fault a call that it strikes, and one that it does not; either ends with a result or an error, or after a time.
Runs inside the SDKs' environments: standard library only.
"""

import asyncio
import functools
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

LAST_SECONDS = 120
"""After which a call is taken for one that never ends, although its own time-out is long over."""


async def outcome(call: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
    """What a call came to: the text of its result, or its error."""
    try:
        result = await asyncio.wait_for(call(), LAST_SECONDS)
    except TimeoutError:
        return {"hangs": True}
    except Exception as error:
        told = getattr(error, "error", error)
        return {"error": type(error).__name__, "code": getattr(told, "code", None), "message": str(error)[:200]}
    return {"result": result.content[0].text}


async def session(plan: dict[str, Any], call: Callable[[str, float], Awaitable[Any]]) -> None:
    """Go through the faults of a plan, each with the seconds that the two calls may take."""
    for fault, (seconds, more) in plan["faults"].items():
        plan["steps"][fault] = [
            await outcome(functools.partial(call, f"struck <{fault}>", seconds)),
            await outcome(functools.partial(call, "plain", more)),
        ]


async def hold_all(hold: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    """Hold the sessions that standard input names at once. A line in: a plan. For each a line out, in order."""

    async def one(plan: dict[str, Any]) -> dict[str, Any]:
        steps: dict[str, Any] = {}
        try:
            await asyncio.wait_for(hold(plan | {"steps": steps}), LAST_SECONDS)
        except BaseException as error:
            return {"steps": steps, "failed": repr(error)[:500]}
        return {"steps": steps}

    for said in await asyncio.gather(*map(one, map(json.loads, sys.stdin))):
        print(json.dumps(said))
