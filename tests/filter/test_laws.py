"""Laws of selection, over random sessions and random expressions."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.message import BATCH, INVALID, Message
from mcpsniff.transcript.filter import Filter, LiveSelector, compile_filter
from tests.filter.selecting import decoded, live, messages, offline, same, select
from tests.filter.sessions import EXPRESSIONS, PLAIN, SESSIONS
from tests.sessions import OPENS

MANY = settings(max_examples=300, deadline=None)
SOME = settings(max_examples=120, deadline=None)


@given(SESSIONS, EXPRESSIONS, st.booleans())
@MANY
def test_live_gives_what_a_saved_capture_gives(records: list[Record], expression: str, alone: bool) -> None:
    lists = decoded(records)
    chosen = compile_filter(expression, alone=alone)
    assert same(live(lists, chosen)) == same(offline(lists, chosen))


@given(SESSIONS, EXPRESSIONS, st.booleans(), st.randoms(use_true_random=False))
@SOME
def test_it_does_not_matter_how_the_events_are_cut_into_lists(
    records: list[Record], expression: str, alone: bool, random: Any
) -> None:
    lists = decoded(records)
    joined: list[list[Event]] = [[]]
    for events in lists:
        if random.random() < 0.3:
            joined.append([])
        joined[-1] += events
    chosen = compile_filter(expression, alone=alone)
    assert same(live(joined, chosen)) == same(live(lists, chosen))


@given(SESSIONS, EXPRESSIONS)
@MANY
def test_an_exchange_is_shown_as_the_definition_has_it(records: list[Record], expression: str) -> None:
    """A term is true of an exchange if it is true of any of its parts; the exchange is shown whole or not at all."""
    lists = decoded(records)
    chosen = compile_filter(expression)
    shown = {id(event) for event in offline(lists, chosen)}
    for parts in whole_units(lists):
        mask = union(parts, chosen)
        assert {id(part) in shown for part in parts if not is_batch(part)} == {chosen.verdict(mask)}


def union(parts: Sequence[Event], chosen: Filter) -> int:
    mask = 0
    for part in parts:
        of_part = chosen.mask(part)
        mask |= of_part & chosen.inherited if is_batch(part) else of_part
    return mask


def is_batch(event: Event) -> bool:
    return isinstance(event, Message) and event.kind == BATCH and bool(event.body)


def whole_units(lists: list[list[Event]]) -> list[list[Event]]:
    """The exchanges with all that belongs to them, without those that something follows after their end."""
    events = [event for events in lists for event in events]
    ends = {event.request: place for place, event in enumerate(events) if isinstance(event, Exchange)}
    batches = {event.n: event for event in events if is_batch(event)}
    units: dict[int, list[Event]] = defaultdict(list)
    owner: dict[int, int] = {}
    spoilt = set()
    for place, event in enumerate(events):
        if isinstance(event, Finding):
            continue
        request = event.request if isinstance(event, Exchange) else getattr(event, "exchange", None)
        if request is None:
            continue
        units[request].append(event)
        owner[event.n] = request
        if isinstance(event, Message):
            if event.batch is not None:
                units[request].append(batches[event.batch])
                owner[-event.batch] = request
            else:
                owner[event.frame.n] = request
                units[request].append(event.frame)
            if place > ends[request] or event.kind == INVALID:
                spoilt.add(request)
    found = defaultdict(list)
    for event in events:
        if isinstance(event, Finding):
            found[event.at].append(event)
    for parts in units.values():
        numbers = {part.n for part in parts if not isinstance(part, Finding) and not is_batch(part)}
        parts += [finding for number in numbers for finding in found[number]]
    return [
        parts
        for request, parts in units.items()
        if request not in spoilt
        and not any(
            isinstance(part, Message) and is_batch(part) and found[part.n] + found[part.frame.n] for part in parts
        )
    ]


@given(SESSIONS, PLAIN, PLAIN)
@SOME
def test_alone_the_operators_are_those_of_sets(records: list[Record], one: str, other: str) -> None:
    def shown(expression: str) -> set[int]:
        return set(messages(select(records, expression, alone=True)))

    everything = set(messages([event for events in decoded(records) for event in events]))
    assert shown(f"not ({one})") == everything - shown(one)
    assert shown(f"({one}) ({other})") == shown(one) & shown(other)
    assert shown(f"({one}) or ({other})") == shown(one) | shown(other)


@given(SESSIONS, EXPRESSIONS)
@SOME
def test_a_finding_or_an_element_never_comes_without_what_it_needs(records: list[Record], expression: str) -> None:
    shown = select(records, expression)
    numbers = {event.n for event in shown if not isinstance(event, Finding)}
    for event in shown:
        if isinstance(event, Message):
            assert event.frame.n in numbers
            assert event.batch is None or event.batch in numbers


def test_an_exchange_that_matches_is_shown_while_it_is_open() -> None:
    from tests.filter.sample import SAMPLE

    def moments(expression: str) -> list[tuple[int, list[int]]]:
        selector = LiveSelector(compile_filter(expression))
        given = [
            (record.t // 1000, selector.feed(events)) for record, events in zip(SAMPLE, decoded(SAMPLE), strict=False)
        ]
        return [(t, messages(events)) for t, events in given if messages(events)]

    sleep = [(3000, [24]), (3500, [26]), (4000, [28]), (6200, [30]), (7000, [33]), (8500, [35]), (8900, [38])]
    assert moments("tool:sleep") == sleep
    assert (3000, [24]) in moments("not tool:echo"), "what cannot become true any more is not waited for"
    assert (3000, [24]) in moments("not method:ping")
    assert (6200, [24, 26, 28, 30]) in moments("tool:sleep not kind:error"), "an error may still come"
    assert moments("method:notifications/progress") == [(3500, [24, 26]), (4000, [28]), (6200, [30])]
    assert moments("code:MCP430") == [(8900, [33, 35, 38])]


def test_what_follows_makes_its_exchange_shown_as_long_as_that_is_at_hand() -> None:
    def session(between: int, size: int = 0) -> list[Record]:
        def call(number: int) -> str:
            return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"a{"x" * size}"}}}}\n'

        said = [
            (0, call(0)),
            (0, '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}\n'),
        ]
        for number in range(1, between):
            said += [(0, call(number)), (1, f'{{"jsonrpc":"2.0","id":{number},"result":{{}}}}\n')]
        said.append((1, '{"jsonrpc":"2.0","id":0,"result":{}}\n'))
        return [*OPENS, *(Record(place, "chunk", who, what.encode()) for place, (who, what) in enumerate(said))]

    assert len(messages(select(session(100), "code:MCP430"))) == 3
    assert len(messages(select(session(101), "code:MCP430"))) == 1
    assert len(messages(select(session(1, 65_600), "code:MCP430"))) == 1


def test_memory_of_a_first_pass_is_less_than_a_byte_per_event() -> None:
    import tracemalloc

    from mcpsniff.decoder import Decoder
    from mcpsniff.transcript.filter import Selection
    from mcpsniff.transcript.filter.groups import ENDED

    measured = []

    def lists() -> Any:
        decoder = Decoder()
        for record in OPENS:
            yield decoder.feed(record)
        for number in range(2 * ENDED):
            if number in (ENDED + 2000, 2 * ENDED - 1):
                measured.append(tracemalloc.get_traced_memory()[0])
            for channel, rest in ((0, '"method":"ping"'), (1, '"result":{}')):
                line = f'{{"jsonrpc":"2.0","id":{number},{rest}}}\n'.encode()
                yield decoder.feed(Record(number, "chunk", channel, line))
        yield decoder.finish()

    selection = Selection(compile_filter("not state:open"))
    tracemalloc.start()
    selection.learn(lists())
    tracemalloc.stop()
    assert selection.shown == selection.messages == 4 * ENDED
    assert measured[1] - measured[0] < 5 * ENDED


def said(*lines: tuple[int, bytes]) -> list[Record]:
    return [*OPENS, *(Record(place, "chunk", channel, data) for place, (channel, data) in enumerate(lines))]


def test_a_finding_on_a_frame_counts_for_its_message() -> None:
    records = said((0, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n'), (1, b'{"jsonrpc":"2.0","id":1,"result":{}}\n'))
    assert messages(select(records, "code:MCP107")) == [2, 4]
    assert messages(select(records, "code:MCP107", alone=True)) == [2]
    assert messages(select(records, "not code:MCP107", alone=True)) == [4]


def test_a_line_that_may_be_a_piece_of_a_message_waits_for_its_finding() -> None:
    records = said(
        (1, b'{"a\n'),
        (0, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'),
        (1, b'{"jsonrpc":"2.0","id":1,"result":{}}\n'),
    )
    lists = decoded(records)
    finding = next(event for event in lists[5] if isinstance(event, Finding))
    assert (finding.code, finding.at) == ("MCP101", 2), "the finding comes two records later"
    selector = LiveSelector(compile_filter("code:MCP101"))
    assert [messages(selector.feed(events)) for events in lists] == [[], [], [], [], [], [2], []]
    assert finding in select(records, "code:MCP101")
    assert messages(select(records, "not code:MCP101")) == [4, 6]
    assert messages(select(records[:4], "kind:invalid not code:MCP101")) == []


def test_a_server_that_outlives_its_input_is_found_with_the_end_of_that_input() -> None:
    records = [*OPENS, Record(0, "close", 0, {"how": "eof"}), Record(9_000_000, "chunk", 2, b"late\n")]
    shown = select(records, "code:*")
    assert [type(event).__name__ for event in shown] == ["Close", "Finding"]


def test_a_request_that_waits_too_long_is_shown_with_that_finding_also_alone() -> None:
    records = said((0, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'))
    records.append(Record(100_000_000, "chunk", 2, b"later\n"))
    assert messages(select(records, "code:request-slow", alone=True)) == [2]
    assert messages(select(records, "not code:request-slow", alone=True)) == []
