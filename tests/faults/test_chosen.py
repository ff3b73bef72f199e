"""The same seed and the same traffic give the same faults, and so does a capture of them."""

import json
import random
import re
import threading
from pathlib import Path

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.hooks import arrivals
from mcpsniff.proxy.faults.reading import faults_from
from mcpsniff.proxy.faults.recorded import faults_of
from tests.faults.stage import Faulty, call, notification, options, request, result

MIXED = ("latency=1us..90us,p=0.2", "drop,p=0.1", "wrong-id=other,p=0.1", "duplicate,p=5%", "noise,p=0.05")


def exchanges(faulty: Faulty, number: int = 100, *, seed: int = 0) -> list[str]:
    """Calls whose answers come in some order; why which fault was done."""
    order = random.Random(seed)
    for first in range(0, number, 10):
        ids = list(range(first, first + 10))
        for at in ids:
            faulty.client(call(at, "echo"))
            faulty.server(notification("notifications/message", data=at))
        order.shuffle(ids)
        for at in ids:
            faulty.server(result(at, content=[]))
    return sorted(faulty.whys)


def recorded(path: Path, whys: list[str]) -> str:
    """A capture with these reasons in it."""
    header = {"mcpcap": 1, "run": "01J", "part": 1, "started": "2026-11-29T10:00:00.000000Z", "label": "x"}
    records: list[list[object]] = [[0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}]]
    for at, why in enumerate(whys):
        records.append([at, "chunk", 0, "{}\n"])
        if at % 2:
            records.append([at, "hold", 0, {"start": at * 3, "length": 3, "us": 5, "by": "faults", "why": why}])
        else:
            records.append([at, "rewrite", 0, {"start": at * 3, "length": 3, "data": "", "by": "faults", "why": why}])
            records.append([at, "rewrite", 0, {"start": at * 3, "length": 0, "data": "", "by": "faults", "why": why}])
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *records]), encoding="utf-8")
    return str(path)


def test_a_seed_gives_the_same_faults_whatever_the_order_of_the_answers() -> None:
    first, other = exchanges(Faulty(*MIXED, seed=7)), exchanges(Faulty(*MIXED, seed=7), seed=1)
    assert first == other
    assert len(first) > 50
    assert exchanges(Faulty(*MIXED, seed=8)) != first


def test_the_order_of_threads_does_not_matter() -> None:
    """Two conversations at once, with ids of their own."""

    def talk(faulty: Faulty, name: str, first: int) -> None:
        for at in range(first, first + 50):
            faulty.client(call(at, "echo"), name)
            faulty.server(result(at), name)

    runs = []
    for order in ((0, 100), (100, 0)):
        faulty = Faulty(*MIXED, seed=7)
        threads = [threading.Thread(target=talk, args=(faulty, str(first), first)) for first in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        runs.append(sorted(faulty.whys))
    assert runs[0] == runs[1]
    assert len(runs[0]) > 20


def test_a_fault_is_chosen_about_as_often_as_was_asked_for() -> None:
    whys = exchanges(Faulty("drop,if=kind:request,p=0.3", seed=3), 1000)
    assert 200 < len(whys) < 400


def test_another_fault_beside_it_changes_nothing() -> None:
    alone = exchanges(Faulty("drop,p=0.1", seed=3))
    beside = exchanges(Faulty("latency=1us,p=0.1", "drop,p=0.1", seed=3))
    assert {re.sub(r"latency=1us \+ ", "", why) for why in beside if "drop" in why} == set(alone)


def test_a_capture_gives_the_same_faults_again(tmp_path: Path) -> None:
    first = exchanges(Faulty(*MIXED, "reorder,p=0.1", seed=7))
    again = Faulty(again=[recorded(tmp_path / "x.mcpcap", first)])
    assert set(exchanges(again, seed=5)) == set(first)
    places = len({why.partition("(")[2] for why in first})
    (told,) = again.editor.end()
    assert re.fullmatch(r"faults: all [0-9]+ of x\.mcpcap again", told)
    assert int(told.split()[2]) >= places
    assert again.remarks == ["faults on purpose: those of x.mcpcap again (--fault-from)"]


def test_a_message_that_does_not_come_again_is_told(tmp_path: Path) -> None:
    first = exchanges(Faulty("drop,if=kind:request", seed=7), 10)
    again = Faulty(again=[recorded(tmp_path / "x.mcpcap", first)])
    again.client(call(3, "echo"))
    (told,) = again.editor.end()
    assert told == (
        "faults: 1 of the 10 of x.mcpcap again; the other messages did not come, such as the client's request"
        " tools/call id 0"
    )


def test_the_seed_is_told_at_the_end_and_in_the_capture() -> None:
    faulty = Faulty("drop,if=tool:echo kind:request", "stall,p=0", "noise,if=tool:none", seed=None)
    faulty.client(call(1, "echo"))
    faulty.client(call(2, "other"))
    faulty.server(result(2))
    hits, *missed = faulty.editor.end()
    seed = re.fullmatch(r"faults: drop,if=tool:echo kind:request once \(--fault-seed ([0-9]+) repeats them\)", hits)
    assert seed is not None
    assert missed == [
        "the fault stall,p=0 struck no message: of 1 that match, none was chosen",
        "the fault noise,if=tool:none struck no message: none matches",
    ]
    (remark,) = faulty.remarks
    assert remark == (
        "faults on purpose: --fault 'drop,if=tool:echo kind:request' --fault 'stall,p=0' --fault 'noise,if=tool:none'"
        f" --fault-seed {seed[1]}"
    )


def test_places() -> None:
    faulty = Faulty("latency=0us,if=kind:request or kind:response or kind:notification")
    faulty.client(request("7", "tools/call", name="x", _meta={"progressToken": 1}))
    faulty.server(notification("notifications/progress", progressToken=1))
    faulty.server(result("7"))
    faulty.server(result("7"))
    faulty.client(request("7", "tools/call", name="x"))
    faulty.client(request("b1c", "odd (method)\n"))
    faulty.server(result("b1c"))
    faulty.server(request(7, "ping"))
    faulty.client(notification("notifications/roots/list_changed"))
    faulty.client(notification("notifications/roots/list_changed"))
    assert [why.partition("(")[2][:-1] for why in faulty.whys] == [
        "client's request tools/call id 7",
        "server's notification notifications/progress about tools/call id 7 no. 1",
        "server's answer to tools/call id 7",
        "server's answer id 7",
        "client's request tools/call id 7 no. 2",
        "client's request odd%20%28method%29%0A no. 1",
        "server's answer to odd%20%28method%29%0A no. 1",
        "server's request ping id 7",
        "client's notification notifications/roots/list_changed no. 1",
        "client's notification notifications/roots/list_changed no. 2",
    ]


def test_each_session_has_its_own_places() -> None:
    """Two clients that count their ids in the same way, at once."""
    faulty = Faulty("latency=0us,if=method:tools/call kind:request")
    for talk in ("one", "two"):
        faulty.client(request(0, "initialize"), talk)
    for talk in ("two", "one", "neither"):
        faulty.client(call(1, "echo"), talk)
    assert [why.partition("(")[2][:-1] for why in faulty.whys] == [
        "client's request tools/call id 1 of session 2",
        "client's request tools/call id 1",
        "client's request tools/call id 1 no. 2",
    ]


def test_hostile_text_comes_back_from_a_capture(tmp_path: Path) -> None:
    faulty = Faulty('noise="a) + drop (client\'s, 100%41 \u202e",if=kind:request', "latency=0us,if=kind:request")
    faulty.client(call(1, "echo"))
    found = faults_of(recorded(tmp_path / "x.mcpcap", faulty.whys))
    ((place, strikes),) = found.items()
    assert place == "client's request tools/call id 1"
    assert [(strike.kind.name, strike.value.text) for strike in strikes] == [
        ("noise", "a) + drop (client's, 100%41 \u202e"),
        ("latency", "0us"),
    ]


def test_captures_that_cannot_be_repeated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--fault-from: .*none\.mcpcap has no faults of --fault in it"):
        faults_of(recorded(tmp_path / "none.mcpcap", ["a rule"]))
    with pytest.raises(UsageError, match=r"has a fault later=5: there is no fault later"):
        faults_of(recorded(tmp_path / "new.mcpcap", ["fault later=5 (client's request ping id 1)"]))
    with pytest.raises(UsageError, match=r"has a fault latency=5: a unit belongs here"):
        faults_of(recorded(tmp_path / "new.mcpcap", ["fault latency=5 (client's request ping id 1)"]))
    with pytest.raises(UsageError, match="--fault-from: "):
        faults_of(str(tmp_path / "missing.mcpcap"), str(tmp_path))


def test_what_pipes_do_not_have_is_left_out_and_not_counted(tmp_path: Path) -> None:
    first = ["fault status=429 (client's request tools/call id 1)", "fault drop (client's request tools/call id 2)"]
    capture = recorded(tmp_path / "web.mcpcap", first)
    said: list[str] = []
    (faults,) = faults_from(options(again=[capture]), "stdio", said.append)
    assert said == ["faults: 1 of web.mcpcap left out: a status is one of HTTP, and pipes have none"]
    again = Faulty(again=[capture])
    assert [again.client(call(at, "echo")) is None for at in (1, 2)] == [True, False]
    assert again.editor.end() == ["faults: all 1 of web.mcpcap again"]
    (missed,) = faults.end()
    assert missed.startswith("faults: 0 of the 1 of web.mcpcap again; the other messages did not come, such as the cl")
    with pytest.raises(UsageError, match="only faults of HTTP"):
        faults_from(options(again=[recorded(tmp_path / "only.mcpcap", first[:1])]), "stdio", said.append)


def test_latency_counts_from_the_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two answers that came together the second does not wait behind the first."""
    now = [5.0]
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(arrivals.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(arrivals.time, "monotonic_ns", lambda: round(now[0] * 1e9))
    monkeypatch.setattr(arrivals.time, "sleep", sleep)
    faulty = Faulty("latency=200ms")
    faulty.client(call(1, "echo"))
    faulty.client(call(2, "echo"))
    faulty.server(result(1))
    assert sum(slept) == pytest.approx(0.2, abs=0.003)
    faulty.server(result(2))
    assert sum(slept) == pytest.approx(0.2, abs=0.003)
    faulty.lanes["s2c"].is_gone = True
    faulty.client(call(3, "echo"))
    now[0] += 1
    faulty._t += 1_000_000
    faulty.server(result(3))
    assert sum(slept) == pytest.approx(0.2, abs=0.003)


def test_all_faults_of_a_batch_are_recorded_and_come_again(tmp_path: Path) -> None:
    batch = [call(at, "echo") for at in range(4)]
    first = Faulty("drop,if=id:1 kind:request", "latency=1us,if=id:2 kind:request", "error,if=id:3 kind:request")
    left = first.left("c2s", batch)
    (why,) = first.whys
    assert why.count("fault ") == 3
    again = Faulty(again=[recorded(tmp_path / "x.mcpcap", first.whys)])
    assert again.left("c2s", batch) == left
    assert again.editor.end() == ["faults: all 3 of x.mcpcap again"]
