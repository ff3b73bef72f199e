"""One connection of a client, from the moment it is accepted."""

import socket

from mcpsniff.proxy.answers import unreachable
from mcpsniff.proxy.carrier import Carrier
from mcpsniff.proxy.dial import UnreachableError
from mcpsniff.proxy.ends import RESPONSES, SERVER_CLOSED, Ends, reset_on_close, shut, spelled
from mcpsniff.proxy.farewell import answer_alone
from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpsniff.proxy.gate import Gate
    from mcpsniff.proxy.listener import Listener
    from mcpsniff.proxy.relay.web.carrier import WebCarrier


class Connection:
    """Connection number ``number`` at ``listener``, of the client at ``address``."""

    def __init__(self, listener: "Listener", client: socket.socket, address: "tuple[object, ...]", number: int) -> None:
        self._listener = listener
        self._client = client
        self._address = address
        self._first_channel = 2 * number
        self._ends: Ends | None = None
        self._carrier: Carrier | WebCarrier | None = None

    @property
    def is_waiting(self) -> bool:
        """True while nothing has come back since the client said something."""
        carrier = self._carrier
        return carrier is not None and carrier.is_waiting

    @property
    def progress(self) -> int:
        """How many bytes have been passed on, both ways."""
        carrier = self._carrier
        return 0 if carrier is None else carrier.progress

    def run(self) -> None:
        """Connect to the upstream and carry the requests, or tell the client why not. Nothing is raised."""
        listener, client, channel = self._listener, self._client, self._first_channel
        try:
            try:
                upstream, address = listener.dialler.dial()
            except UnreachableError as error:
                self._open()
                answer_alone(listener, client, channel, unreachable(listener.upstream, error.tried))
                self._gone()
                return
            except ConnectionResetError:
                self._open()
                self._reset()
                self._gone()
                return
            self._open(address)
            gate = listener.gate(client, channel)
            ends = self._ends = Ends(client, upstream, channel, listener.recorder, self._gone)
            carrier = self._carrier = self._carrying(ends, gate)
        except Exception as error:  # noqa: BLE001 - such as no memory; the other connections go on
            say(f"a connection is refused: {error!r}")
            client.close()
            self._gone()
            return
        carrier.run()

    def _carrying(self, ends: Ends, gate: "Gate | None") -> "Carrier | WebCarrier":
        """What carries the requests: with edit hooks something else than without."""
        listener = self._listener
        if listener.hub is not None:
            from mcpsniff.proxy.relay.web.carrier import WebCarrier

            return WebCarrier(listener, listener.hub, ends, self._first_channel, gate)
        return Carrier(
            ends,
            self._first_channel,
            recorder=listener.recorder,
            origins=listener.origins,
            null=listener.null,
            gate=gate,
            greet=listener.greeted,
        )

    def stop(self) -> None:
        """End it, since mcpsniff ends; from any thread."""
        ends = self._ends
        if ends is None:
            shut(self._client, socket.SHUT_RDWR)
        else:
            ends.stop()

    def _open(self, upstream: "tuple[object, ...] | None" = None) -> None:
        """Record that both channels begin; ``upstream`` is the address that we are connected to."""
        listener, channel = self._listener, self._first_channel
        meta = {"client": spelled(self._address)}
        if upstream is not None:
            meta["server"] = spelled(upstream)
        meta["listen"] = spelled(listener.local_address(self._client))
        meta["upstream"] = listener.upstream.origin
        ends = {"kind": "tcp", "conn": channel // 2, "meta": meta}
        listener.recorder.mark("open", channel, {**ends, "dir": "c2s"})
        listener.recorder.mark("open", channel + 1, {**ends, "dir": "s2c", "of": channel})

    def _reset(self) -> None:
        """Do to the client as the server did to us before it said a word."""
        recorder, channel = self._listener.recorder, self._first_channel
        recorder.mark("close", channel + RESPONSES, {"how": "reset"})
        recorder.mark("close", channel, {"how": "aborted", "error": SERVER_CLOSED})
        reset_on_close(self._client)
        self._client.close()

    def _gone(self) -> None:
        """Both sockets are closed: nothing of this is left, nor kept by a cycle of references."""
        self._listener.live.discard(self)
        self._ends = self._carrier = None
