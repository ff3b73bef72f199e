"""The responses of one connection in edit mode: JSON answers held whole, event streams event by event."""

import time
from typing import TYPE_CHECKING, Final

from mcpsniff.hooks.actions import Cut, Disconnect, HttpAnswer, Stall
from mcpsniff.hooks.actions import Raw as RawBytes
from mcpsniff.hooks.editor import ADDED, BACK, SAME, Edit, Outgoing
from mcpsniff.protocol.http import EVENT_STREAM, SESSION_HEADER
from mcpsniff.protocol.param_headers import learn
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.ends import RESPONSES
from mcpsniff.proxy.pump import BROKEN, EOF
from mcpsniff.proxy.relay.edit_records import LIMIT
from mcpsniff.proxy.relay.web.events import made
from mcpsniff.proxy.relay.web.heads import answer, says_close, set_header
from mcpsniff.proxy.relay.web.held import TOO_LARGE, Errand, Held, is_event_stream, may_be_a_message, unread
from mcpsniff.proxy.relay.web.output import GoneError, pace_of, us_of_pace
from mcpsniff.proxy.relay.web.raw import Raw
from mcpsniff.proxy.relay.web.remade import REMADE, RemadeStream
from mcpsniff.proxy.relay.web.replies import tell_lost, unedited
from mcpsniff.proxy.relay.web.stream import OURS, BrokenOffError, EventStream, StalledError
from mcpsniff.proxy.relay.web.whole import Case, Change, Leaving
from mcpsniff.wire.frames import Frame
from mcpsniff.wire.http1 import TUNNEL, Data, End, Head, Http1Splitter, Part, Trailers, Undecoded

if TYPE_CHECKING:
    from mcpsniff.proxy.relay.web.carrier import WebCarrier

LOOK: Final = 0.1
"""Seconds between two looks at whether the client is still there, while nothing goes on."""
_DONE: Final = range(200, 300)
TOLD: Final = "the client has been told before"


class EndedError(Exception):
    """What ``by`` has said is the last response."""

    def __init__(self, by: str) -> None:
        super().__init__(by)
        self.by = by


class Responses:
    """Carries the responses of ``carrier``."""

    def __init__(self, carrier: "WebCarrier") -> None:
        self.splitter = Http1Splitter(2 * carrier.number + 1, "s2c")
        self._carrier = carrier
        self._hub = carrier.hub
        self._output = carrier.outputs[RESPONSES]
        self._raw = Raw()
        self._held: Held | None = None
        self._stream: EventStream | None = None
        self._errand: Errand | None = None
        self._trailed = 0
        """Where the trailers of the message at hand end, once they have come."""
        self._reader = JsonReader()
        self._lane = carrier.lane(RESPONSES, self._late)
        self._is_greeted = False

    def run(self) -> str:
        """Carry responses to their end; return how that was."""
        try:
            while True:
                intake = self._carrier.intakes[RESPONSES]
                while (arrived := intake.take(is_wakeable=False)) is not None:
                    self.read(*arrived)
                if not self._carrier.is_renewed():
                    break
            self.finish()
        except StalledError as stalled:
            with self._carrier.intakes[RESPONSES].holding():
                while not self._carrier.has_left:
                    time.sleep(LOOK)
                    self._drop_what_came(stalled)
            return EOF
        except EndedError as ended:
            self._output.drop_rest(self._raw.stop, ended.by)
            return EOF
        except BrokenOffError as broken:
            self._output.drop_rest(self._raw.stop, broken.by)
            raise
        except GoneError:
            return BROKEN
        finally:
            self._close_stream()
        return intake.ended or EOF

    def _drop_what_came(self, stalled: StalledError) -> None:
        """Nothing leaves any more: record that of what the server has said since."""
        intake = self._carrier.intakes[RESPONSES]
        while intake.has_more and (arrived := intake.take(is_wakeable=False)) is not None:
            self._raw.add(arrived[1])
        self._output.drop_rest(self._raw.stop, *stalled.args)

    def read(self, t: int, data: bytes) -> None:
        """``data`` was read at ``t`` (`Recorder.clock`). Raises GoneError and others."""
        carrier = self._carrier
        if not self._is_greeted:
            self._is_greeted = True
            carrier.listener.greeted(data)
        if carrier.gate is not None:
            carrier.gate.hear(t, data)
        self._raw.add(data)
        if not carrier.is_blind:
            for part in self.splitter.feed((t - carrier.recorder.zero_ns) // 1000, data):
                self._take(part)
                if carrier.is_blind:
                    break
            carrier.is_blind = carrier.is_blind or self.splitter.is_lost
        stream = self._stream
        if carrier.is_blind or (self._errand is not None and stream is None and self._held is None):
            self._pass(self._raw.stop)
        elif stream is not None and stream.awaits_end_of_chunk and self._raw.begins_with(b"\r\n"):
            start = self._raw.start
            stream.end_of_chunk(self._raw.take(start + 2), start)

    def _take(self, part: Part) -> None:
        if isinstance(part, Head):
            self._begin(part)
        elif isinstance(part, Undecoded):
            self._carrier.is_blind = True
        elif isinstance(part, Data):
            self._data(part)
        elif isinstance(part, Trailers):
            self._trailed = part.spans[-1].stop
        elif isinstance(part, End):
            self._end(part)

    def finish(self) -> None:
        """The upstream has ended its side; one that we reach over TLS may have been answered for (`mitm.legs`)."""
        words = getattr(self._carrier.ends.sources[RESPONSES], "last_words", None)
        if words is not None:
            with self._output.lock:
                self._output.rewrite(self._output.passed, 0, words, OURS)
                self._output.write(words)
        elif not self._carrier.is_blind:
            for part in self.splitter.finish(self._carrier.now()):
                self._take(part)
        self._pass(self._raw.stop)

    # -- one response --------------------------------------------------------------------------------------------------

    def _begin(self, head: Head) -> None:
        carrier = self._carrier
        errand = carrier.errands[0] if carrier.errands else None
        if errand is None or head.interim:
            self._interim(head, errand)
            return
        if head.framing == TUNNEL:
            self._pass(head.spans[-1].stop)
            carrier.is_blind = True
            return
        if errand.head.method == "CONNECT":
            carrier.requests.splitter.untunnel()
        self._errand = errand
        errand.is_begun = True
        carrier.is_waiting = False
        named = head.get(SESSION_HEADER)
        if named is not None and errand.head.get(SESSION_HEADER) != named:
            self._hub.named(errand.session, named, carrier.number)
        if errand.head.method == "DELETE" and errand.head.get(SESSION_HEADER) and head.status in _DONE:
            errand.session.is_over = True
        carrier.tell()
        if is_event_stream(head, errand.head):
            self._open(errand, head)
        elif may_be_a_message(head):
            self._held = Held(head)
        else:
            unedited(self._hub, self._output.channel, unread(head, errand.head))
            tell_lost(self._hub, errand.backs)
            leaving = Leaving(head, self._raw.take(head.spans[-1].stop), b"", head.spans[0].start)
            leaving.edited(self._hub, errand, None)
            leaving.leave(self._output)

    def _interim(self, head: Head, errand: Errand | None) -> None:
        """A 1xx response, or one to no request."""
        stop = head.spans[-1].stop
        if errand is not None and errand.has_continued and head.status == 100:
            raw = self._raw.take(stop)
            with self._output.lock:
                self._output.rewrite(stop - len(raw), len(raw), b"", OURS, TOLD)
                self._output.passed = stop
        else:
            self._pass(stop)

    def _open(self, errand: Errand, head: Head) -> None:
        """An event stream begins."""
        leaving = Leaving(head, self._raw.take(head.spans[-1].stop), b"", head.spans[0].start)
        if RemadeStream.is_for(head):
            leaving.set(RemadeStream.headers(head), OURS, REMADE)
        leaving.edited(self._hub, errand, None)
        stream = self._stream = (RemadeStream if RemadeStream.is_for(head) else EventStream)(
            self._carrier, errand, head
        )
        with self._output.lock:
            leaving.leave(self._output)
            for out in errand.backs:
                stream.push(out)
            if errand.head.method == "GET":
                errand.session.streams.append(stream)

    def _data(self, part: Data) -> None:
        if self._stream is not None:
            self._stream.data(part, self._raw.take(part.span.stop))
        elif self._held is None:
            self._pass(part.span.stop)
        else:
            self._held.add(part)
            if self._held.size > LIMIT or self._held.is_unlike:
                self._let_pass(part.span.stop)

    def _end(self, part: End) -> None:
        stop = part.spans[-1].stop if part.spans else self._trailed or None
        self._trailed = 0
        held, stream, errand = self._held, self._stream, self._errand
        if stream is not None and part.complete:
            start = self._raw.start
            stream.end(self._raw.take(start if stop is None else stop), start)
        elif stream is not None:
            stream.cut_off(self._raw.start)
        elif held is not None and errand is not None:
            self._whole(errand, held, held.stop if stop is None else stop, is_complete=part.complete)
        if stop is not None:
            self._pass(stop)
        self._close_stream()
        self._held = self._errand = None
        if errand is not None and self._carrier.errands and self._carrier.errands[0] is errand:
            self._carrier.errands.popleft()
            self._carrier.tell()

    # -- answers that are a body ---------------------------------------------------------------------------------------

    def _whole(self, errand: Errand, held: Held, stop: int, *, is_complete: bool) -> None:
        raw = self._raw.take(held.body)
        leaving = Leaving(held.head, raw, self._raw.take(stop), held.start)
        frame = held.frame() if is_complete else None
        if frame is None:
            unedited(self._hub, self._output.channel, held.unread)
            tell_lost(self._hub, errand.backs)
            leaving.edited(self._hub, errand, None)
            leaving.leave(self._output)
            return
        if errand.method == "tools/list" or (errand.head.get("mcp-method") == "tools/list"):
            self._learn(frame)
        clock = self._carrier.recorder.clock
        began = clock()
        self._lane.at_hand(held.body, stop - held.body)
        edit = self._hub.editor.edit(frame, errand.session.talk, self._lane, self._reader)
        us = (clock() - began) // 1000
        if edit is None and not errand.backs:
            self._hold(Case(errand, held, leaving, stop, us), self._hub.editors)
            leaving.edited(self._hub, errand, None)
            leaving.leave(self._output)
            return
        if edit is None:
            passing = Outgoing(SAME, self._hub.editors, "", frame.payload, None)
            edit = Edit(errand.backs[0].by, errand.backs[0].why, [passing])
        self._leave(Case(errand, held, leaving, stop, us), edit)

    def _leave(self, case: Case, edit: Edit) -> None:
        """Let leave what an edit has made of the answer in a body."""
        errand, leaving = case.errand, case.leaving
        for out in edit.leaving:
            if out.what == BACK:
                self._carrier.give_back(errand.session, out)
        mine = [out for out in edit.leaving if out.what != BACK]
        besides = errand.backs + [out for out in mine if out.what == ADDED]
        unsaid = [out for out in besides if not errand.session.push(out)]
        main = next((out for out in mine if out.what != ADDED), None)
        if unsaid and errand.accepts_events and (main is None or main.action is None):
            order = [out for out in unsaid if out not in mine] + [out for out in mine if out is main or out in unsaid]
            self._as_events(case, order, unsaid[0])
            unsaid = []
        elif main is None:
            tell_lost(self._hub, unsaid)
            leaving.drop(self._output, edit.by, edit.why, case.us)
            raise StalledError(edit.by, edit.why)
        elif not self._main(case, main):
            return
        tell_lost(self._hub, unsaid)
        leaving.edited(self._hub, errand, None)
        leaving.leave(self._output, 0.0 if main is None else pace_of(main))
        if main is not None and isinstance(main.action, Cut):
            raise BrokenOffError(main.by)

    def _main(self, case: Case, out: Outgoing) -> bool:
        """Prepare what takes the place of the answer; False if nothing is to leave any more."""
        action, held, leaving, us = out.action, case.held, case.leaving, case.us
        if isinstance(action, HttpAnswer):
            content = answer(action.status, action.headers, action.body, case.errand.head, case.errand.page)
            with self._output.lock:
                self._output.rewrite(held.start, case.stop - held.start, content, out.by, out.why, us=us)
                self._output.passed = case.stop
                self._output.write(content)
            if says_close(content):
                raise EndedError(out.by)
            return False
        if isinstance(action, Stall | Disconnect):
            leaving.drop(self._output, out.by, out.why, us)
            raise StalledError(out.by, out.why) if isinstance(action, Stall) else BrokenOffError(out.by)
        if out.what == SAME:
            self._hold(case, out.by, out.why)
        else:
            body = action.data if isinstance(action, RawBytes) else out.data
            keep = action.keep if isinstance(action, Cut) else None
            if keep is not None or body != held.text():
                leaving.put(Change(body, out.by, out.why, us), held, keep)
            else:
                self._hold(case, out.by, out.why, us_of_pace(out, body))
        leaving.set(out.headers, out.by, out.why)
        return True

    def _hold(self, case: Case, by: str, why: str = "", more_us: int = 0) -> None:
        """Record that an answer was held, or will be for so long."""
        is_meant = self._lane.was_held or bool(more_us)
        self._output.hold(case.held.body, case.length, case.us + more_us, by, why, on_purpose=is_meant)

    @staticmethod
    def _as_events(case: Case, order: list[Outgoing], first: Outgoing) -> None:
        """Several messages leave where one was to: as an event stream, which the client accepts, too."""
        body = b"".join([made(out.data, b"\n") for out in order])
        case.leaving.put(Change(body, first.by, first.why, case.us), case.held)
        set_header(case.leaving.headers, "Content-Type", EVENT_STREAM)

    def _learn(self, frame: Frame) -> None:
        """Note which headers tools ask for."""
        value = self._reader.read(frame.payload).value
        result = value.get("result") if isinstance(value, dict) else None
        if isinstance(result, dict):
            learn(self._hub.tools, result.get("tools"))

    # -- what passes ---------------------------------------------------------------------------------------------------

    def _let_pass(self, stop: int) -> None:
        """What is held is too large, or no message."""
        held, errand = self._held, self._errand
        assert held is not None
        assert errand is not None
        self._held = None
        tell_lost(self._hub, errand.backs)
        if held.size > LIMIT:
            unedited(self._hub, self._output.channel, TOO_LARGE)
        raw = self._raw.take(held.body)
        leaving = Leaving(held.head, raw, self._raw.take(stop), held.start)
        leaving.edited(self._hub, errand, None)
        leaving.leave(self._output)

    def _pass(self, stop: int) -> None:
        """Let what arrived before ``stop`` leave as it came."""
        data = self._raw.take(stop)
        if data:
            self._carrier.is_waiting = False
            with self._output.lock:
                self._output.passed = self._raw.start
                self._output.write(data)

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        if stream is not None and self._errand is not None and stream in self._errand.session.streams:
            self._errand.session.streams.remove(stream)

    def _late(self, out: Outgoing) -> None:
        """A message that was kept back, where there is no stream."""
        errand = self._errand
        if errand is None or not errand.session.push(out):
            tell_lost(self._hub, [out])
