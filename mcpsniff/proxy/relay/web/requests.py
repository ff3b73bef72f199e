"""The requests of one connection in edit mode: screened, held, edited, and answered in the server's place."""

from typing import TYPE_CHECKING, Final

from mcpsniff.hooks.actions import Cut, Disconnect, HttpAnswer, Stall
from mcpsniff.hooks.actions import Raw as RawBytes
from mcpsniff.hooks.editor import ADDED, BACK, SAME, Edit, Outgoing
from mcpsniff.protocol.jsonrpc import classify
from mcpsniff.protocol.message import BATCH, ERROR, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.answers import Answer, unreachable
from mcpsniff.proxy.dial import UnreachableError
from mcpsniff.proxy.ends import REFUSED, REQUESTS, RESPONSES
from mcpsniff.proxy.farewell import inject as inject_answer
from mcpsniff.proxy.pump import BROKEN, EOF, RESET
from mcpsniff.proxy.relay.edit_records import LIMIT
from mcpsniff.proxy.relay.web.heads import answer, keeps, says_close
from mcpsniff.proxy.relay.web.held import TOO_LARGE, Errand, Held, may_be_a_message, unread
from mcpsniff.proxy.relay.web.inject import inject
from mcpsniff.proxy.relay.web.output import GoneError, pace_of, us_of_pace
from mcpsniff.proxy.relay.web.raw import Raw
from mcpsniff.proxy.relay.web.replies import accepted, reply, tell_lost, unedited
from mcpsniff.proxy.relay.web.routing import made_true
from mcpsniff.proxy.relay.web.stream import OURS, BrokenOffError
from mcpsniff.proxy.relay.web.whole import Case, Change, Leaving
from mcpsniff.wire.frames import Frame
from mcpsniff.wire.http1 import Data, End, Head, Http1Splitter, Part, Trailers, Undecoded

if TYPE_CHECKING:
    from mcpsniff.proxy.relay.web.carrier import WebCarrier

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
HOST: Final = "the upstream's Host"
LOST: Final = "it waits for an answer that was dropped"
SETTLING: Final = 0.25
"""Seconds that a request gets to be noticed before what a hook has put after it follows."""


class EndError(Exception):
    """This direction ends here."""

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Requests:
    """Carries the requests of ``carrier``."""

    def __init__(self, carrier: "WebCarrier") -> None:
        self.splitter = Http1Splitter(2 * carrier.number, "c2s")
        self._carrier = carrier
        self._hub = carrier.hub
        self._output = carrier.outputs[REQUESTS]
        self._back = carrier.outputs[RESPONSES]
        self._raw = Raw()
        self._held: Held | None = None
        self._head: Leaving | None = None
        self._errand: Errand | None = None
        self._trailed = 0
        """Where the trailers of the message at hand end, once they have come."""
        self._reader = JsonReader()
        self._lane = carrier.lane(REQUESTS, self._late)

    def run(self) -> str:
        """Carry requests to their end; return how that was."""
        intake = self._carrier.intakes[REQUESTS]
        try:
            while (arrived := intake.take(is_wakeable=False)) is not None:
                self._read(*arrived)
            for part in self.splitter.finish(self._carrier.now()) if not self._carrier.is_blind else ():
                self._take(part)
            self._pass(self._raw.stop)
        except EndError as end:
            return end.outcome
        except BrokenOffError as broken:
            self._output.drop_rest(self._raw.stop, broken.by)
            raise
        except GoneError:
            return BROKEN
        return intake.ended or EOF

    def _read(self, t: int, data: bytes) -> None:
        carrier = self._carrier
        gate = carrier.gate
        if gate is not None:
            data = gate.feed(t, data)
        self._raw.add(data)
        if not carrier.is_blind:
            for part in self.splitter.feed((t - carrier.recorder.zero_ns) // 1000, data):
                self._take(part)
                if carrier.is_blind:
                    break
            carrier.is_blind = carrier.is_blind or self.splitter.is_lost
        if gate is not None and gate.refusal is not None:
            self._refuse(gate.refusal, gate.refused)
        if gate is not None and gate.is_over:
            carrier.is_blind = True
        if carrier.is_blind or (self._errand is not None and self._held is None):
            self._pass(self._raw.stop)

    def _take(self, part: Part) -> None:
        if isinstance(part, Head):
            self._begin(part)
        elif isinstance(part, Undecoded):
            self._carrier.is_blind = True
        elif isinstance(part, Data) and self._held is not None:
            self._held.add(part)
            if self._held.size > LIMIT:
                self._let_pass(part.span.stop)
        elif isinstance(part, Trailers):
            self._trailed = part.spans[-1].stop
        elif isinstance(part, End):
            self._end(part)
        elif isinstance(part, Data):
            self._pass(part.span.stop)

    # -- one request ---------------------------------------------------------------------------------------------------

    def _begin(self, head: Head) -> None:
        refusal = None if self._carrier.door is None else self._carrier.door.refusal_of_page(head)
        if refusal is not None:
            self._refuse(refusal, head)
        session = self._hub.session(head, self._carrier.number)
        errand = self._errand = Errand(head, session)
        errand.is_screened = self._carrier.door is not None or self._carrier.gate is not None
        if head.method == "GET" and session.latest is None and errand.accepts_events:
            session.latest = head
        if not may_be_a_message(head):
            unedited(self._hub, self._output.channel, unread(head, head))
            leaving = Leaving(head, self._raw.take(head.spans[-1].stop), b"", head.spans[0].start)
            self._send(errand, leaving, None)
            return
        self._held = Held(head)
        self._carrier.is_busy = True
        if "100-continue" in (head.get("expect") or "").lower() and self._carrier.turn():
            errand.has_continued = True
            self._tell(CONTINUE, OURS, "the request has to be read whole")

    def _end(self, part: End) -> None:
        held, errand = self._held, self._errand
        self._errand = None
        stop = part.spans[-1].stop if part.spans else self._trailed or self._place(held)
        self._trailed = 0
        if held is None or errand is None:
            self._pass(stop)
            return
        self._held = None
        raw = self._raw.take(held.body)
        leaving = Leaving(held.head, raw, self._raw.take(stop), held.start)
        frame = held.frame() if part.complete else None
        if frame is None:
            unedited(self._hub, self._output.channel, held.unread)
            self._send(errand, leaving, None)
        else:
            self._message(errand, held, leaving, frame)
        self._carrier.is_busy = False
        self._carrier.tell()

    def _place(self, held: Held | None) -> int:
        """Where a body ends that has no framing at its end."""
        if held is None:
            return self._raw.start
        return held.stop

    def _message(self, errand: Errand, held: Held, leaving: Leaving, frame: Frame) -> None:
        """A message has come whole."""
        clock = self._carrier.recorder.clock
        first = classify(frame, self._reader)
        message = first[1] if first[0].kind == BATCH and len(first) > 1 else first[0]
        errand.session.latest = errand.head
        errand.is_batch = first[0].kind == BATCH
        errand.method = message.method if first[0].kind == REQUEST else None
        case = Case(errand, held, leaving, self._raw.start, 0, message, message.body)
        began = clock()
        self._carrier.is_waiting = True
        self._lane.at_hand(held.body, case.length)
        edit = self._hub.editor.edit(frame, errand.session.talk, self._lane, self._reader)
        case.us = (clock() - began) // 1000
        message.conversation = errand.session.talk.number
        if edit is None:
            self._hold(case, self._hub.editors)
            self._send(errand, leaving, message)
        else:
            self._leave(case, edit)

    def _leave(self, case: Case, edit: Edit) -> None:
        """Let leave what an edit has made of a message."""
        errand = case.errand
        backs = [out for out in edit.leaving if out.what == BACK]
        if edit.passes:
            errand.backs = [out for out in backs if not errand.session.push(out)]
        has_left = False
        for out in edit.leaving:
            if out.what == BACK:
                continue
            if out.what == ADDED:
                if has_left and errand.method is not None:
                    self._settle(errand)
                inject(self._hub, errand.session, out, waits=not has_left)
                continue
            has_left = True
            self._main(case, out)
        if not has_left:
            self._answer(case, edit, backs)

    def _main(self, case: Case, out: Outgoing) -> None:
        """Let leave what takes the place of the message: that itself, another one, or what else a hook wants."""
        action, leaving, held, errand, us = out.action, case.leaving, case.held, case.errand, case.us
        message = case.message
        if isinstance(action, HttpAnswer):
            content = answer(action.status, action.headers, action.body, errand.head, errand.page)
            self._in_place(case, content, out.by, out.why)
        elif isinstance(action, Stall):
            leaving.drop(self._output, out.by, out.why, us)
            self._wait()
        elif isinstance(action, Disconnect):
            leaving.drop(self._output, out.by, out.why, us)
            raise BrokenOffError(out.by)
        else:
            if out.what == SAME:
                self._hold(case, out.by, out.why)
            else:
                body = action.data if isinstance(action, RawBytes) else out.data
                keep = action.keep if isinstance(action, Cut) else None
                if keep is not None or body != held.text():
                    leaving.put(Change(body, out.by, out.why, us), held, keep)
                else:
                    self._hold(case, out.by, out.why, us_of_pace(out, body))
                if out.message is not None and out.message.kind in (REQUEST, NOTIFICATION):
                    made_true(leaving.headers, case.was, out.message, self._hub.tools)
                    message = out.message
            leaving.set(out.headers, out.by, out.why)
            self._send(errand, leaving, message, pace_of(out))
            if isinstance(action, Cut):
                raise BrokenOffError(out.by)

    def _hold(self, case: Case, by: str, why: str = "", more_us: int = 0) -> None:
        """Record that a message was held, or will be for so long."""
        is_meant = self._lane.was_held or bool(more_us)
        self._output.hold(case.held.body, case.length, case.us + more_us, by, why, on_purpose=is_meant)

    def _send(self, errand: Errand, leaving: Leaving, message: Message | None, paced: float = 0.0) -> None:
        """Let a request leave, and remember that it is to be answered."""
        carrier = self._carrier
        host = carrier.listener.host
        if host is not None and [value for name, value in leaving.headers if name.lower() == "host"] != [host]:
            leaving.set({"Host": host}, OURS, HOST)
        leaving.edited(self._hub, errand, message)
        try:
            carrier.have_upstream()
        except (UnreachableError, OSError) as error:
            tried = error.tried if isinstance(error, UnreachableError) else [str(error)]
            leaving.drop(self._output, OURS, "", 0)
            self._say(errand, unreachable(carrier.listener.upstream, tried).to(errand.head), OURS, "")
            raise EndError(EOF) from None
        carrier.responses.splitter.expect(errand.head.method or "GET")
        carrier.errands.append(errand)
        carrier.is_waiting = True
        leaving.leave(self._output, paced)

    # -- in the server's place -----------------------------------------------------------------------------------------

    def _answer(self, case: Case, edit: Edit, backs: list[Outgoing]) -> None:
        """The message does not go on: say what hooks have said, or that it is accepted, or nothing at all."""
        errand = case.errand
        answers = [out for out in backs if out.message is not None and out.message.kind in (RESPONSE, ERROR)]
        is_asked = (errand.method is not None or errand.is_batch) and not errand.session.is_legacy
        if not (is_asked and answers):
            lost = [out for out in backs if not errand.session.push(out)]
            tell_lost(self._hub, lost)
            if errand.method is not None and is_asked:
                case.leaving.drop(self._output, edit.by, edit.why, case.us)
                self._wait()
                return
        content = reply(errand, backs) if is_asked and answers else accepted(errand)
        first = backs[0] if backs else None
        by, why = (edit.by, edit.why) if first is None else (first.by, first.why)
        self._in_place(case, content, by, why)

    def _in_place(self, case: Case, content: bytes, by: str, why: str) -> None:
        """Answer a request in the server's place."""
        case.leaving.drop(self._output, by, why, case.us)
        self._say(case.errand, content, by, why)

    def _say(self, errand: Errand, content: bytes, by: str, why: str) -> None:
        """Give a response of ours, when all requests that came before are answered."""
        if not self._carrier.turn():
            return
        self._tell(content, by, why)
        self._carrier.is_waiting = False
        if says_close(content) or not keeps(errand.head):
            self._carrier.close()
            raise EndError(EOF)

    def _tell(self, content: bytes, by: str, why: str) -> None:
        """Say something to the client between two responses."""
        with self._back.lock:
            self._back.rewrite(self._back.passed, 0, content, by, why)
            try:
                self._back.write(content)
            except GoneError:  # it is the client that has gone, not the upstream
                raise EndError(RESET) from None

    def _wait(self) -> None:
        """Let the client wait until it leaves; what it still sends goes nowhere."""
        intake = self._carrier.intakes[REQUESTS]
        self._carrier.is_waiting = False
        self._carrier.is_busy = True
        self._raw.take(self._raw.stop)
        while (arrived := intake.take(is_wakeable=False)) is not None:
            self._raw.add(arrived[1])
            self._raw.take(self._raw.stop)
        length = self._raw.stop - self._output.passed
        self._output.rewrite(self._output.passed, length, b"", OURS, LOST)
        self._output.passed += length
        self._carrier.is_busy = False
        raise EndError(intake.ended or EOF)

    def _settle(self, errand: Errand) -> None:
        """Give the server a moment to see a request before what follows it comes on another connection."""
        carrier = self._carrier
        with carrier.changed:
            carrier.changed.wait_for(lambda: errand.is_begun or carrier.is_over, SETTLING)

    def _late(self, out: Outgoing) -> None:
        self._hub.editor.tell_once(f"{out.by}: a request over HTTP cannot leave later than the one that it came in")

    # -- what passes ---------------------------------------------------------------------------------------------------

    def _let_pass(self, stop: int) -> None:
        """What is held is too large."""
        held, errand = self._held, self._errand
        assert held is not None
        assert errand is not None
        self._held = None
        unedited(self._hub, self._output.channel, TOO_LARGE)
        raw = self._raw.take(held.body)
        self._send(errand, Leaving(held.head, raw, self._raw.take(stop), held.start), None)
        self._carrier.is_busy = False

    def _pass(self, stop: int) -> None:
        """Let what arrived before ``stop`` leave as it came."""
        data = self._raw.take(stop)
        if data:
            self._carrier.is_waiting = True
            self._output.passed = self._raw.start
            self._output.write(data)

    def _refuse(self, refusal: Answer, refused: Head | None) -> None:
        """Answer a request in the server's place, that must not pass."""
        carrier = self._carrier
        if not carrier.ends.take_over(at_once=not self._output.sent):
            carrier.ends.break_off(REFUSED)
        else:
            content = refusal.to(refused)
            inject_answer(carrier.recorder, self._back.channel, self._back.passed, content)
            carrier.ends.say_last(content)
        raise EndError(RESET if self._held is not None else EOF)
