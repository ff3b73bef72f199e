"""The prompt, without a terminal: what is typed, what comes of it, and how the foot looks."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpsniff.cli.attach_link import Link, attached
from mcpsniff.cli.attach_orders import Typed, answer_of, typed
from mcpsniff.cli.attach_prompt import Prompt, greeting
from mcpsniff.errors import UsageError
from mcpsniff.hooks.editor import CHANGED
from mcpsniff.transcript.safe import cells
from tests.breaks.desks import CALL, NOTE, Passing, Session, call
from tests.proxy.wrapped import wait_for

ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'


class Seen:
    """A prompt, and what it shows."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.link: Link = attached(None)
        self.lines: list[str] = []
        self.saved: list[bytes] = []
        """What the editor saves, one time after another."""
        self.offered = b""
        """What it was given last."""
        self.prompt = Prompt(self.link, self._print, lambda: 80, self._edit)

    def _print(self, line: list[tuple[str, str]]) -> None:
        self.lines.append("".join(text for _, text in line))

    def _edit(self, words: list[str]) -> int:
        path = Path(words[-1])
        self.offered = path.read_bytes()
        path.write_bytes(self.saved.pop(0))
        return 0

    def type(self, text: str) -> str:
        """Type something; return what was printed."""
        self.lines.clear()
        self.prompt.type(text)
        return "\n".join(self.lines)

    def held(self, raw: bytes = CALL, direction: str = "c2s") -> Passing:
        message = self.session.held(raw, direction)
        number = self.session.points.desk.held()[-1].number
        assert wait_for(lambda: self.prompt.look() or number in self.link.held)
        return message

    def foot(self, width: int = 60, height: int = 6) -> list[str]:
        shown = ["".join(text for _, text in line) for line in self.prompt.foot(width, height, always=True)]
        assert [line for line in shown if cells(line) > width] == []
        assert len(shown) <= height
        return shown


@pytest.fixture
def seen(session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    monkeypatch.setenv("EDITOR", "edit")
    monkeypatch.delenv("VISUAL", raising=False)
    one = Seen(session("not method:nothing"))
    yield one
    one.prompt.close()
    one.link.close()


def test_help_names_every_command(seen: Seen) -> None:
    said = seen.type("h\n")
    for name in ("show", "pass", "edit", "drop", "answer", "refuse", "list", "off", "send", "quit"):
        assert f"  {name} " in said
    assert seen.type("?\r").splitlines()[1:] == said.splitlines()[1:]


def test_messages_by_their_number_and_the_oldest_without(seen: Seen) -> None:
    messages = [seen.held(call(number)) for number in range(5)]
    seen.type("p 2 4\n")
    assert [messages[at].ended() is not None for at in (1, 3)] == [True, True]
    assert "1 dropped" in seen.type("d\n")
    edit = messages[0].ended()
    assert edit is not None
    assert not edit.passes
    assert "2 went on" in seen.type("pass all\n")
    for message in messages:
        message.ended()
    assert "nothing is held" in seen.type("p\n")
    assert "9 is not held" in seen.type("p 9\n")


def test_show_lays_a_message_out_and_makes_it_harmless(seen: Seen) -> None:
    message = seen.held(call(1, text="\x1b]52;c;x\x07\u202e", long="x" * 5000, many=list(range(3000))))
    said = seen.type("show 1\n")
    assert "\\u001b]52;c;x\\u0007\\u202e" in said
    assert "\x1b" not in said
    assert "more characters" in said
    assert "in all: e 1 shows it in your editor" in said
    assert len(said.splitlines()) < 250
    seen.type("p\n")
    message.ended()


def test_answer_and_refuse(seen: Seen) -> None:
    messages = [seen.held(call(number)) for number in range(4)]
    seen.type('a 1 {"content": []}\n')
    seen.type("r 2 not today, please\n")
    assert "the answer is not JSON: line 1, column 2" in seen.type("a 3 {\n")
    seen.saved = [b'{"result": {"a": 1}}']
    seen.type("answer 3\n")
    assert json.loads(seen.offered) == {"result": {"content": [{"type": "text", "text": ""}]}}
    seen.type("drop 4\n")
    edits = [message.ended() for message in messages]
    payloads = [json.loads(out.data) for edit in edits if edit is not None for out in edit.leaving]
    assert [payload.get("result", payload.get("error")) for payload in payloads] == [
        {"content": []},
        {"code": -32000, "message": "not today, please"},
        {"a": 1},
    ]
    note = seen.held(NOTE)
    assert "only a request can be answered, and 5 is a notification" in seen.type("a 5\n")
    seen.type("p\n")
    note.ended()


def test_edit_again_after_a_mistake_and_send_it_as_it_is(seen: Seen) -> None:
    messages = [seen.held(CALL), seen.held(CALL)]
    seen.saved = [b'{\n"id":\n', b'{"id": 1.0}\n', b"half a line {\n"]
    said = seen.type("e\n")
    assert "what was edited is not JSON: line 3, column 1" in said
    assert b'"a": 1.0' in seen.offered
    assert "goes on only if it is one line" in seen.type("send 1\n")
    assert messages[0].is_waiting
    assert "1 changed" in seen.type("e 1\n")
    assert seen.offered == b'{\n"id":\n'
    assert "2 was not edited" in seen.type("send 2\n")
    seen.type("e 2\n")
    assert "2 changed" in seen.type("send 2\n")
    edits = [message.ended() for message in messages]
    sent = [[(out.what, out.data) for out in edit.leaving] for edit in edits if edit is not None]
    assert sent == [[(CHANGED, b'{"id": 1.0}')], [(CHANGED, b"half a line {")]]


def test_what_was_edited_is_not_lost_when_the_message_goes(
    seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    message = seen.held(CALL)
    seen.saved = [b"{"]
    seen.type("e\n")
    seen.session.points.desk.pass_all("passed by --break-timeout")
    message.ended()
    seen.lines.clear()
    assert wait_for(lambda: seen.prompt.look() or bool(seen.lines))
    said = " ".join(seen.lines)
    assert "1 is not held any more: passed by --break-timeout (tools/call add)" in said
    assert "what was edited is kept in" in said
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"{"]


def test_the_foot_fits_whatever_is_held_or_typed(seen: Seen) -> None:
    assert seen.foot() == ["nothing held (h for help)> █"]
    assert seen.prompt.foot(60, 6, always=False) == []
    hostile = json.dumps({"jsonrpc": "2.0", "id": "\x1b[1m" * 99, "method": "\u4e2d\x1b[2J" * 99}).encode()
    messages = [seen.held(hostile), seen.held(b"no JSON"), *[seen.held(call(at)) for at in range(2, 300)]]
    seen.type("pa\x1b[D\x1bOHss " + "\u4e2d" * 100)
    for width in (5, 7, 20, 60, 200):
        for height in (0, 1, 2, 3, 6, 40):
            for line in seen.foot(width, height):
                assert line.isprintable()
    shown = seen.foot(60, 6)
    assert len(shown) == 6
    assert shown[4].strip() == "… and 296 more"
    assert shown[5].startswith("300 held (h for help)> ")
    assert shown[5].endswith("\u4e2d█")
    seen.type("\x15d 2\x7f1\x17")
    assert seen.foot()[5] == "300 held (h for help)> d █"
    seen.type("\x15off\n")
    for message in messages:
        message.ended()
    assert wait_for(lambda: seen.prompt.look() or not seen.link.held)
    assert seen.foot() == ["break points are off (h for help)> █"]
    seen.type("on\n")
    assert wait_for(lambda: seen.prompt.look() or seen.foot() == ["nothing held (h for help)> █"])


def test_lines_typed_before_come_back(seen: Seen) -> None:
    seen.type("list\np 5\nlist\n")
    for keys, line in (("\x1b[A", "list"), ("\x1b[A", "p 5"), ("\x1b[A", "p 5"), ("\x1bOB", "list"), ("\x1b[B", "")):
        seen.type(keys)
        assert seen.foot()[-1] == f"nothing held (h for help)> {line}█"


def test_answers_are_named_by_what_they_answer(seen: Seen) -> None:
    question = seen.held(CALL)
    seen.type("p\n")
    question.ended()
    answer = seen.held(ANSWER, "s2c")
    assert seen.foot()[0].split()[:6] == ["2", "←", "answer", "to", "tools/call", "add"]
    seen.type("p\n")
    answer.ended()


def test_leaving(seen: Seen) -> None:
    seen.type("x\x04")
    assert not seen.prompt.is_left
    seen.type("\x15\x04")
    assert seen.prompt.is_left
    assert greeting(seen.link).startswith("attached to time (process ")
    assert greeting(seen.link).endswith("1 break point: not method:nothing")


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("p", Typed("pass")),
        ("pass 1,2 3", Typed("pass", (1, 2, 3))),
        ("p all", Typed("pass", is_all=True)),
        ("S 4", Typed("show", (4,))),
        ("sen 4", Typed("send", (4,))),
        ("a 1 2", Typed("answer", (1,), text="2")),
        ("a 1", Typed("answer", (1,))),
        ("a {}", Typed("answer", text="{}")),
        ("r 3 not 4 today", Typed("refuse", (3,), text="not 4 today")),
        ("off", Typed("off")),
    ],
)
def test_what_is_typed(line: str, means: Typed) -> None:
    assert typed(line) == means


@pytest.mark.parametrize("line", ["o", "x", "p x", "e 1 2", "pass 1 x", "\x1b[2J", "p 99999999999"])
def test_what_is_no_command(line: str) -> None:
    with pytest.raises(UsageError) as raised:
        typed(line)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{{"a": {"9" * 5000}}}', "the answer has a number with more digits than can be read, which are 4,300"),
        ("[" * 100_000, "the answer is nested too deeply"),
        ('{"a": NaN}', "the answer is not JSON: NaN is no JSON"),
    ],
)
def test_an_answer_that_cannot_be_read_is_told_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        answer_of(text)
    assert str(raised.value) == said
