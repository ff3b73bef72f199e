"""Laws: whatever comes through the pipes, every form is made, every line parses, nothing is lost or told twice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.transcript.payload import FOLDED, NONE, WHOLE
from mcpsniff.transcript.safe import cells
from tests.sessions import OPENS, line
from tests.transcript.rendering import json_lines, markdown, of_type, text

IDS = st.sampled_from([0, 1, 2, "1", "a", 1.0, None, True, 2**65])
METHODS = st.sampled_from(
    ["ping", "tools/call", "道具/呼ぶ", "initialize", "notifications/progress", "notifications/cancelled"]
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["add", "\x1b[2J", "`", "検索する道具" * 9, "\U0001f469\u200d\U0001f467" * 20]),
        "progressToken": IDS,
        "requestId": IDS,
        "progress": st.floats() | st.integers(),
        "total": st.integers(),
        "_meta": st.fixed_dictionaries({"progressToken": IDS}),
    },
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": IDS,
        "method": METHODS,
        "params": PARAMS,
        "result": PARAMS | st.just({"isError": True}),
        "error": st.fixed_dictionaries({"code": st.integers(), "message": st.text()}),
    },
)
PIECES = MESSAGES.map(line) | st.lists(MESSAGES, max_size=3).map(line) | st.binary(max_size=40)
CHUNKS = st.lists(st.tuples(st.integers(0, 2), PIECES, st.integers(0, 5000)), max_size=25)
ENDS = st.lists(
    st.sampled_from(
        [
            ("close", 0, {"how": "eof"}),
            ("close", 1, {"how": "eof"}),
            ("close", 1, {"how": "exit", "status": 3}),
            ("close", 0, {"how": "aborted", "error": "the client closed its end"}),
            ("close", 1, {"how": "killed", "signal": 9, "sent": ["TERM"]}),
            ("gap", 1, {"bytes": 5, "why": "queue"}),
        ]
    ),
    max_size=3,
)


def made(chunks: list[tuple[int, bytes, int]], ends: list[tuple[str, int, dict[str, object]]]) -> list[Record]:
    out, t = list(OPENS), 0
    for channel, data, pause in chunks:
        t += pause
        if data:
            out.append(Record(t, "chunk", channel, data))
    return out + [Record(t + 1, *one) for one in ends]


@given(CHUNKS, ENDS, st.sampled_from([FOLDED, WHOLE, NONE]), st.integers(20, 120))
@settings(max_examples=60, deadline=None)
def test_every_form_is_made_of_anything(chunks: list, ends: list, style: object, width: int) -> None:
    said = made(chunks, ends)
    lines = json_lines(said, payload=True)
    shown = text(said, style=style, width=width)
    page = markdown(said, style=style)
    assert shown.count("\n  ")
    assert "## Messages" in page
    for message in of_type(lines, "message"):
        assert f"#{message['n']} " in shown.replace("\n", " ")
        assert f'<a id="n{message["n"]}"' in page


@given(CHUNKS, ENDS)
@settings(max_examples=60, deadline=None)
def test_every_request_with_a_usable_id_has_one_exchange(chunks: list, ends: list) -> None:
    lines = json_lines(made(chunks, ends))
    usable = [
        message["n"]
        for message in of_type(lines, "message")
        if message["kind"] == "request" and not isinstance(message.get("id"), bool | list | dict | None)
    ]
    assert sorted(exchange["request"] for exchange in of_type(lines, "exchange")) == usable
    states = {exchange["state"] for exchange in of_type(lines, "exchange")}
    assert states <= {"answered", "errored", "input-required", "cancelled", "abandoned", "open"}


@given(CHUNKS)
@settings(max_examples=60, deadline=None)
def test_spans_partition_each_stream(chunks: list) -> None:
    said = made(chunks, [("close", channel, {"how": "eof"}) for channel in (0, 1, 2)])  # type: ignore[list-item]
    lines = json_lines(said)
    for channel in (0, 1):
        size = sum(len(data) for number, data, _ in chunks if number == channel)
        spans = [span for frame in of_type(lines, "frame") for span in frame["spans"] if span[0] == channel]
        places = [0, *(span[2] for span in spans)]
        assert [span[1] for span in spans] == places[:-1]
        assert places[-1] == size


@given(CHUNKS, ENDS, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_chunking_changes_times_only(chunks: list, ends: list, random: object) -> None:
    said = made(chunks, ends)
    torn = []
    for record in said:
        if record.kind != "chunk":
            torn.append(record)
            continue
        cut = random.randint(0, len(record.body))  # type: ignore[attr-defined]
        pieces = [piece for piece in (record.body[:cut], record.body[cut:]) if piece]
        torn += [record._replace(body=piece) for piece in pieces]
    assert json_lines(torn, payload=True) == json_lines(said, payload=True)


@given(CHUNKS, ENDS)
@settings(max_examples=30, deadline=None)
def test_no_line_is_wider_than_the_terminal(chunks: list, ends: list) -> None:
    for width in (20, 30, 40, 66, 80):
        body = text(made(chunks, ends), width=width, style=FOLDED, label="日本語のサーバー")
        for shown in body.splitlines():
            assert cells(shown) <= width, shown
