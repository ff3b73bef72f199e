"""`mcpsniff replay` as a test starts it: with a report of its own for each start, and a mark as long as it runs.

    python -m mcpsniff.testing.serve FOLDER CAPTURE --serve stdio ...

A client may start its server several times. Each start leaves ``FOLDER/NAME.run``, which is locked as long as the
process lives and holds its process id, and at its end ``FOLDER/NAME.json``, the report.
"""

import fcntl
import os
import sys
import time

from mcpsniff.cli.main import run

MARK = ".run"
REPORT = ".json"


def main(words: list[str]) -> int:
    """Serve; return the exit status of `mcpsniff replay`."""
    folder, *options = words
    name = os.path.join(folder, f"{time.time_ns():020}-{os.getpid()}")
    with open(name + MARK, "x", encoding="ascii") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        mark.write(str(os.getpid()))
        mark.flush()
        return run(["replay", *options, "--report", name + REPORT])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
