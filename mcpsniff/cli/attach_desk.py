"""What the commands at the prompt do to held messages."""

from collections.abc import Callable
from typing import Any

from mcpsniff.cli.attach_edit import Draft, Run
from mcpsniff.cli.attach_lines import beginning, words
from mcpsniff.cli.attach_link import Held, Link, RefusedError
from mcpsniff.cli.attach_orders import Typed, answer_of, skeleton
from mcpsniff.cli.attach_text import least_change
from mcpsniff.errors import UsageError
from mcpsniff.replay.resend.edit import decoded, fault, laid_out, on_one_line
from mcpsniff.transcript.layout import wrapped
from mcpsniff.transcript.pretty import Line


class Desk:
    """Carries commands out. A text that was edited, and came to nothing, is there again when it is edited once more."""

    def __init__(
        self,
        link: Link,
        print_line: Callable[[Line], object],
        width: Callable[[], int],
        run: Run,
        *,
        has_prompt: bool = True,
    ) -> None:
        """``has_prompt`` is False where the user cannot say more."""
        self._has_prompt = has_prompt
        self._link = link
        self._print = print_line
        self._width = width
        self._run = run
        self._drafts: dict[tuple[str, int], Draft] = {}
        """By ``edit`` or ``answer``, and the message's number."""

    def carry_out(self, what: Typed) -> None:
        """Do it. Raises McpsniffError, with what the user is to be told."""
        if what.is_all:
            passed = self._link.order("pass all")["passed"]
            self._link.forget_all()
            self._say(f"{passed} went on")
            return
        numbers = what.numbers or (self._oldest(),)
        for number in numbers:
            held = self._link.held.get(number)
            if held is None:
                raise RefusedError(f"{number} is not held, or not any more")
            _WAYS[what.do](self, held, what.text)

    def tell_gone(self) -> None:
        """Say what became of messages about which somebody else has decided, or nobody."""
        gone, self._link.gone = self._link.gone, []
        for held, how in gone:
            self._say(f"{held.number} is not held any more: {how} ({words(held)})")
            for key in [key for key in self._drafts if key[1] == held.number]:
                self._end(self._drafts.pop(key))

    def close(self) -> None:
        """Nothing more is edited: drafts that say something are kept, and named."""
        while self._drafts:
            self._end(self._drafts.popitem()[1])

    def _show(self, held: Held, _text: str) -> None:
        for line in beginning(held, self._link.text(held.number), self._width()):
            self._print(line)

    def _pass(self, held: Held, _text: str) -> None:
        self._order(held, "pass")

    def _drop(self, held: Held, _text: str) -> None:
        self._order(held, "drop")

    def _refuse(self, held: Held, text: str) -> None:
        if not text:
            raise UsageError("refuse takes the text of the error: refuse 3 not today")
        self._order(held, "answer", error=text)

    def _answer(self, held: Held, text: str) -> None:
        if held.facts["kind"] != "request":
            raise UsageError(f"only a request can be answered, and {held.number} is a {held.facts['kind']}")
        if not text:
            draft = self._draft("answer", held, lambda: skeleton(held))
            data = draft.edited(self._run)
            if not draft.is_changed:
                raise RefusedError(f"nothing was changed: {held.number} is still held")
            text, wrong = decoded(data)
            if wrong:
                raise UsageError(f"{wrong}; a {held.number} edits it again")
            text = text.removeprefix("\ufeff").lstrip("@ \t\r\n")
        self._order(held, "answer", **answer_of(text))

    def _edit(self, held: Held, _text: str) -> None:
        draft = self._draft("edit", held, lambda: laid_out(self._link.text(held.number)))
        data = draft.edited(self._run)
        text, wrong = decoded(data)
        if wrong or (wrong := fault(text)):
            again = f"; e {held.number} edits it again, send {held.number} lets it go on as it is"
            raise UsageError(f"what was edited is not JSON: {wrong}{again if self._has_prompt else ''}")
        was = self._link.text(held.number)
        if on_one_line(text) == on_one_line(laid_out(was)):
            raise RefusedError(f"nothing was changed: {held.number} is still held")
        self._order(held, "change", text=least_change(was, text).decode(errors="surrogatepass"))

    def _send(self, held: Held, _text: str) -> None:
        draft = self._drafts.get(("edit", held.number))
        if draft is None:
            raise UsageError(f"{held.number} was not edited: e {held.number} does that")
        text, wrong = decoded(draft.saved())
        if wrong:
            raise UsageError(wrong)
        lines = text.splitlines()
        if len(lines) > 1:
            raise UsageError("what is not JSON goes on only if it is one line")
        self._order(held, "change", text="".join(lines), anyway=True)

    def _order(self, held: Held, do: str, **more: Any) -> None:
        done = self._link.order(do, held.number, **more)["done"]
        self._link.forget(held.number)
        for key in [key for key in self._drafts if key[1] == held.number]:
            self._drafts.pop(key).remove()
        if self._has_prompt:
            self._say(f"{held.number} {done}")

    def _draft(self, what: str, held: Held, text: Callable[[], str]) -> Draft:
        if (what, held.number) not in self._drafts:
            self._drafts[what, held.number] = Draft(text())
        return self._drafts[what, held.number]

    def _end(self, draft: Draft) -> None:
        if draft.is_changed:
            self._say(f"what was edited is kept in {draft.path}")
        else:
            draft.remove()

    def _oldest(self) -> int:
        if not self._link.held:
            raise UsageError("nothing is held")
        return next(iter(self._link.held))

    def _say(self, text: str) -> None:
        for line in wrapped(text, self._width()):
            self._print([("remark", line)])


_WAYS = {
    "show": Desk._show,
    "pass": Desk._pass,
    "drop": Desk._drop,
    "refuse": Desk._refuse,
    "answer": Desk._answer,
    "edit": Desk._edit,
    "send": Desk._send,
}
