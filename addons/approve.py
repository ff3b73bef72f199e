"""Asks before each call of a tool: at the terminal, or with a command of yours. Without an answer it is refused.

mcpsniff http --addon approve.py --set approve_tool=write_* URL
mcpsniff stdio --addon approve.py --set approve_with='zenity --question --text' -- SERVER
"""

import asyncio
import json
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase

import mcpsniff
from mcpsniff import Loader, Message, Returned, ctx

one_at_a_time = asyncio.Lock()


def load(loader: Loader) -> None:
    """Declare the options."""
    loader.add_option("approve_tool", Sequence[str], ["*"], "Names of tools to ask about; * stands for anything.")
    loader.add_option("approve_with", str, "", "A command that gets the question as its last word; status 0 is a yes.")


async def mcp_edit(message: Message) -> Returned:
    """Ask, and pass or refuse the call."""
    name = message.params.get("name")
    if message.kind != "request" or message.method != "tools/call":
        return message
    if not any(fnmatchcase(str(name), pattern) for pattern in ctx.options.approve_tool):
        return message
    question = f"Let the client call {json.dumps(name)} with {json.dumps(message.params.get('arguments', {}))}?"
    async with one_at_a_time:
        is_approved = await (
            by_command(question) if ctx.options.approve_with else asyncio.to_thread(at_terminal, question)
        )
    return (
        message if is_approved else mcpsniff.refuse(message, f"The call of {name} was not approved", why="not approved")
    )


async def by_command(question: str) -> bool:
    """Run the command."""
    null = asyncio.subprocess.DEVNULL
    words = [*shlex.split(ctx.options.approve_with), question]
    process = await asyncio.create_subprocess_exec(*words, stdin=null, stdout=null)
    return await process.wait() == 0


def at_terminal(question: str) -> bool:
    """Ask whoever sits at the terminal."""
    try:
        with open("/dev/tty", "r+b", buffering=0) as terminal:
            terminal.write(f"\r\n{question} [y/N] ".encode())
            return terminal.readline().strip().lower() in (b"y", b"yes")
    except OSError as error:
        ctx.log.warn(f"nobody can be asked ({error.strerror}): set approve_with to a command that asks")
        return False
