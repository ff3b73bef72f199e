"""Tell a client on pipes why nothing is served: its first request gets a JSON-RPC error, and it need not guess."""

import os
import select
import time
from contextlib import suppress
from typing import Final

from mcpsniff.protocol.message import REQUEST
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.replay.serve import made_up
from mcpsniff.replay.serve.heard import live_messages
from mcpsniff.replay.serve.pipes import CHUNK, Lines, write_all

WAIT: Final = 5.0
"""Seconds that a client has to ask for something."""


def refuse(text: str, stdin: int, stdout: int) -> None:
    """Answer the first request that comes on ``stdin`` with an error that says ``text``.

    People at a terminal wait for nothing, nor does anybody longer than WAIT.
    """
    with suppress(OSError):
        if not os.isatty(stdin):
            token = _first_id(stdin)
            if token is not None:
                write_all(stdout, made_up.error(token, made_up.INTERNAL_ERROR, text) + b"\n")


def _first_id(stdin: int) -> str | None:
    """The id of the first request that comes; None if none does."""
    lines, reader = Lines(), JsonReader()
    until = time.monotonic() + WAIT
    while (left := until - time.monotonic()) > 0 and select.select([stdin], [], [], left)[0]:
        try:
            data = os.read(stdin, CHUNK)
        except BlockingIOError:
            continue
        for line in lines.feed(data) if data else lines.rest():
            for message in live_messages(line, reader):
                if message.kind == REQUEST and message.id is not None:
                    return message.id
        if not data:
            return None
    return None
