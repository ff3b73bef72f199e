"""What is said of an upstream that could not be reached over TLS: to the client in a 502 of ours, and on stderr."""

import os
import re
from typing import Final

from mcpsniff.proxy.address import Upstream
from mcpsniff.proxy.answers import Answer, unreachable
from mcpsniff.proxy.ends import spelled
from mcpsniff.proxy.mitm.upstream import Refusal

_CALL: Final = re.compile(r"\[Errno (\d+)\] Connect call failed \('([^']+)', (\d+)")
_ERRNO: Final = re.compile(r"\[Errno -?\d+\] ")
_SELF_SIGNED: Final = "self-signed certificate"
_OTHER_NAME: Final = ("hostname mismatch", "IP address mismatch")
_EXPIRED: Final = "certificate has expired"


def not_connected(upstream: Upstream, told: str) -> Answer:
    """Return the answer for an upstream that no address of accepts a connection; ``told`` is what asyncio says."""
    tried = [f"{spelled((host, port))}: {os.strerror(int(number))}" for number, host, port in _CALL.findall(told)]
    return unreachable(upstream, tried or [f"{upstream.host}: {_ERRNO.sub('', told)}"])


def not_trusted(upstream: Upstream, refusal: Refusal) -> Answer:
    """Return the answer for an upstream whose certificate was refused."""
    return Answer(
        502,
        f"the upstream {upstream.origin} is not trusted: {refusal}. {advice(refusal)}",
        upstream=upstream.origin,
        certificate={"subject": refusal.subject, "issuer": refusal.issuer, "why": refusal.why},
    )


def no_tls(upstream: Upstream, told: str) -> Answer:
    """Return the answer for an upstream with which TLS could not be spoken, for another reason."""
    return Answer(502, f"TLS with the upstream {upstream.origin} failed: {told}", upstream=upstream.origin)


def advice(refusal: Refusal) -> str:
    """Return what to pass where a certificate was refused."""
    if any(refusal.why.startswith(why) for why in _OTHER_NAME):
        return "Use a name that is in the certificate, or trust it nevertheless with --insecure."
    if refusal.why == _EXPIRED:
        return "It has to be renewed; --insecure trusts it nevertheless."
    what = "this certificate" if refusal.why == _SELF_SIGNED else f"that of its CA ({refusal.issuer})"
    return f"Pass --upstream-ca FILE with {what} to trust it, or --insecure to trust any."
