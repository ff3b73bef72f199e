"""Requests and their answers over HTTP, wherever the answers come: the rules of protocol/http_pairing.py."""

import re

import pytest

from mcpsniff.checks import ERROR, WARNING
from tests.decoder.told import codes, exchanges, facts, https, joined, lines, messages, outcomes, played, recut
from tests.sessions import decode

ANSWERS = """
# in the body
C> POST /mcp $call(1)
S> 200 $result(1)
= t 1 answered 3→3

# on its own stream, with progress
C> POST /mcp {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
S> 200 STREAM
S> EVENT {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
S> EVENT $result(1)
S> END
= t 1 answered 3→3

# on the GET stream
C2> GET /mcp
S2> 200 STREAM
C> POST /mcp $call(1)
S> 202
S2> EVENT $result(1)
= t 1 answered 4→3

# on a resumed stream
C> POST /mcp $call(1)
S> 200 STREAM
S> EVENT id=a retry=10
S> END
+ 20ms
C2> GET /mcp
    Last-Event-ID: a
S2> 200 STREAM
S2> EVENT id=b $result(1)
S2> END
= t 1 answered 3→4

# on a stream that was resumed twice
C> POST /mcp $call(1)
S> 200 STREAM
S> EVENT id=a
S> END
C2> GET /mcp
    Last-Event-ID: a
S2> 200 STREAM
S2> EVENT id=b
S2> END
C3> GET /mcp
    Last-Event-ID: b
S3> 200 STREAM
S3> EVENT id=c $result(1)
S3> END
= t 1 answered 3→5

# on two connections, the later first
C> POST /mcp $call(1,a)
C2> POST /mcp $call(2,b)
S2> 200 $result(2)
S> 200 $result(1)
= a 1 answered 3→3
= b 2 answered 4→4

# one after another on one connection
C> POST /mcp $call(1,a)
C> POST /mcp $call(2,b)
S> 200 $result(1)
S> 200 $result(2)
= a 1 answered 3→3
= b 2 answered 4→4

# by an error without an id in the response
C> POST /mcp $call(1)
S> 400 {"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request"},"id":null}
= t 1 errored 3→3

# by an error with a made-up id in the response
C> POST /mcp $call(1)
S> 400 {"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request"}}
= t 1 errored 3→3

# the server asks on the GET stream and the client answers by POST
C2> GET /mcp
S2> 200 STREAM
S2> EVENT {"jsonrpc":"2.0","id":1,"method":"ping"}
C> POST /mcp {"jsonrpc":"2.0","id":1,"result":{}}
S> 202
= ping 1 answered 3→4

# the server asks on the stream of the call, with the same id
C> POST /mcp $call(1)
S> 200 STREAM
S> EVENT {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}
C2> POST /mcp {"jsonrpc":"2.0","id":1,"result":{"role":"assistant"}}
S2> 202
S> EVENT $result(1)
S> END
= t 1 answered 3→3
= sampling/createMessage 1 answered 3→4

# cancelled by another POST
C> POST /mcp $call(1)
S> 200 STREAM
C2> POST /mcp {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
S2> 202
S> END
= t 1 cancelled 3→

# in a compressed body, in chunks
C> POST /mcp $call(1)
    Transfer-Encoding: chunked
S> 200 $result(1)
    Content-Encoding: gzip
    Transfer-Encoding: chunked
= t 1 answered 3→3

# on a compressed stream
C> POST /mcp $call(1)
S> 200 STREAM
    Content-Encoding: gzip
S> EVENT $result(1)
S> END
= t 1 answered 3→3
"""


def cases() -> dict[str, tuple[str, list[str]]]:
    """By name: the dialogue after a handshake, and what comes of each request in it."""
    found = {}
    for block in re.split(r"^# ", ANSWERS, flags=re.MULTILINE)[1:]:
        name, *rest = block.rstrip().splitlines()
        said = "\n".join(line for line in rest if not line.startswith("= "))
        found[name] = ("@open 2025-11-25\n" + said, [line[2:] for line in rest if line.startswith("= ")])
    return found


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_an_answer_finds_its_request_wherever_it_comes(name: str) -> None:
    text, expected = CASES[name]
    assert outcomes(played(text).events)[1:] == expected


@pytest.mark.parametrize("name", CASES)
def test_nothing_depends_on_the_reads(name: str) -> None:
    """Byte by byte, in pieces, and with all that comes in a row on one channel in one read."""
    records = played(CASES[name][0]).records
    without_spans = "compressed" in name  # which coded bytes an event came of is known by the reads alone
    whole = told(records, without_spans)

    assert told(recut(records, 1), without_spans) == whole
    assert told(recut(records, 7), without_spans) == whole
    assert told(joined(records), without_spans, times=False) == told(records, without_spans, times=False)


def told(records, without_spans: bool, *, times: bool = True) -> list[bytes]:  # type: ignore[no-untyped-def]
    said = lines(records, times=times)
    return [re.sub(rb'"spans":\[[^"]*', b"", line) for line in said] if without_spans else said


@pytest.mark.parametrize("name", ["on the GET stream", "on two connections, the later first", "on a resumed stream"])
def test_pairs_are_the_same_with_one_cut_at_any_place(name: str) -> None:
    text, expected = CASES[name]
    records = played(text).records
    for place in range(6, len(records)):
        record = records[place]
        if record.kind != "chunk":
            continue
        for at in range(1, len(record.body)):
            halves = [record._replace(body=record.body[:at]), record._replace(body=record.body[at:])]
            cut = [*records[:place], *halves, *records[place + 1 :]]
            assert outcomes(decode(cut))[1:] == expected, (place, at)


# -- the same id twice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answers",
    [
        "S2> 200 $result(1)\nS> 200 $result(1)",
        "S> 200 STREAM\nS2> 200 STREAM\nS2> EVENT $result(1)\nS2> END\nS> EVENT $result(1)\nS> END",
    ],
)
def test_B86_the_same_id_in_flight_on_two_connections_pairs_by_exchange(answers: str) -> None:
    events = played(f"@open 2025-11-25\nC> POST /mcp $call(1,A)\nC2> POST /mcp $call(1,B)\n{answers}").events

    assert outcomes(events)[1:] == ["A 1 answered 3→3", "B 1 answered 4→4"]
    assert "MCP401" in codes(events), "the duplicate is flagged"
    assert not [one for one in messages(events) if "ambiguous" in facts(one)], "HTTP leaves no doubt"


def test_two_with_one_id_answered_on_the_get_stream_are_ambiguous() -> None:
    events = played(
        """
        @open 2025-11-25
        C9> GET /mcp
        S9> 200 STREAM
        C> POST /mcp $call(1,A)
        S> 202
        C2> POST /mcp $call(1,B)
        S2> 202
        S9> EVENT $result(1)
        S9> EVENT $result(1)
        """
    ).events

    assert outcomes(events)[1:] == ["A 1 answered 4→3", "B 1 answered 5→3"]
    assert sum("ambiguous" in facts(one) for one in messages(events)) == 2


# -- the same id twice, by clients of a server without sessions -------------------------------------------------------

TWO_CLIENTS = """
@open 2025-11-25 none
C> POST /mcp $call(1,A)
S> 200 STREAM
C2> POST /mcp $call(1,B)
S2> 200 STREAM
"""
CANCEL = 'POST /mcp {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (f"C3> {CANCEL}S3> 202\nS2> EVENT $result(1)\nS2> END\nS> EVENT $result(1)\nS> END", "answered answered"),
        (f"C3> {CANCEL}S3> 202\nS2> END\nS> EVENT $result(1)\nS> END", "answered cancelled"),
        (f"C3> {CANCEL}S3> 202\nC2> RESET\nS> EVENT $result(1)\nS> END", "answered cancelled"),
        (f"C2> RESET\nC3> {CANCEL}S3> 202\nS> EVENT $result(1)\nS> END", "answered abandoned"),
        (f"C3> {CANCEL}S3> 202\nS> END\nS2> EVENT $result(1)\nS2> END", "cancelled answered"),
        (f"C3> {CANCEL}S3> 202\nS2> END\nS> END", "abandoned cancelled"),
        (f"S2> EVENT $result(1)\nS2> END\nC2> {CANCEL}S2> 202\nS> EVENT $result(1)\nS> END", "answered answered"),
        (f"S2> EVENT $result(1)\nS2> END\nC3> {CANCEL}S3> 202\nS> EVENT $result(1)\nS> END", "answered answered"),
        (f"S2> EVENT $result(1)\nS2> END\nC3> {CANCEL}S3> 202\nS> END", "cancelled answered"),
        (f"C3> {CANCEL}S3> 202\nC3> {CANCEL}S3> 202\nS> END\nS2> END", "cancelled cancelled"),
    ],
)
def test_a_cancel_of_one_client_does_not_end_the_request_of_another(then: str, expected: str) -> None:
    events = played(TWO_CLIENTS + then).events

    ended = [one for one in exchanges(events) if one.method == "tools/call"]
    assert " ".join(one.state for one in sorted(ended, key=lambda one: one.request)) == expected
    by_number = {message.n: message.http for message in messages(events)}
    assert all(one.response is None or by_number[one.response].number == one.http for one in ended)  # type: ignore[union-attr]
    unanswered = codes(events, ERROR, WARNING).count("MCP525")
    assert unanswered == expected.count("abandoned") - ("RESET" in then and "abandoned" in expected)
    assert [code for code in codes(events, ERROR, WARNING) if code != "MCP525"] == []


def test_an_answer_that_crosses_the_cancel_on_its_own_stream_is_no_answer_to_another_request() -> None:
    """Both are of one client, and the first was cancelled: what its stream brings is late, the other one goes on."""
    events = played(
        f"""
        @open 2025-11-25
        C> POST /mcp $call(1,A)
        S> 200 STREAM
        C2> {CANCEL}
        S2> 202
        C2> POST /mcp $call(1,B)
        S2> 200 STREAM
        S> EVENT $result(1)
        S> END
        S2> EVENT $result(1)
        S2> END
        """
    ).events

    assert outcomes(events)[1:] == ["A 1 cancelled 3→", "B 1 answered 5→5"]
    assert [facts(one) for one in messages(events)][-2:] == [["answer-after-cancel"], []]
    assert not {"MCP404", "MCP524"} & set(codes(events))


def test_a_server_without_sessions_numbers_its_requests_for_each_client_anew() -> None:
    ping = 'EVENT {"jsonrpc":"2.0","id":0,"method":"ping"}'
    pong = 'POST /mcp {"jsonrpc":"2.0","id":0,"result":{}}'
    events = played(
        TWO_CLIENTS
        + f"S> {ping}\nS2> {ping}\nC3> {pong}\nS3> 202\nC4> {pong}\nS4> 202\n"
        + "S2> EVENT $result(1)\nS2> END\nS> EVENT $result(1)\nS> END"
    ).events

    assert outcomes(events)[1:3] == ["A 1 answered 3→3", "B 1 answered 4→4"]
    assert codes(events, ERROR, WARNING) == []


def test_a_server_that_repeats_an_id_to_one_client_is_told() -> None:
    ping = 'EVENT {"jsonrpc":"2.0","id":0,"method":"ping"}'
    events = played(TWO_CLIENTS + f"S> {ping}\nS> {ping}\nS> EVENT $result(1)\nS> END\nS2> EVENT $result(1)").events

    assert "MCP401" in codes(events, ERROR)


def test_a_request_that_http_refused_may_be_sent_again_with_its_id() -> None:
    events = played(
        """
        @open 2025-11-25
        C> POST /mcp $call(1)
        S> 401
            WWW-Authenticate: Bearer
        C> POST /mcp $call(1)
        S> 200 $result(1)
        """
    ).events

    assert outcomes(events)[1:] == ["t 1 abandoned 3→", "t 1 answered 4→4"]
    assert "MCP402" not in codes(events)


# -- redelivery --------------------------------------------------------------------------------------------------------


def test_a_redelivered_event_is_the_same_answer() -> None:
    events = played(
        """
        @open 2025-11-25
        C> POST /mcp $call(1)
        S> 200 STREAM
        S> EVENT id=a
        S> EVENT id=b $result(1)
        S> RESET
        C2> GET /mcp
            Last-Event-ID: a
        S2> 200 STREAM
        S2> EVENT id=b $result(1)
        S2> END
        """
    ).events
    first, again = messages(events)[-2:]

    assert outcomes(events)[1:] == ["t 1 answered 3→3"]
    assert facts(first) == []
    assert [(fact.name, fact.n) for fact in again.facts] == [("redelivered", first.n)]
    assert again.exchange == first.exchange == exchanges(events)[-1].request
    assert "MCP404" not in codes(events), "it is no second answer"


def test_a_redelivered_request_of_the_server_is_one_exchange() -> None:
    events = played(
        """
        @open 2025-11-25
        C2> GET /mcp
        S2> 200 STREAM
        S2> EVENT id=a
        S2> EVENT id=b {"jsonrpc":"2.0","id":"s","method":"roots/list"}
        S2> RESET
        C3> GET /mcp
            Last-Event-ID: a
        S3> 200 STREAM
        S3> EVENT id=b {"jsonrpc":"2.0","id":"s","method":"roots/list"}
        C> POST /mcp {"jsonrpc":"2.0","id":"s","result":{"roots":[]}}
        S> 202
        """
    ).events

    assert outcomes(events)[1:] == ['roots/list "s" answered 3→5']


@pytest.mark.parametrize(
    ("event", "fact"),
    [
        ("EVENT id=b $result(1)", "redelivered"),
        ("EVENT id=b $result(1.0)", "answered-twice"),
        ("EVENT id=c $result(1)", "answered-twice"),
        ("EVENT $result(1)", "answered-twice"),
    ],
)
def test_an_event_is_redelivered_if_it_has_the_same_id_and_says_the_same(event: str, fact: str) -> None:
    events = played(
        f"""
        @open 2025-11-25
        C> POST /mcp $call(1)
        S> 200 STREAM
        S> EVENT id=a
        S> EVENT id=b $result(1)
        S> RESET
        C2> GET /mcp
            Last-Event-ID: a
        S2> 200 STREAM
        S2> {event}
        """
    ).events

    assert fact in facts(messages(events)[-1])


def test_a_repeated_event_on_the_same_response_is_a_second_answer() -> None:
    events = played(
        """
        @open 2025-11-25
        C> POST /mcp $call(1)
        S> 200 STREAM
        S> EVENT id=a $result(1)
        S> EVENT id=a $result(1)
        """
    ).events

    assert "answered-twice" in facts(messages(events)[-1])
    assert "event-id-repeated" in [fact.name for event in https(events, last=False) for fact in event.exchange.facts]


# -- requests that nothing answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "state"),
    [
        ("S> 404", "abandoned"),
        ("S> 405 Method Not Allowed", "abandoned"),
        ('S> 401 {"error":"invalid_token"}', "abandoned"),
        ("S> 200 <html>", "abandoned"),
        ("S> 200 STREAM\nS> END", "abandoned"),
        ("S> 200 STREAM\nS> EVENT $note(x)\nS> EOF", "abandoned"),
        ("S> RESET", "abandoned"),
        ("C> EOF", "abandoned"),
        ("S> 200 STREAM\nC> EOF", "abandoned"),
        ("M> 502 nobody there", "abandoned"),
        ("S> 202", "open"),
        ("S> 200 STREAM\nS> EVENT id=a\nS> END", "open"),
        ("S> 200 STREAM\nS> EVENT id=a\nC> EOF", "open"),
        ("S> 200 STREAM\nS> EVENT id=a\nS> END\nC3> DELETE /mcp\nS3> 200", "abandoned"),
        ("S> 202\nC3> DELETE /mcp\nS3> 200", "abandoned"),
        ("S> 202\nC3> DELETE /mcp\nS3> 405", "open"),
        ("S> 202\nC3> POST /mcp $note(x)\nS3> 404", "abandoned"),
        ("S> 200 STREAM", "open"),
        ("S> 200 STREAM\nC3> DELETE /mcp\nS3> 200", "open"),
        ("S> 200 STREAM\nC3> DELETE /mcp\nS3> 200\nS> END", "abandoned"),
        ("S> 200 STREAM\nC3> DELETE /mcp\nS3> 200\nS> EVENT $result(1)", "answered"),
        ("", "open"),
    ],
)
def test_a_legacy_request_is_given_up_when_nothing_can_answer_it(response: str, state: str) -> None:
    events = played(f"@open 2025-11-25\nC> POST /mcp $call(1)\n{response}").events
    (exchange,) = [one for one in exchanges(events) if one.key == 1]
    (http,) = {event.exchange.number: event.exchange for event in https(events) if event.exchange.number == 3}.values()

    assert exchange.state == state
    assert exchange.status == http.status


@pytest.mark.parametrize(
    ("response", "state"),
    [
        ("C> EOF", "cancelled"),
        ("S> 200 STREAM\nC> EOF", "cancelled"),
        ("S> 200 STREAM\nS> EVENT id=a\nC> RESET", "cancelled"),
        ("S> RESET", "abandoned"),
        ("S> 200 STREAM\nS> EOF", "abandoned"),
        ("S> 200 STREAM\nS> EVENT id=a\nS> END", "abandoned"),
        ("S> 202", "abandoned"),
        ("S> 200 STREAM", "open"),
    ],
)
def test_in_2026_07_28_the_hang_up_of_the_client_cancels(response: str, state: str) -> None:
    events = played(f"@modern\nC> POST /mcp $modern(1)\n{response}").events
    (exchange,) = [one for one in exchanges(events) if one.key == 1]

    assert exchange.state == state
    assert exchange.cancel is None, "no message says so"


def test_in_2026_07_28_each_request_pairs_by_itself() -> None:
    events = played(
        """
        @modern
        C> POST /mcp $modern(1,A)
        C2> POST /mcp $modern(1,B)
        S2> 200 $complete(1)
        S> 200 $complete(1)
        C> POST /mcp $modern(1,C)
        S> 200 $complete(1)
        """
    ).events

    assert outcomes(events)[1:] == ["A 1 answered 2→2", "B 1 answered 3→3", "C 1 answered 4→4"]
    assert codes(events, ERROR, WARNING) == [], "two clients may count alike, and ids may come again"
    assert {message.conversation for message in messages(events)} == {1}
    assert {message.revision for message in messages(events)} == {"2026-07-28"}


# -- other transports and forms ----------------------------------------------------------------------------------------


def test_a_batch_pairs_over_one_response() -> None:
    events = played(
        """
        @open 2025-03-26
        C> POST /mcp [$call(1,a),$call(2,b)]
        S> 200 STREAM
        S> EVENT $result(2)
        S> EVENT $result(1)
        S> END
        """
    ).events

    assert outcomes(events)[1:] == ["a 1 answered 3→3", "b 2 answered 3→3"]


def test_legacy_answers_come_on_the_stream_and_end_with_it() -> None:
    events = played(
        """
        @sse
        C> POST /messages?sessionId=1 $call(1)
        S> 202 Accepted
        S9> EVENT $result(1)
        C> POST /messages?sessionId=1 $call(2)
        S> 202 Accepted
        S9> EOF
        """
    ).events

    assert outcomes(events) == ["initialize 0 answered 2→1", "t 1 answered 4→1", "t 2 abandoned 5→"]
    assert {message.conversation for message in messages(events)} == {1}
    assert not [fact for message in messages(events) for fact in facts(message)]


def test_modern_requests_over_http_and_sse_are_answered_on_its_stream() -> None:
    """The Python SDK 2.x speaks 2026-07-28 over the old transport too, without the headers of the new one."""
    events = played(
        """
        C> GET /sse
        S> 200 STREAM
        S> EVENT event=endpoint /messages?sessionId=1
        C2> POST /messages?sessionId=1 $modern(1)
            -Mcp-Method
            -Mcp-Name
        S2> 202 Accepted
        S> EVENT $complete(1)
        """
    ).events

    assert outcomes(events) == ["t 1 answered 2→1"]
    assert codes(events, ERROR, WARNING) == []


def test_an_initialize_that_looks_for_the_transport_is_no_fault() -> None:
    """POST, 405, GET, endpoint: the way of every client to a server of 2024-11-05."""
    events = played("C> POST /sse $initialize\nS> 405 Method Not Allowed\n@sse").events

    assert outcomes(events) == ["initialize 0 abandoned 1→", "initialize 0 answered 3→2"]
    assert {message.conversation for message in messages(events)} == {1}
    assert codes(events, ERROR, WARNING) == []


@pytest.mark.parametrize(
    "response",
    [
        "404 Not Found",
        "404",
        '404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"no"},"id":null}',
        '400 {"jsonrpc":"2.0","error":{"code":-32602,"message":"no"},"id":1}',
        "200 $result(1)",
        '200 {"no":"message"}',
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_response_that_comes_before_its_request_is_whole_says_the_same(response: str, *, chunked: bool) -> None:
    """A server may refuse a request by its head, while the client is still sending."""
    extra = "    Transfer-Encoding: chunked\n" * chunked
    usual = played(f"@open 2025-11-25\nC> POST /mcp $call(1)\n{extra}S> {response}\nC> EOF").records
    at = max(index for index, one in enumerate(usual) if one.kind == "chunk" and one.channel == 0)
    asked, answered = usual[at : at + 2]
    body = asked.body.index(b"\r\n\r\n") + 4

    for cut in range(body, len(asked.body), 5):
        pieces = [asked._replace(body=asked.body[:cut]), answered, asked._replace(body=asked.body[cut:])]
        early = [*usual[:at], *(one._replace(t=asked.t + i) for i, one in enumerate(pieces)), *usual[at + 2 :]]

        assert lines(early, times=False) == lines(usual, times=False)


def test_a_refused_request_that_is_never_whole_is_told_with_the_end() -> None:
    head = "POST /mcp HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\nContent-Length: 99\\r\\n\\r\\n"
    events = played(f'@open 2025-11-25\nC| b\'{head}{{"jsonrpc":"2.0"\'\nS> 413 Too Large\nS> EOF').events

    assert [(one.state, one.exchange.status, one.exchange.is_over) for one in https(events)][2:] == [
        ("complete", 413, True)
    ]
