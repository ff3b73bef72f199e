"""`mcpsniff run`: a client whose HTTP goes through a forward proxy of ours, from its start to what is said of it.

The proxy runs in threads of this process; the main thread only waits for the client and for signals.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mcpsniff.capture.labels import default_label
from mcpsniff.proxy import client_advice
from mcpsniff.proxy.child import StartError, inherited_environment
from mcpsniff.proxy.client_env import replaced, through_proxy
from mcpsniff.proxy.client_process import Client, Signals, check
from mcpsniff.proxy.client_trust import Certificates
from mcpsniff.proxy.recording import Recording
from mcpsniff.proxy.remains import PATIENCE, account_for
from mcpsniff.proxy.say import say
from mcpsniff.proxy.seen import Seen


class Session(Protocol):
    """What `mcpsniff.proxy.mitm.forward.ForwardSession` does for us."""

    @property
    def ca_path(self) -> str:
        """The PEM file of the proxy's authority."""

    @property
    def recording(self) -> Recording:
        """Where what was said is kept."""

    def start(self) -> str:
        """Begin to listen and to record; return the proxy's URL. Raises UsageError."""

    def finish(self) -> Seen:
        """End, store the rest, and tell what was seen."""


type Open = Callable[[Mapping[str, Any], str, Sequence[str]], Session]
"""Makes a session of options, label, and hosts to look into alone."""


def launch(command: Sequence[str], options: Mapping[str, Any], open_session: Open | None = None) -> int:
    """Run the client ``command`` and return its exit status: 128 + N if signal N ended it, 126 or 127 if none began.

    ``options`` holds the values of `mcpsniff.cli.options.RUN`. Raises UsageError, before anything was begun, if they
    cannot be served so.
    """
    try:
        check(command[0])
    except StartError as error:
        say(str(error))
        return error.status
    if options.get("addon"):
        # The streams are the client's: what an addon prints goes to stderr, and there is nothing for it to read.
        sys.stdout = sys.stderr
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for as long as we are there
    environment = inherited_environment()
    signals = Signals()
    certificates = Certificates(environment)
    try:
        upstream = certificates.for_upstream(options["upstream_ca"])
        label = options["label"] or default_label(command)
        session = (open_session or _forward)({**options, "upstream_ca": upstream}, label, options["only"])
        url = session.start()
        began = time.monotonic()
        status, did_run = _run(
            command, through_proxy(environment, url, certificates.variables(session.ca_path)), signals
        )
        seconds = time.monotonic() - began
        seen = session.finish()
    finally:
        certificates.remove()
    if did_run:
        _tell(seen, command, options, seconds)
        if seen.recorded:
            account_for({label: session.recording}, signals.wait, time.monotonic() + PATIENCE, quiet=options["quiet"])
    return status


def _forward(options: Mapping[str, Any], label: str, only: Sequence[str]) -> Session:
    """Return a forward proxy on a free port of this machine."""
    from mcpsniff.proxy.mitm.forward import ForwardSession

    return ForwardSession(options, listen=("127.0.0.1", 0), only=only, everything=False, label=label)


def _run(command: Sequence[str], environment: Mapping[str, str], signals: Signals) -> tuple[int, bool]:
    """Run the client to its end; return its exit status, and whether it began: a signal may have come before."""
    asked = signals.asks_for_the_end()
    if asked:
        return 128 + asked, False
    names = replaced(os.environ)
    if names:
        say(f"{', '.join(names)} of the environment is replaced: mcpsniff itself connects to servers directly")
    try:
        client = Client(command, environment, signals)
    except StartError as error:
        say(str(error))
        return error.status, False
    return client.follow(), True


def _tell(seen: Seen, command: Sequence[str], options: Mapping[str, Any], seconds: float) -> None:
    """Say what was seen, or that nothing was; that, and what went wrong, is said quietly, too."""
    for line in [*seen.troubles, *seen.rejections, *client_advice.refused(seen)]:
        say(line)
    if not seen.recorded:
        say(client_advice.unseen(seen, options["only"], seconds))
    if options["quiet"]:
        return
    if seen.recorded:
        say(client_advice.summary(seen))
        return
    for line in client_advice.reasons(seen, options["only"], command, os.environ, seconds):
        say(f"- {line}")
