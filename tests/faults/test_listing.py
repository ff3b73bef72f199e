"""`mcpsniff addons --faults`, and how the faults get into a session."""

from click.testing import CliRunner

from mcpsniff.cli.addons import command
from mcpsniff.proxy.faults.kinds import KINDS
from mcpsniff.proxy.interception import prepare
from tests.faults.stage import options


def test_all_faults_are_listed() -> None:
    done = CliRunner().invoke(command, ["--faults"])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    names = [line.partition("=")[0] for line in lines if not line.startswith(" ")]
    assert names == list(KINDS)
    assert "    of answers, default 1s" in lines


def test_options_make_an_editor() -> None:
    prepared = prepare(options("drop", "latency=5ms"), "stdio", lambda text: None)
    assert prepared is not None
    assert prepared.editor is not None
    assert [interceptor.name for interceptor in prepared.editor.interceptors] == ["faults"]
    assert prepare(options(), "stdio", lambda text: None) is None
