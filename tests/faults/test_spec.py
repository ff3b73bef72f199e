"""What `--fault` understands, and what it says of the rest."""

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.proxy.faults.kinds import KINDS
from mcpsniff.proxy.faults.reading import faults_from
from mcpsniff.proxy.faults.spec import read
from mcpsniff.proxy.faults.values import Code, Part, Status, Times
from tests.faults.stage import Faulty, call, notification, options, request, result


def test_all_that_can_be_said() -> None:
    spec = read('noise="a, \\"b\\"",p=12.5%,if=tool:echo text:"x,y",after=3,times=2', "stdio")
    assert (spec.kind.name, spec.value.means, spec.probability, spec.after, spec.times) == (
        "noise", 'a, "b"', 0.125, 3, 2,
    )  # fmt: skip
    assert spec.matches is not None


@pytest.mark.parametrize("name", KINDS)
def test_every_fault_has_a_value_of_its_own(name: str) -> None:
    spec = read(name, "http")
    assert (spec.probability, spec.after, spec.times, spec.matches) == (1, 0, None, None)
    assert read(f"{name}={spec.value.text}", "http").value == spec.value if spec.kind.value else not spec.value.text


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("latency=1.5s", Times(1_500_000, 1_500_000)),
        ("latency=100ms..2s", Times(100_000, 2_000_000)),
        ("latency=0ms", Times(0, 0)),
        ("cut=10%", Part(10, True)),
        ("cut=1k", Part(1024, False)),
        ("slow=2k", 2048),
        ("status=429", Status(429, "")),
        ('status=401:"Basic x"', Status(401, "Basic x")),
        ('status=401:Basic realm="x"', Status(401, 'Basic realm="x"')),
        ('error=1:"a, \\"b\\""', Code(1, 'a, "b"')),
        ('error="1:\\"b\\""', Code(1, '"b"')),
        ('noise=x:"b"', 'x:"b"'),
        ('status="401:Bearer realm=\\"x\\", scope=\\"y\\""', Status(401, 'Bearer realm="x", scope="y"')),
        ("error=-32601", Code(-32601, "Internal error")),
        ("error=5:a:b", Code(5, "a:b")),
        ("wrong-id=null", "null"),
    ],
)
def test_values(text: str, means: object) -> None:
    assert read(text, "http").value.means == means


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no fault without a name (mcpsniff addons --faults lists them)"),
        ("drpo", "there is no fault drpo; did you mean drop? (mcpsniff addons --faults lists them)"),
        ("drop=1", "it takes no value"),
        ("latency=", "a value is missing after ="),
        ("latency=5", "a unit belongs here: us, ms, s, m, h"),
        ("latency=2s..1s", "the range begins behind its end: 1s..2s"),
        ("latency=25h", "25h is no time up to 24 h, such as 200ms"),
        ("latency=..1s", "nothing is no time up to 24 h, such as 200ms"),
        ("reorder=1s..2s", "there is no unit s..2s, but us, ms, s, m, h"),
        ("drop,p=2", "p=2 is no probability: 0 to 1, or 0% to 100%"),
        ("drop,p=nan", "p=nan is no probability: 0 to 1, or 0% to 100%"),
        ("drop,p=x", "p=x is no probability: 0 to 1, or 0% to 100%"),
        ("drop,p=1,p=0.5", "p= is given twice"),
        ("drop,after=-1", "-1 is no whole number"),
        ("drop,times=", "nothing is no whole number"),
        (
            "drop,if=hello, world",
            ' world is none of p=, if=, after=, times=; a text with a comma stands in quotes, "…"',
        ),
        ("cut=100%", "100% is not a part of something: 0% to 99%"),
        ("cut=1.5", "1.5 is no number of bytes, such as 20 or 1k"),
        ("slow=0", "at 0 bytes per second nothing goes on: that is the fault stall"),
        ("status=200", "200 is no status of HTTP that refuses: 400 to 599"),
        ("status=401:a\nb", "what a header says is printable ASCII"),
        ('noise=say "hi', 'a quote does not end; in quotes \\" stands for one: "say \\"hi\\""'),
        ('drop,if=text:"a,p=1', 'a quote does not end; in quotes \\" stands for one: "say \\"hi\\""'),
        ("error=x", "x is no code of an error, such as -32603"),
        ("wrong-id=odd", "odd is none of type, other, null, none"),
        ('noise="a\nb"', "it takes one line of text"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(text, "http")
    shown = text.replace("\n", "\\n")
    assert str(raised.value) == f"--fault {shown}: {said}"


def test_a_wrong_expression_is_shown_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"state: cannot be asked here"):
        read("drop,if=state:open", "http")
    with pytest.raises(UsageError) as raised:
        read('noise="a, b", if = tol:echo,p=1', "http")
    assert raised.value.lines == (
        "--fault: filter, column 20: there is no field tol; did you mean tool?",
        '  noise="a, b", if = tol:echo,p=1',
        "                     ^",
    )


def test_what_would_change_nothing_is_no_fault() -> None:
    faulty = Faulty("wrong-id=null,if=kind:error", "error=-32603:no,if=kind:error")
    assert faulty.server({"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "no"}}) is None
    first, second = faulty.editor.end()
    assert "struck no message" in first
    assert "struck no message" in second


def test_pipes_have_no_status() -> None:
    with pytest.raises(UsageError, match="a status is one of HTTP, and pipes have none"):
        read("status=401", "stdio")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fault_seed": "1"}, "--fault-seed goes with --fault"),
        ({"fault": ["drop"], "fault_seed": "x"}, "--fault-seed is a whole number, not x"),
        ({"fault": ["drop"], "fault_seed": ""}, "--fault-seed is a whole number, not nothing"),
        ({"fault": ["drop"], "fault_from": ["x"]}, "goes without --fault and --fault-seed"),
        ({"fault_seed": "1", "fault_from": ["x"]}, "goes without --fault and --fault-seed"),
    ],
)
def test_options_that_do_not_fit_together(given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        faults_from({**options(), **given}, "stdio")


def test_the_handshake_is_left_alone_unless_it_is_named() -> None:
    initialize, initialized = request(1, "initialize"), notification("notifications/initialized")
    faulty = Faulty("drop")
    assert faulty.client(initialize) is faulty.server(result(1)) is faulty.client(initialized) is None
    assert faulty.client(request(2, "server/discover")) is faulty.server(result(2)) is None
    named = Faulty("drop,if=method:initialize kind:response")
    assert named.client(initialize) is None
    assert named.server(result(1)) is not None


def test_an_expression_chooses_among_the_kinds_that_a_fault_is_meant_for() -> None:
    plain, other = Faulty("latency=1us,if=tool:echo"), Faulty("latency=1us,if=tool:echo kind:request")
    for faulty, at_call in ((plain, False), (other, True)):
        assert (faulty.client(call(1, "echo")) is not None) is at_call
        assert (faulty.server(result(1)) is not None) is not at_call
        assert faulty.client(call(2, "other")) is None


def test_the_first_ones_are_left_alone_and_no_more_than_so_many_are_struck() -> None:
    faulty = Faulty("drop,if=method:tools/call kind:request,after=2,times=3")
    struck = [number for number in range(10) if faulty.client(call(number, "echo")) is not None]
    assert struck == [2, 3, 4]
