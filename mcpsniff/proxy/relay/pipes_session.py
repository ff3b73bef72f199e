"""What `mcpsniff stdio` has besides, when addons, rules, faults or break points are asked for."""

from collections.abc import Callable

from mcpsniff.capture.records import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from mcpsniff.proxy.child import Pipes
from mcpsniff.proxy.interception import Interception
from mcpsniff.proxy.observer import Observer
from mcpsniff.proxy.recorder import Recorder
from mcpsniff.proxy.relay.pipes import EditPump
from mcpsniff.proxy.say import say


class Editing:
    """The edit hooks of one wrapped server, and the process of the observing ones."""

    def __init__(self, interception: Interception, recorder: Recorder) -> None:
        self._interception = interception
        self._recorder = recorder
        self._pumps: list[EditPump] = []
        self._observer: Observer | None = None

    @property
    def holds(self) -> bool:
        """True if messages are held; otherwise addons only observe, and plain pumps do."""
        return self._interception.editor is not None

    def pumps(
        self,
        pipes: Pipes,
        null: int,
        read: Callable[[int, int], bytes] | None,
        tell: Callable[[int], object],
    ) -> tuple[EditPump, EditPump]:
        """The pumps of stdin and stdout; see `mcpsniff.proxy.pump.Pump`. OSError if there are no descriptors left."""
        editor = self._interception.editor
        assert editor is not None
        talk = editor.talk("stdio")
        forth = EditPump(
            0, pipes.stdin, 0, self._recorder, null,
            direction=CLIENT_TO_SERVER, editor=editor, talk=talk, read=read, tell=tell,
        )  # fmt: skip
        back = EditPump(
            pipes.stdout, 1, 1, self._recorder, null, direction=SERVER_TO_CLIENT, editor=editor, talk=talk, tell=tell
        )
        forth.peer, back.peer = back, forth
        self._pumps = [forth, back]
        return forth, back

    def begin(self) -> None:
        """The first message may come any moment."""
        try:
            self._interception.begin(self._recorder)
        except Exception as error:  # noqa: BLE001 - the server has been started
            say(f"internal error: {error!r}")

    def recording(self, path: str | None, label: str) -> None:
        """The capture is there, or there is none: then nobody can follow it."""
        self._interception.called(label)
        if not self._interception.observers:
            return
        if path is None:
            say("no addon observes: there is no capture to follow")
            return
        self._observer = Observer([path], self._interception.observers, stdout_to_stderr=True)

    def let_go(self) -> None:
        """The client wants the end: nobody holds a message any longer."""
        for pump in self._pumps:
            pump.release()
        self._interception.let_go()

    def end(self) -> None:
        """Everything has passed, and remarks still find their way into the capture."""
        self._interception.let_go()
        self._interception.finish(say)

    def server_ended(self) -> None:
        """Its last words are not to wait for a person: its exit status is due at the client."""
        self._interception.let_go()

    def finish(self, wait: Callable[[float], bool]) -> None:
        """Everything is recorded; ``wait`` as in `Observer.finish`."""
        if self._observer is not None:
            self._observer.finish(wait)
