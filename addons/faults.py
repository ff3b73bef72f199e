"""Does faults to messages: late, lost, doubled, broken, refused (docs/faults.md). For mitmproxy; others have --fault.

mitmdump -s "$(mcpsniff addons mcp_capture)" -s faults.py --set faults=latency=1s,p=0.1 --set faults_seed=7
"""

import asyncio
import time
from collections.abc import Sequence

from mcpsniff import Loader, Message, Returned, ctx
from mcpsniff.proxy.faults.interceptor import Faults
from mcpsniff.proxy.faults.reading import faults_from

chosen: list[Faults] = []


def load(loader: Loader) -> None:
    """Declare the options."""
    loader.add_option("faults", Sequence[str], [], "What --fault takes: NAME[=VALUE][,p=0.1]... May be set repeatedly.")
    loader.add_option("faults_seed", str, "", "The seed that an earlier run has told.")
    loader.add_option("faults_from", Sequence[str], [], "Captures, whose faults are done again instead.")


def configure(updated: set[str]) -> None:
    """Read the faults."""
    if {"faults", "faults_seed", "faults_from"} & updated:
        options = ctx.options
        asked = {"fault": options.faults, "fault_seed": options.faults_seed or None, "fault_from": options.faults_from}
        chosen[:] = faults_from(asked, "http") if any(asked.values()) else []


def running() -> None:
    """The capture says what was asked for, and the seed."""
    for faults in chosen:
        faults.begin(ctx.remark)


async def mcp_edit(message: Message) -> Returned:
    """Do what is chosen for this message."""
    for faults in chosen:
        doing = faults.doing(message, "stdio" if message.frame.framing == "line" else "http")
        if doing is not None:
            await asyncio.sleep(max(0.0, doing.due - time.monotonic()))
            return doing.done(message)
    return message


def done() -> None:
    """Tell how often each fault struck."""
    for faults in chosen:
        for sentence in faults.end():
            ctx.log.info(sentence)
