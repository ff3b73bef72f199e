"""Which recorded scene answers a live message."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.errors import UsageError
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.paths import Places
from mcpsniff.replay.ignoring import ignore_path, unmatched
from mcpsniff.replay.match import METHOD, SEQUENCE, Matcher, Miss, Rules, Walk, canonical, request_keys
from mcpsniff.replay.script import Scene, Script
from tests.replay.staging import answer, call, message_of, note, request, script_of

OPEN = "@open 2025-11-25\n"


def script(*asked: Any, opening: str = OPEN) -> Script:
    """A script in which each of these is asked, and requests are answered by their place in the order."""
    lines = [opening]
    for place, one in enumerate(asked):
        lines.append(f"C> {one if isinstance(one, str) else json.dumps(one)}\n")
        if isinstance(one, dict) and "id" in one:
            lines.append(f"S> {json.dumps(answer(one['id'], place=place))}\n")
    return script_of("".join(lines))


def place(found: Scene | Miss | None) -> int | None:
    """The place, in the order of the script, of what was found; None for a miss."""
    if not isinstance(found, Scene) or found.answer is None:
        return None
    value: int = found.answer.result["place"]
    return value


def places(recorded: Script, *said: Any, rules: Rules | None = None) -> list[int | None]:
    walk = Matcher(recorded.talks, rules or Rules()).begin()
    return [place(walk.find(message_of(one))) for one in said]


RECORDED = json.dumps(request(1, "tools/call", name="t", arguments={"a": 1, "b": 2}, _meta={"progressToken": 5}))


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ('{"_meta":{"progressToken":"p1"},"arguments":{"b":2,"a":1},"name":"t"}', True),
        ('{"name":"t","arguments":{"a":1,"b":2}}', True),
        ('{"name":"t","arguments":{"a":1,"b":2},"_meta":{"traceparent":"00-1"}}', True),
        ('{"name":"t","arguments":{"a":1.0,"b":2}}', False),
        ('{"name":"t","arguments":{"a":"1","b":2}}', False),
        ('{"name":"t","arguments":{"a":true,"b":2}}', False),
        ('{"name":"t","arguments":{"a":1,"b":3}}', False),
        ('{"name":"t","arguments":{"a":1,"b":2,"c":null}}', False),
        ('{"name":"t","arguments":{"a":1}}', False),
        ('{"name":"T","arguments":{"a":1,"b":2}}', False),
        ('[{"name":"t","arguments":{"a":1,"b":2}}]', False),
    ],
)
def test_method_and_params_count_without_what_differs_from_run_to_run(said: str, same: bool) -> None:
    """B121."""
    recorded = script_of(f"{OPEN}C> {RECORDED}\nS> {json.dumps(answer(1, place=0))}\n")
    asked = '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":' + said + "}"
    assert places(recorded, asked) == [0 if same else None]


def test_initialize_is_the_same_whoever_asks_for_whatever_revision() -> None:
    """B121."""
    asked = request(9, "initialize", protocolVersion="1999-01-01", clientInfo={"name": "other"})
    found = Matcher(script().talks).begin().find(message_of(asked))
    assert isinstance(found, Scene)
    assert found.method == "initialize"


@pytest.mark.parametrize("said", ["", ',"params":{}', ',"params":null', ',"params":{"_meta":{}}'])
@pytest.mark.parametrize("recorded", ["", ',"params":{}', ',"params":{"_meta":{"progressToken":1}}'])
def test_no_params_are_empty_params(said: str, recorded: str) -> None:
    whole = '{"jsonrpc":"2.0","id":1,"method":"tools/list"%s}'
    of = script_of(f"{OPEN}C> {whole % recorded}\nS> {json.dumps(answer(1, place=0))}\n")
    assert places(of, whole % said) == [0]


def test_a_request_is_no_notification() -> None:
    recorded = script(note("x"), request(1, "notifications/x"))
    assert places(recorded, request(7, "notifications/x")) == [1]
    walk = Matcher(recorded.talks).begin()
    found = walk.find(message_of(note("x")))
    assert isinstance(found, Scene)
    assert found.cue is not None
    assert found.cue.kind == "notification"
    assert walk.find(message_of(note("y"))) is None


def test_pages_are_found_by_their_cursor_and_then_by_their_place() -> None:
    pages = script(*(request(n, "tools/list", **({"cursor": f"c{n}"} if n else {})) for n in range(4)))

    def page(cursor: str) -> dict[str, Any]:
        return request(9, "tools/list", cursor=cursor)

    assert places(pages, request(9, "tools/list"), page("c1"), page("c3")) == [0, 1, 3]
    assert places(pages, page("x"), page("y"), page("z"), page("z")) == [1, 2, 3, 3]
    assert places(pages, page("c1"), page("x"), page("x")) == [1, 2, 3], "what was given by its cursor was given"


def test_a_retry_with_input_is_found_by_its_state_if_the_input_differs() -> None:
    def retry(state: str, said: Any) -> dict[str, Any]:
        return request(2, "tools/call", name="t", requestState=state, inputResponses={"a": said})

    recorded = script(call(1), retry("s2", 2), retry("s3", 3))
    assert places(recorded, retry("s2", 2), retry("s3", "other"), retry("s9", 2)) == [1, 2, None]


def test_equal_requests_are_given_in_order_and_then_the_last_again() -> None:
    """B118; each client for itself."""
    recorded = script(call(1), call(2, "other"), call(3), call(4))
    matcher = Matcher(recorded.talks)
    for _ in range(2):
        walk = matcher.begin()
        assert [place(walk.find(message_of(call(9)))) for _ in range(5)] == [0, 2, 3, 3, 3]
    assert [scene.cue.id for scene in matcher.never_asked() if scene.cue is not None] == ["0", "2"]


def test_ways_of_matching() -> None:
    recorded = script(call(1, "a", x=1), call(2, "b", x=1), call(3, "a", x=2))
    said = [call(9, "b", x=7), call(9, "a", x=2), call(9, "c"), call(9, "a")]
    assert places(recorded, *said) == [None, 2, None, None]
    assert places(recorded, *said, rules=Rules(METHOD)) == [1, 0, 2, 2]
    assert places(recorded, *said, rules=Rules(SEQUENCE)) == [0, 1, 2, 2]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("arguments.when", {"when": 2, "deep": {"list": [{"id": 1, "k": 1}]}}),
        ("params.arguments.when", {"deep": {"list": [{"id": 1, "k": 1}]}}),
        ("$.arguments.deep.list[*].id", {"when": 1, "deep": {"list": [{"id": 5, "k": 1}]}}),
        ("arguments.deep.list[0].id", {"when": 1, "deep": {"list": [{"k": 1}]}}),
        ("arguments.*.list", {"when": 1, "deep": {}}),
        ("arguments.deep.list[*]", {"when": 1, "deep": {"list": [1, 2, 3]}}),
        ("arguments", {}),
        ('arguments["when"]', {"when": 2, "deep": {"list": [{"id": 1, "k": 1}]}}),
        ("**.when", {"when": 2, "deep": {"list": [{"id": 1, "k": 1}]}}),
        ("arguments.**.id", {"when": 1, "deep": {"list": [{"id": 2, "k": 1}]}}),
        ("**.list[*]", {"when": 1, "deep": {"list": []}}),
    ],
)
def test_values_that_are_ignored(path: str, said: dict[str, Any]) -> None:
    recorded = script(call(1, when=1, deep={"list": [{"id": 1, "k": 1}]}))
    assert places(recorded, call(9, **said)) == [None]
    assert places(recorded, call(9, **said), rules=Rules(ignore=Places([ignore_path(path)]))) == [0]


@pytest.mark.parametrize("text", ["", "params", "result", "**", "a..b", ".", "a.", "$.", "[0].a", "a b["])
def test_a_path_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="--ignore wants a path"):
        ignore_path(text)


def test_a_path_that_names_nothing_is_told_with_what_may_be_meant() -> None:
    recorded = script(call(1, when=1, deep={"list": [{"id": 1}]}), call(2, deep={"list": [{"id": 2}]}))
    patterns = [ignore_path(text) for text in ("when", "arguments.deep.list[*].id", "id", "nowhere", "**.id")]
    told = {pattern.text: meant for pattern, meant in unmatched(patterns, recorded.talks)}
    assert told == {
        "params.when": ["params.arguments.when"],
        "params.id": ["params.arguments.deep.list[0].id"],
        "params.nowhere": [],
    }


def test_the_nearest_request_is_of_the_same_method_and_best_about_the_same() -> None:
    recorded = script(
        call(1, "a", x=1, y=2, z=3), call(2, "b", x=1, y=2), call(3, "b", x=9, y=9), request(4, "tools/list")
    )
    matcher = Matcher(recorded.talks)

    def nearest(said: Any) -> int | None:
        miss = matcher.begin().find(message_of(said))
        assert isinstance(miss, Miss)
        return place(miss.nearest)

    assert nearest(call(9, "b", x=1, y=2, z=3)) == 1
    assert nearest(call(9, "b", x=9)) == 2
    assert nearest(call(9, "c", x=1, y=2, z=3)) == 0
    assert nearest(request(9, "x/y")) is None
    assert matcher.missed == len(matcher.misses) == 4


def test_of_many_misses_the_first_are_kept() -> None:
    matcher = Matcher(script(call(1)).talks)
    walk = matcher.begin()
    for number in range(1_500):
        walk.find(message_of(call(number, "x")))
    assert (matcher.missed, len(matcher.misses)) == (1_500, 1_000)
    matcher = Matcher(script(call(1)).talks)
    for _ in range(4):
        matcher.begin().find(message_of(call(1, "x" * 20_000_000)))
    assert (matcher.missed, len(matcher.misses)) == (4, 3)


SEVERAL = (
    "@http\n"
    + "".join(
        f"@session\n@version\n@open 2025-11-25 session-{n}\n"
        f"C> POST /mcp {json.dumps(call(n, 'who'))}\n"
        f"S> 200 {json.dumps(answer(n, place=n))}\n"
        for n in (1, 2)
    )
    + f"C> POST /mcp {json.dumps(call(7, 'late'))}\n"
    + f"S> 200 {json.dumps(answer(7, place=7))}\n"
)


def test_each_client_goes_through_one_recorded_session_and_falls_back_to_the_others() -> None:
    recorded = script_of(SEVERAL)
    assert len(recorded.talks) == 2
    matcher = Matcher(recorded.talks)
    opening = message_of(request(0, "initialize"))

    def client() -> Walk:
        walk = matcher.begin()
        walk.find(opening)
        return walk

    walks = [client() for _ in range(3)]
    assert [place(walk.find(message_of(call(9, "who")))) for walk in walks] == [1, 2, 2]
    assert place(walks[0].find(message_of(call(9, "late")))) == 7, "of another session, if its own has none"
    again = client()
    again.find(opening)
    assert again.talk is recorded.talks[1]


def test_each_client_gets_an_opening_of_its_own_also_where_one_was_given_up() -> None:
    """A client hung up before it knew its session; the next one's is the same conversation in the capture."""
    first = request(90, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "c"})
    recorded = script(first | {"id": 91}, call(1), opening=f"C> {json.dumps(first)}\n")
    openings = [scene for scene in recorded.talks[0].scenes if scene.method == "initialize"]
    assert [scene.answer is None for scene in openings] == [True, False]
    matcher = Matcher(recorded.talks, Rules(SEQUENCE))
    assert [matcher.begin().find(message_of(first)) for _ in range(3)] == [*openings, openings[-1]]


def test_a_wish_narrows_the_choice_but_does_not_make_a_miss() -> None:
    recorded = script(call(1), call(2), call(3))
    walk = Matcher(recorded.talks).begin()

    def find(wished: int) -> int | None:
        return place(walk.find(message_of(call(9)), lambda scene: scene.cue is not None and scene.cue.key == wished))

    assert [find(2), find(2), find(5), find(3), find(5)] == [1, 1, 0, 2, 2]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def _shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shuffled(inner) for name, inner in reversed(value.items())}
    return [_shuffled(inner) for inner in value] if isinstance(value, list) else value


@given(VALUES, VALUES)
def test_equal_values_and_no_others_are_spelt_alike(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(_shuffled(one))
    if repr(_sorted(one)) != repr(_sorted(other)):
        assert canonical(one) != canonical(other)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.integers(0, 3))
def test_any_params_are_found_again(params: dict[str, Any], more: int) -> None:
    said: Message = message_of(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params}))
    keys = request_keys("x", said.body.get("params"))
    assert keys[0] in request_keys("x", _shuffled(params))
    if "_meta" not in params:
        assert request_keys("x", {**params, "_meta": more}) == keys
