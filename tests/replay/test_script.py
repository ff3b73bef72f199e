"""A capture as a script: what belongs to which message of the client, and what is lacking."""

import json

import pytest

from mcpsniff.replay.script import Line, Scene, Script, Talk
from tests.replay.staging import answer, call, note, request, script_of

OPEN = "@open 2025-11-25\n"


def words(line: Line) -> str:
    """A line in a few words."""
    message = line.message
    if message is not None:
        arrow = ">" if line.is_of_client else "<"
        return f"{arrow} {message.method or message.kind} {message.id or ''}".strip()
    if line.text is not None:
        return f"stderr {line.text}"
    if line.end is not None:
        return f"end {line.end.number}"
    if line.close is not None:
        return f"close {line.close.how}"
    return "frame"


def scenes(script: Script | str, talk: int = 0) -> dict[str, list[str]]:
    """The scenes of a talk by their cues, the handshake left out."""
    script = script_of(script) if isinstance(script, str) else script
    found: dict[str, list[str]] = {}
    for scene in script.talks[talk].scenes:
        if scene.method not in ("initialize", "notifications/initialized", "server/discover"):
            cue = "" if scene.cue is None else f"{scene.method or scene.cue.kind} {scene.cue.id or ''}".strip()
            found[cue] = [words(line) for line in scene.lines]
    return found


def said(side: str, *messages: object) -> str:
    return "".join(f"{side}> {json.dumps(message)}\n" for message in messages)


def log(data: str = "x") -> dict[str, object]:
    return note("message", level="info", data=data)


def test_answers_and_progress_belong_to_their_request_and_the_rest_to_the_latest_message() -> None:
    asked = request(1, "tools/call", name="a", _meta={"progressToken": "p"})
    script = (
        OPEN
        + said("C", asked)
        + said("S", log())
        + said("C", call(2, "b"))
        + said("S", note("progress", progressToken="p", progress=1), log(), answer(1), note("tools/list_changed"))
        + said("S", answer(2))
        + "E> said on stderr\n"
    )
    assert scenes(script) == {
        "tools/call 1": ["< notifications/message", "< notifications/progress", "< response 1"],
        "tools/call 2": [
            "< notifications/message",
            "< notifications/tools/list_changed",
            "< response 2",
            "stderr said on stderr",
        ],
    }


def test_what_the_client_says_in_a_scene_is_part_of_it() -> None:
    script = (
        OPEN
        + said("C", call(1))
        + said("S", request(0, "sampling/createMessage"), request(1, "roots/list"))
        + said("C", answer(1), call(2))
        + said("C", answer(0))
        + said("S", note("cancelled", requestId=0))
        + said("C", note("cancelled", requestId=1))
        + said("S", answer(1), answer(2))
    )
    assert scenes(script) == {
        "tools/call 1": [
            "< sampling/createMessage 0",
            "< roots/list 1",
            "> response 1",
            "> response 0",
            "< notifications/cancelled",
            "> notifications/cancelled",
            "< response 1",
        ],
        "tools/call 2": ["< response 2"],
    }


def test_a_question_about_roots_belongs_to_what_makes_a_server_ask_it() -> None:
    script = (
        OPEN
        + said("C", call(1))
        + said("C", note("roots/list_changed"))
        + said("S", request(0, "roots/list"))
        + said("C", answer(0, roots=[]))
        + said("S", answer(1))
    )
    assert scenes(script) == {
        "tools/call 1": ["< response 1"],
        "notifications/roots/list_changed": ["< roots/list 0", "> response 0"],
    }


def test_wrong_answers_belong_to_what_they_are_likely_meant_for() -> None:
    script = (
        OPEN
        + said("C", call(1))
        + said("C", call(2))
        + said("S", answer("1"), answer(2), answer(2))
        + said("C", call(3))
        + 'S> {"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":""}}\n'
        + "S> noise\n"
        + said("S", answer(77))
    )
    assert scenes(script) == {
        "tools/call 1": ['< response "1"'],
        "tools/call 2": ["< response 2", "< response 2"],
        "tools/call 3": ["< error null", "< invalid", "< response 77"],
    }


def test_before_and_after_the_client() -> None:
    script = script_of(
        "S> hello\n"
        + OPEN
        + said("C", call(1))
        + "C> EOF\n"
        + said("S", log())
        + said("S", answer(1))
        + "S> bye\nS> EXIT 1\n"
    )
    assert scenes(script) == {"": ["< invalid"], "tools/call 1": ["< response 1"]}
    (talk,) = script.talks
    assert talk.farewell is not None
    assert [words(line) for line in talk.farewell.lines] == ["< notifications/message", "< invalid"]


def test_blank_lines_are_kept_on_pipes() -> None:
    assert scenes(OPEN + said("C", call(1)) + "S| b'\\n'\n" + said("S", answer(1))) == {
        "tools/call 1": ["frame", "< response 1"]
    }


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("S> EXIT 3\n", ["close exit"]),
        ("S> KILLED 11\n", ["close killed"]),
        ("C> EOF\nS> EXIT 3\n", []),
        ("S> KILLED 15 sent TERM\n", []),
        ("C> HANGS UP\n", []),
    ],
)
def test_the_end_of_the_process_is_a_line_if_it_was_its_own_doing(end: str, told: list[str]) -> None:
    assert scenes(OPEN + said("C", call(1)) + end) == {"tools/call 1": told}


def test_gaps_are_from_line_to_line() -> None:
    script = script_of(OPEN + said("C", call(1)) + "+ 2s\n" + said("S", log()) + "+ 500ms\n" + said("S", answer(1)))
    scene = script.talks[0].scenes[-1]
    assert [line.gap_us for line in scene.lines] == [2_001_000, 501_000]


def of(script: str) -> Scene:
    """The scene of the first tool call."""
    return next(scene for scene in script_of(script).talks[0].scenes if scene.method == "tools/call")


def test_what_became_of_a_request() -> None:
    answered = of(OPEN + said("C", call(1)) + said("S", answer(1)))
    assert answered.answer is not None
    assert (answered.is_cut, answered.is_silent, answered.is_refused) == (False, False, False)

    cut = of(OPEN + said("C", call(1)))
    assert (cut.answer, cut.is_cut, cut.is_silent) == (None, True, False)

    lost = of(OPEN + said("C", call(1)) + "G> S 10 queue\nC> EOF\nS> EXIT 0\n")
    assert (lost.is_cut, lost.is_silent) == (True, False)

    silent = of(OPEN + said("C", call(1)) + "C> EOF\nS> EXIT 0\n")
    assert (silent.is_cut, silent.is_silent) == (False, True)

    cancelled = of(OPEN + said("C", call(1), note("cancelled", requestId=1)) + "C> EOF\nS> EXIT 0\n")
    assert (cancelled.is_cut, cancelled.is_silent) == (False, False)

    late = of(OPEN + said("C", call(1), note("cancelled", requestId=1)) + said("S", answer(1)))
    assert late.answer is not None

    refused = of(f"@http\n{OPEN}C> POST /mcp {json.dumps(call(1))}\nS> 403 no\n")
    assert (refused.is_refused, refused.is_silent, refused.is_cut) == (True, False, False)


NEWS = '{"jsonrpc":"2.0","method":"notifications/%s","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"w"}}}'
LISTEN = (
    'C> {"jsonrpc":"2.0","id":"w","method":"subscriptions/listen","params":{"notifications":{},"_meta":$ENVELOPE}}\n'
)


def test_a_subscription_gets_what_names_it_and_knows_what_led_to_it() -> None:
    news = f"S> {NEWS}\n"
    asked = 'C> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":$ENVELOPE}}\n'
    script = script_of(
        "@modern\n"
        + LISTEN
        + news % "subscriptions/acknowledged"
        + asked
        + said("S", answer(2))
        + "+ 1s\n"
        + news % "tools/list_changed"
        + news % "prompts/list_changed"
    )
    assert scenes(script)["tools/call 2"] == ["< response 2"]
    (scene,) = (one for one in script.talks[0].scenes if one.method == "subscriptions/listen")
    acknowledged, changed, prompts = scene.lines
    assert (acknowledged.after, prompts.after) == (None, None)
    assert changed.after is not None
    assert changed.after.method == "tools/call"
    assert changed.gap_us == 1_002_000
    assert not scene.is_cut


HTTP = f"""\
@http
{OPEN}
C> POST /mcp {json.dumps(call(1, "a"))}
S> 200 STREAM
S> COMMENT keep-alive
S> EVENT id=1 {json.dumps(log())}
C2> GET /mcp
S2> 200 STREAM
S2> EVENT {json.dumps(note("tools/list_changed"))}
C3> POST /mcp {json.dumps(call(2, "b"))}
S3> 200 {json.dumps(answer(2))}
S> EVENT id=2 {json.dumps(answer(1))}
S> END
C4> GET /other
S4> 405
"""


def test_over_http_a_stream_belongs_to_its_post() -> None:
    script = script_of(HTTP)
    found = scenes(script)
    assert found["tools/call 1"][0] == "frame"
    assert [one for one in found["tools/call 1"] if one != "< notifications/tools/list_changed"] == [
        "frame",
        "< notifications/message",
        "< response 1",
        "end 3",
    ]
    assert found["tools/call 2"] == ["< response 2"]
    assert script.servers == ["http://127.0.0.1:8000"]
    assert [(web.http.method, web.http.status) for web in script.webs] == [
        ("POST", 200),
        ("POST", 202),
        ("POST", 200),
        ("GET", 200),
        ("POST", 200),
        ("GET", 405),
    ]
    post = script.webs[2]
    assert [scene.method for scene in post.scenes] == ["tools/call"]
    assert [words(line) for line in post.lines] == ["frame", "< notifications/message", "< response 1"]
    assert script.talks[0].webs[:3] == script.webs[:3]


def test_what_a_capture_lacks_is_said() -> None:
    def lacks(dialogue: str) -> list[str]:
        return [lack.text for lack in script_of(dialogue).lacks]

    assert lacks(OPEN + said("C", call(1)) + said("S", answer(1))) == []
    assert lacks("@late\n" + said("C", call(1)) + said("S", answer(1))) == [
        "the first parts of the capture are gone: what was said in them cannot be replayed",
        "the conversation that begins with #2 has no answered initialize",
    ]
    first, second = lacks(OPEN + said("C", call(1)) + "G> S 10 queue\n" + said("S", log()))
    assert first.startswith("10 bytes of the server's stdout are missing at 0.00")
    assert second == "the answer to #9 tools/call is not in the capture"
    assert lacks("E> nothing") == ["there is no request of a client in it"]
    many = lacks(OPEN + said("C", *(call(n) for n in range(1, 31))))
    assert (len(many), many[-1]) == (21, "nor are the answers to 10 more requests")


def test_the_recorded_bytes_of_a_frame_are_cut_where_the_reads_were() -> None:
    dialogue = OPEN + said("C", call(1)) + "S| b'ab'\n+ 1s\nS| b'cd\\nef'\nS| b'gh\\n'\n"
    script = script_of(dialogue, with_bytes=True)
    pieces = [script.pieces(line.frame.spans) for line in script.talks[0].scenes[-1].lines if line.frame]
    assert [[piece.data for piece in some] for some in pieces] == [[b"ab", b"cd\n"], [b"ef", b"gh\n"]]
    first, second = pieces[0]
    assert second.t - first.t == 1_001_000
    assert script_of(dialogue).pieces(script.talks[0].scenes[-1].lines[0].frame.spans) == []  # type: ignore[union-attr]


def test_a_talk_knows_its_handshake() -> None:
    def talk(dialogue: str) -> Talk:
        return script_of(dialogue).talks[0]

    assert talk(OPEN + said("C", call(1))).has_handshake
    assert talk("@modern\n" + said("C", call(1))).has_handshake
    assert talk("@modern\n" + said("C", call(1))).is_modern
    assert not talk("@late\n" + said("C", call(1))).has_handshake
    twice = talk(
        said("C", request(1, "initialize")) + 'S> {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":""}}\n' + OPEN
    )
    assert twice.opening is twice.scenes[1]
