"""Run a module as a program that ends with whoever started it, also if that is killed: it holds our standard input.

`python -m mcpsniff.testing.watched MODULE [ARG]...`
"""

import os
import runpy
import signal
import sys
from threading import Thread


def main(words: list[str]) -> None:
    """Run the module ``words[0]`` with the other words as its arguments."""
    Thread(target=_end_with_starter, daemon=True).start()
    sys.argv = list(words)
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def _end_with_starter() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1:])
