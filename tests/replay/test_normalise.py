"""What may differ between two runs without meaning anything."""

from typing import Any

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.protocol.paths import Pattern, path_text
from mcpsniff.replay.compare import compare
from mcpsniff.replay.normalise import NORMALISERS, SETS, STOCK, VOLATILE, Pairs, Rules, rules_of

ONE, OTHER, THIRD = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123")

SAME = [
    ("uuid", f"job {ONE} done", f"job {OTHER} done"),
    ("uuid", "id 0123456789ab4def8123456789abcdef", "id fedcba98765443219876543210fedcba"),
    ("time", "2024-01-01T00:00:00Z", "2026-11-30T13:47:15.123456+00:00"),
    ("time", "at 2024-01-01 10:00", "at 2026-11-30 13:47"),
    ("time", "20240101T000000Z", "20261130T134715Z"),
    ("time", "Sun, 06 Nov 1994 08:49:37 GMT", "Mon, 30 Nov 2026 13:47:15 GMT"),
    ("time", "Date:   Sun Nov  6 08:49:37 1994 +0100", "Date:   Mon Nov 30 13:47:15 2026 +0000"),
    ("time", "It is 1:47:15 PM", "It is 11:02:03 AM"),
    ("time", "It is 11/30/2026, 1:47:15 PM", "It is 1/2/2027, 11:02:03 AM"),
    ("time", "took 12 ms", "took 1.34 seconds"),
    ("time", "since 1700000000", "since 1800000000"),
    ("port", "http://localhost:8000/mcp", "http://localhost:41235/mcp"),
    ("port", "[::1]:80 and 127.0.0.1:1", "[::1]:8080 and 127.0.0.1:65535"),
    ("path", "/home/ann/project/a.py", "/Users/bob/project/a.py"),
    ("path", "file:///Users/bo/x.txt", "file:///home/ann/x.txt"),
    ("path", "in /tmp/tmpab12_xyz/out.txt", "in /tmp/tmp_qwertyu/out.txt"),
    ("path", "/tmp/pytest-of-ann/pytest-12/test_a0/x", "/tmp/pytest-of-ann/pytest-7/test_a0/x"),
    ("path", "/var/folders/zz/zyx_123/T/mcp-aB3dE9/x", "/tmp/mcp-Qw7Rt1/x"),
    ("path", f"/data/{ONE}/x", f"/data/{OTHER}/x"),
    ("number=0.5", "21.0 C and 3 of 4", "21.4 C and 3 of 4"),
    ("number=10%", "100 items", "109 items"),
]

NOT_THE_SAME = [
    ("uuid", f"job {ONE}", "job 12"),
    ("time", "2025-06-18", "2025-11-25"),  # a date alone: revisions are such
    ("time", "5 seconds", "10 seconds"),  # whole seconds are more often meant than measured
    ("time", "version 1.2.3", "version 1.2.4"),
    ("time", "at 2024-01-01T00:00:00Z: yes", "at 2024-01-01T00:00:00Z: no"),
    ("time", "10 ms", "10 MB"),
    ("port", "http://example.org:80/", "http://example.org:81/"),
    ("port", "localhost:80", "127.0.0.1:80"),
    ("path", "/home/ann/a.py", "/home/ann/b.py"),
    ("path", "/etc/hosts", "/etc/passwd"),
    ("path", "/srv/v1/x", "/srv/v2/x"),
    ("path", "/tmp/my-folder/x", "/tmp/my-server/x"),
    ("number=0.5", "21.0 C", "21.6 C"),
    ("number=10%", "100 items", "111 items"),
    ("number=1", "1.2.3", "1.2.4"),
]


def differs(recorded: Any, live: Any, *names: str, ignore: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    return [(path_text(one.path), one.kind) for one in compare(recorded, live, rules_of(names, ignore))]


@pytest.mark.parametrize(("name", "one", "other"), SAME)
def test_a_normaliser_takes_two_texts_for_equal_and_nothing_else_does(name: str, one: str, other: str) -> None:
    assert differs({"x": one}, {"x": other}, name) == []
    assert differs({"x": other}, {"x": one}, name) == [] or name.endswith("%")
    assert differs({"x": one}, {"x": other}) == [("x", "changed")]
    others = [known for known in NORMALISERS if known not in (name, "number") and not name.startswith("number")]
    if "/data/" not in one:  # a UUID in a path is both
        assert differs({"x": one}, {"x": other}, *others) == [("x", "changed")] or name.startswith("number")


@pytest.mark.parametrize(("name", "one", "other"), NOT_THE_SAME)
def test_a_normaliser_leaves_what_means_something(name: str, one: str, other: str) -> None:
    assert differs({"x": one}, {"x": other}, name) == [("x", "changed")]


@pytest.mark.parametrize(
    ("names", "one", "other", "same"),
    [
        (("time",), 1_700_000_000, 1_800_000_000, True),
        (("time",), 1_700_000_000_000, 1_800_000_000_123, True),
        (("time",), 1_700_000_000.5, 1_800_000_000, True),
        (("time",), 1_700_000_000, 1_700_000_000_000, False),
        (("time",), 12, 13, False),
        (("number=0.001",), 1.0, 1.0009, True),
        (("number=0.001",), 1.0, 1.002, False),
        (("number=1%",), 1000, 1010, True),
        (("number=1%",), 1000, 1011, False),
        (("number=1%",), 0, 1, False),
        (("number=0",), 1, 1.0, True),
        (("number=1",), True, 1, False),
        (("number=1",), "1", 1, False),
        (("number=1e-3",), 10**40, 10**40 + 1, False),
        (("stock",), 1, 2, False),
    ],
)
def test_numbers(names: tuple[str, ...], one: Any, other: Any, same: bool) -> None:
    assert (differs({"x": one}, {"x": other}, *names) == []) is same


def tool(name: str, *required: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "required": list(required)}}


def test_the_order_of_sets_means_nothing() -> None:
    one = {"result": {"tools": [tool("a", "x", "y"), tool("b")]}}
    other = {"result": {"tools": [tool("b"), tool("a", "y", "x")]}}
    assert differs(one, other, "order") == []
    assert differs(one, other) != []
    assert differs(one, {"result": {"tools": [tool("b"), tool("a", "y")]}}, "order") == [
        ("result.tools[0].inputSchema.required[0]", "missing")
    ]


def test_the_order_of_what_is_no_set_counts() -> None:
    one = {"result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}
    other = {"result": {"content": one["result"]["content"][::-1]}}
    assert differs(one, other, "stock") == [("result.content", "order")]
    assert differs({"result": {"required": [1, 2]}}, {"result": {"required": [2, 1]}}, "stock") == [
        ("result.required", "order")
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("id", 1),
        ("params._meta.progressToken", "a"),
        ("params.cursor", "a"),
        ("result.nextCursor", "a"),
        ("result.task.taskId", "a"),
        ("params.requestId", 4),
        ('result._meta["io.modelcontextprotocol/subscriptionId"]', "a"),
    ],
)
def test_what_the_protocol_makes_up_is_never_compared(path: str, value: Any) -> None:
    def message(held: Any) -> Any:
        for step in reversed(Pattern(path).steps):
            held = {step: held}
        return held

    assert any(Pattern(one.place).is_at(tuple(Pattern(path).steps)) for one in VOLATILE)  # type: ignore[arg-type]
    assert differs(message(value), message("another")) == []
    deeper = {"result": {"structuredContent": message(value)}}
    assert differs(deeper, {"result": {"structuredContent": message("another")}}) != []


def test_a_cursor_that_is_missing_is_a_difference() -> None:
    assert differs({"result": {"nextCursor": "a"}}, {"result": {}}) == [("result.nextCursor", "missing")]


@pytest.mark.parametrize(
    ("pattern", "covered", "not_covered"),
    [
        ("result.content[*].text", ("result", "content", 3, "text"), ("result", "content", 3, "type")),
        ("$.result._meta", ("result", "_meta", "x", 0), ("result", "meta")),
        ("result.content[1]", ("result", "content", 1, "text"), ("result", "content", 0, "text")),
        ("**.when", ("result", "a", 0, "when"), ("result", "a", 0, "then")),
        ("*.x", ("result", "x"), ("x",)),
        ('result["a.b"]', ("result", "a.b"), ("result", "a", "b")),
        ('["x"].y', ("x", "y"), ("y",)),
        ("**.x.**.y", ("x", "y"), ("x", "z")),
    ],
)
def test_a_pattern_names_places(
    pattern: str, covered: tuple[str | int, ...], not_covered: tuple[str | int, ...]
) -> None:
    assert Pattern(pattern).covers(covered)
    assert not Pattern(pattern).covers(not_covered)


def test_what_is_ignored_is_not_looked_at() -> None:
    one = {"result": {"content": [{"text": "a", "n": 1}], "_meta": {"x": 1}}}
    other = {"result": {"content": [{"text": "b", "n": 1}]}}
    assert differs(one, other) == [("result.content[0].text", "changed"), ("result._meta", "missing")]
    assert differs(one, other, ignore=("result.content[*].text", "result._meta")) == []


@pytest.mark.parametrize(
    ("names", "ignore", "said"),
    [
        (("uid",), (), "no such normaliser: uid; did you mean uuid?"),
        (("",), (), "no such normaliser: (empty)"),
        (("number",), (), "number needs to know by how much"),
        (("number=x",), (), "number needs to know by how much"),
        (("time=3",), (), "only number takes a value"),
        ((), ("",), "would ignore everything"),
        ((), ("a..b",), "not a path"),
        ((), ("a[",), "not a path"),
        ((), ("a[x]",), "not a path"),
        ((), ("a[0]b",), "not a path"),
    ],
)
def test_rules_that_mean_nothing_are_refused(names: tuple[str, ...], ignore: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        rules_of(names, ignore)
    assert said in str(refused.value)


def test_the_stock_rules_are_the_default() -> None:
    assert rules_of() == rules_of(["stock"]) == rules_of([",".join(STOCK)])
    assert rules_of([]) == Rules()
    assert set(STOCK) == set(NORMALISERS) - {"number"}


def test_each_set_is_one_where_order_is_a_normaliser() -> None:
    for one in SETS:
        path = tuple("x" if not isinstance(step, str) else step for step in Pattern(one.place).steps)
        assert Rules(frozenset({"order"})).is_set(path)
        assert not Rules().is_set(path)


def test_which_uuid_stands_for_which_is_kept_and_told_if_it_changes() -> None:
    pairs, rules = Pairs(), rules_of()
    assert compare({"x": ONE}, {"x": OTHER}, rules, pairs) == []
    assert compare({"x": ONE}, {"x": OTHER}, rules, pairs) == []
    assert (list(pairs), pairs.live(ONE), pairs.notes) == ([(ONE, OTHER)], OTHER, [])
    assert compare({"x": ONE}, {"x": THIRD}, rules, pairs) == []
    assert compare({"y": THIRD}, {"y": OTHER}, rules, pairs) == []
    assert compare({"y": THIRD}, {"y": OTHER}, rules, pairs) == []
    assert pairs.notes == [
        f"{ONE} was {OTHER} before, and is {THIRD} at x",
        f"{OTHER} stands for {ONE}, and for {THIRD} at y",
    ]
