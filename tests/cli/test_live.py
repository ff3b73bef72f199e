"""The process behind the live view of `mcpsniff http`: what it does when something goes wrong in it."""

import subprocess
import sys

import pytest

from tests.cli.running import environment

SCRIPT = """
import sys
from mcpsniff.cli import live, tail
def fail(self):
    raise {error}
tail.Tail.run = fail
sys.exit(live.main([]))
"""


def ended(error: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(error=error)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(**env),
        timeout=60,
    )


def test_a_bug_is_one_line() -> None:
    done = ended("ZeroDivisionError('by nothing')")
    assert done.returncode == 70
    assert done.stderr.count("\n") == 1
    assert "bug in mcpsniff" in done.stderr
    assert "ZeroDivisionError: by nothing" in done.stderr
    assert "Traceback" in ended("ZeroDivisionError('by nothing')", MCPSNIFF_DEBUG="1").stderr


@pytest.mark.parametrize(("error", "status"), [("BrokenPipeError()", 0), ("OSError(28, 'No space left on device')", 3)])
def test_an_output_that_fails(error: str, status: int) -> None:
    done = ended(error)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert ("No space left on device" in done.stderr) == bool(status)
