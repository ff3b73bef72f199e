"""Which conversations of a capture are served."""

import re

import pytest

from mcpsniff.capture.records import Header
from mcpsniff.cli.replay_serve import talks_of
from mcpsniff.errors import CaptureError, UsageError
from mcpsniff.replay.script import Script, Talk
from tests.cli.running import run
from tests.replay.staging import script_of

HEADER = Header("01J", 1, "2026-11-29T10:00:00.000000Z", "forward")


def of(*servers: str) -> Script:
    """A capture of these servers, each of which was asked something."""
    asked = script_of("@open 2025-11-25").talks[0].scenes
    return Script("many.mcpcap", HEADER, [Talk(n, "session", name, list(asked)) for n, name in enumerate(servers, 1)])


def test_one_server_needs_no_choice_and_may_have_several_conversations() -> None:
    script = of("http://a:1", "http://a:1")
    assert talks_of(script, None) == script.talks
    assert talks_of(script, "a") == script.talks


def test_of_several_servers_one_has_to_be_chosen() -> None:
    script = of("http://a:1", "http://b:1", "http://a:1")
    with pytest.raises(UsageError, match=re.escape("the capture has several servers: http://a:1, http://b:1; choose")):
        talks_of(script, None)
    assert [talk.number for talk in talks_of(script, "a:1")] == [1, 3]
    with pytest.raises(
        UsageError, match="no server of the capture has 'c' in its address; there is http://a:1, http://b:1"
    ):
        talks_of(script, "c")
    with pytest.raises(UsageError, match="several"):
        talks_of(script, "http")


@pytest.mark.parametrize("words", [["replay", "x"], ["resend", "x", "3"]], ids=str)
def test_a_command_without_dashes_is_told_how_it_is_written(words: list[str]) -> None:
    ran = run(*words, "--to", "python", "my server.py", "-v")
    assert ran.status == 2
    assert "a command comes after --: --to -- python 'my server.py' -v" in ran.err
    ran = run(*words, "--to", "python")
    assert (ran.status, "--to -- python" in ran.err) == (2, True)


def test_exchanges_without_messages_can_be_served_over_http_only() -> None:
    script = script_of("@http\nC> GET /mcp\nS> 405\n")
    assert talks_of(script, None, over_http=True) == []
    with pytest.raises(CaptureError, match="there is nothing to replay in kept"):
        talks_of(script, None)
