"""Run a command when it is its turn: the conformance suite starts the clients of all its scenarios at once.

    python turn.py FOLDER COMMAND [ARG...]

At most `TURNS` run at a time. FOLDER gets a folder for each scenario, for captures (in ``MCPSNIFF_DIR``), and for what
the client tells (``CONFORMANCE_SAID``).
"""

import fcntl
import os
import sys
import zlib

TURNS = 3


def main(folder: str, command: list[str]) -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    own = os.path.join(folder, scenario)
    os.makedirs(own)
    lock = os.open(os.path.join(folder, f"turn-{zlib.crc32(scenario.encode()) % TURNS}"), os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.set_inheritable(lock, True)  # the command holds it until it ends
    os.environ["MCPSNIFF_DIR"] = own
    os.environ["CONFORMANCE_SAID"] = os.path.join(own, "said.jsonl")
    os.execvp(command[0], command)


main(sys.argv[1], sys.argv[2:])
