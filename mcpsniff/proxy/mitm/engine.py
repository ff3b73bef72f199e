"""mitmproxy as an engine of ours: a master with only the addons it needs, in a thread with an event loop of its own.

There is one per process, since mitmproxy keeps its master in a global variable.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, Final

from mitmproxy.addons.next_layer import NextLayer
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.http import HTTPFlow
from mitmproxy.master import Master
from mitmproxy.options import Options
from mitmproxy.proxy.mode_servers import ProxyConnectionHandler
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.tcp import TCPFlow
from mitmproxy.utils.asyncio_utils import install_exception_handler, set_eager_task_factory

from mcpsniff.errors import UsageError
from mcpsniff.proxy.mitm import framing, handling
from mcpsniff.proxy.mitm.upstream import UpstreamTls

DEBUG: Final = "MCPSNIFF_DEBUG"
"""The environment variable that lets mitmproxy's own log appear on stderr."""
START: Final = 30.0
"""Seconds that listening may take to begin."""
REST: Final = 0.1
"""Seconds without a byte after which a connection is at rest."""
_FOREVER: Final = 1 << 30
_OPTIONS: Final[Mapping[str, Any]] = {
    "connection_strategy": "lazy",  # a client that connects and says nothing is nothing to the server
    "http3": False,
    "keep_host_header": True,
    "tcp_timeout": _FOREVER,  # event streams may be silent for hours
    "websocket": False,  # as raw bytes, which are not kept
}
"""What is set unless it is asked for otherwise."""


class Engine:
    """Serves ``modes`` (as mitmproxy spells them) with ``addons``, which come before mitmproxy's own.

    ``options`` are mitmproxy's. ``authorities`` is a PEM file of CAs that servers' certificates may be issued by,
    besides the known ones. mitmproxy's own log goes nowhere unless `DEBUG` is set.
    """

    def __init__(
        self,
        addons: Sequence[Any],
        *,
        modes: Sequence[str],
        options: Mapping[str, Any] | None = None,
        authorities: str | None = None,
    ) -> None:
        self.addresses: list[tuple[str, int]] = []
        """Where it listens, by mode, once it was started."""
        self.tls = UpstreamTls(
            authorities=authorities, has_clients=not all(mode.startswith("reverse:") for mode in modes)
        )
        self._addons = addons
        self._modes = [ProxyMode.parse(mode) for mode in modes]
        self._options = {**_OPTIONS, **(options or {}), "mode": list(modes)}
        self._proxy = Proxyserver()  # type: ignore[no-untyped-call]
        self.common: list[Any] = [_Manners(), self._proxy, NextLayer(), self.tls]
        """mitmproxy's addons that every connection needs."""
        self._master: Master | None = None
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._started = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="mitmproxy", daemon=True)

    @property
    def connections(self) -> int:
        """How many connections of clients there are."""
        return len(self._proxy.connections)

    def start(self) -> None:
        """Begin to listen, and return when that is done. Raises UsageError if it cannot be done."""
        _silence()
        framing.install()
        handling.install()
        self._thread.start()
        if not self._started.wait(START):
            raise UsageError("mitmproxy does not begin to listen")
        if self._failure is not None:
            raise self._failure

    def call(self, what: Callable[[], object]) -> None:
        """Call something in the engine's thread and wait until it has returned, but for no more than a second."""
        done: Future[None] = Future()

        def called() -> None:
            try:
                what()
            except Exception as error:  # noqa: BLE001 - raised where it was called
                done.set_exception(error)
            else:
                done.set_result(None)

        try:
            self._loop.call_soon_threadsafe(called)
        except RuntimeError:  # it has ended
            return
        with suppress(FutureTimeoutError):
            done.result(1 if self._thread.is_alive() else 0)

    def submit[T](self, what: Coroutine[Any, Any, T]) -> "Future[T]":
        """Have something done in the engine's thread, from any other."""
        try:
            return asyncio.run_coroutine_threadsafe(what, self._loop)
        except RuntimeError:  # it has ended
            what.close()
            raise OSError("mitmproxy has ended") from None

    def stop_listening(self) -> None:
        """Let no more clients in."""
        self.call(self._stop_listening)

    def disconnect(self) -> None:
        """End all connections."""
        self.call(self._disconnect)

    def stop(self, seconds: float = 0.0, is_at_rest: Callable[[], bool] | None = None) -> None:
        """Let no more clients in, let what is going on come to an end for at most ``seconds``, and end.

        ``is_at_rest`` says whether nothing is worth waiting for any more.
        """
        self.stop_listening()
        until = time.monotonic() + seconds
        while self.connections and time.monotonic() < until and not (is_at_rest is not None and is_at_rest()):
            time.sleep(0.02)
        self.disconnect()
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(1)

    # -- in the engine's thread --------------------------------------------------------------------------------------

    def handler[H: ProxyConnectionHandler](
        self, kind: Callable[..., H], reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mode: ProxyMode
    ) -> H:
        """Return what serves a connection that did not come in at a port."""
        assert self._master is not None
        return kind(self._master, reader, writer, self._master.options, mode)

    async def serve(self, handler: ProxyConnectionHandler) -> None:
        """Serve such a connection to its end."""
        with self._proxy.register_connection(handler.client.id, handler):
            await handler.handle_client()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # noqa: BLE001 - told by `start`, or when it is missed
            self._failure = self._failure or error
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        master = self._master = Master(Options(), event_loop=self._loop)
        with install_exception_handler(master._asyncio_exception_handler), set_eager_task_factory():
            master.addons.add(*self._addons, *self.common)  # type: ignore[no-untyped-call]
            master.options.update(**self._options)  # type: ignore[no-untyped-call]
            if not self.tls.has_clients:
                self.tls.prepare()
            await self._proxy.setup_servers()
            for mode in self._modes:
                instance = self._proxy.servers[mode]
                if not instance.is_running:
                    self._failure = _cannot_listen(mode, instance.last_exception)
                    return
                self.addresses.append(instance.listen_addrs[0][:2])
            await master.running()
            self._started.set()
            await self._ended.wait()
            await master.done()

    def _stop_listening(self) -> None:
        for instance in self._proxy.servers:
            for server in getattr(instance, "_servers", ()):
                server.close()

    def _disconnect(self) -> None:
        for handler in list(self._proxy.connections.values()):
            for transport in list(handler.transports.values()):
                if transport.handler is not None:
                    transport.handler.cancel("mcpsniff ends")


class _Manners:
    """What every proxy has to see to, whatever is recorded."""

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Ask for no change to HTTP/2 in mid-connection: mitmproxy cannot follow it, and TLS has ALPN for that."""
        headers = flow.request.headers
        if "h2c" in headers.get("upgrade", "").lower():
            flow.request.headers.fields = tuple(
                (name, value)
                for name, value in headers.fields
                if name.lower() not in {b"upgrade", b"http2-settings"}
                and not (name.lower() == b"connection" and b"upgrade" in value.lower())
            )

    def tcp_message(self, flow: TCPFlow) -> None:
        """Keep nothing of what passes raw: mitmproxy would, for as long as the connection lasts."""
        flow.messages.clear()


def _cannot_listen(mode: ProxyMode, error: Exception | None) -> Exception:
    """Return what to raise where a mode cannot be served."""
    if isinstance(error, OSError):
        from mcpsniff.proxy.portowner import cannot_listen

        port = mode.listen_port()
        plain = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
        return UsageError(cannot_listen(mode.listen_host() or "0.0.0.0", port or 0, plain))  # noqa: S104 - told, not done
    return error or UsageError("mitmproxy does not listen")


def _silence() -> None:
    """Let mitmproxy and what it uses write their logs nowhere, or on stderr if that is asked for."""
    names = ("mitmproxy", "asyncio", "hpack", "h2")
    for name in names:
        logger = logging.getLogger(name)
        if os.environ.get(DEBUG):
            logger.setLevel(logging.DEBUG if name == "mitmproxy" else logging.INFO)
            if not logger.handlers:
                logger.addHandler(logging.StreamHandler())
        else:
            logger.setLevel(logging.CRITICAL + 1)
            logger.propagate = False
