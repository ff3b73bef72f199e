"""An `endpoint` event in a body that mitmproxy streams: made relative, see `mcpsniff.proxy.endpoint`."""

from collections.abc import Callable
from typing import Any

from mcpsniff.proxy.endpoint import EVENT_STREAM, EndpointWatch, Origins

_HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: {EVENT_STREAM}\r\n\r\n".encode()
"""What `EndpointWatch` reads before a body: framing is mitmproxy's business here."""


class EndpointBody:
    """A streaming callback for the body of an event stream.

    Each piece is told to ``noted`` first; what is changed in it, to ``changed``, as the bodies of rewrite records. A
    piece is returned as it is if anything goes wrong, after what was held; that is told to ``failed``.

    Only an address is held, until its event is complete, which the client could not read before either.
    """

    def __init__(
        self,
        origins: Origins,
        noted: Callable[[bytes], object],
        changed: Callable[[dict[str, Any]], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self._noted = noted
        self._changed = changed
        self._failed = failed
        self._watch: EndpointWatch | None = EndpointWatch(0, -len(_HEAD), origins)
        self._watch.feed(0, _HEAD)
        self._unsent = bytearray()
        """What came and has not left, as it came."""

    def __call__(self, data: bytes) -> bytes | list[bytes]:
        """Take a piece, or the end if it is empty; return what is to be sent on. An empty piece would end the body."""
        self._noted(data)
        watch = self._watch
        if watch is None:
            return data
        self._unsent += data
        try:
            out = watch.feed(0, data) if data else watch.release()
            for rewrite in watch.take_rewrites():
                self._changed(rewrite)
            del self._unsent[: len(out)]  # the length is the same, whatever was changed
            if watch.is_over:
                self._watch = None
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets what the server said
            self._watch = None
            self._failed(error)
            out = bytes(self._unsent)
        return [out] if out else []
