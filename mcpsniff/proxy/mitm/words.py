"""What is said of an upstream that could not be reached over TLS: to the client in a 502 of ours, and on stderr.

Each answer ends with one sentence of advice, which `mcpsniff show` gives as the fix of MCP556.
"""

import os
import re
from collections.abc import Iterable
from typing import Final

from mitmproxy.http import HTTPFlow

from mcpsniff.proxy.address import Upstream, authority
from mcpsniff.proxy.answers import Answer, unreachable
from mcpsniff.proxy.ends import spelled
from mcpsniff.proxy.mitm.upstream import Refusal

_CALL: Final = re.compile(r"\[Errno (\d+)\] Connect call failed \('([^']+)', (\d+)")
_ERRNO: Final = re.compile(r"\[Errno -?\d+\] ")
_SELF_SIGNED: Final = "self-signed certificate"
_OTHER_NAME: Final = ("hostname mismatch", "IP address mismatch")
_EXPIRED: Final = "certificate has expired"
_PLAINLY: Final = {
    "unable to get local issuer certificate": "no CA that mcpsniff knows has issued it",
    "unable to get issuer certificate": "no CA that mcpsniff knows has issued it",
    "self-signed certificate in certificate chain": "it is that of a CA which mcpsniff does not know",
    "unable to verify the first certificate": "no CA that mcpsniff knows has issued it, and the server names none",
    "self-signed certificate": "it is signed by itself, not by a CA that mcpsniff knows",
    "hostname mismatch": "it is for other names",
    "IP address mismatch": "it is for other addresses",
}
"""What OpenSSL's reasons mean; the others are plain."""
_PLAIN: Final = "does not speak TLS"
_VERSION: Final = ("cannot agree on a TLS version", "unsupported protocol", "alert protocol version")
CLOSED: Final = "connection closed"
_ALERT: Final = r"unexpected server response: b'\x15\x03\x0"
"""How mitmproxy quotes an alert of TLS (RFC 8446, 5.1)."""
_QUOTE: Final = re.compile(r":? *\[?b?['\"]")
"""What stands before bytes of a head that mitmproxy quotes."""
_REASON: Final = re.compile(r"OpenSSL Error\(.*'([^']+)'\)\]\)", re.DOTALL)
"""The last of OpenSSL's reasons, as mitmproxy quotes them."""


def sent_alert(flow: HTTPFlow) -> bool:
    """True if an exchange has failed since a server that was spoken to in plain HTTP has sent an alert of TLS."""
    return not flow.server_conn.tls and flow.error is not None and flow.error.msg.startswith(_ALERT)


def flaw(told: str, lines: Iterable[bytes] = ()) -> str:
    """Return what mitmproxy says is wrong with a head, without what it quotes of it: that may be a secret.

    In its place it is said which of ``lines`` it is, if one of them is quoted whole.
    """
    place = next((f", line {n} of its head" for n, line in enumerate(lines, 1) if told.endswith(f": {line!r}")), "")
    return f"{_QUOTE.split(told, maxsplit=1)[0]}{place}"


def not_connected(upstream: Upstream, told: str) -> Answer:
    """Return the answer for an upstream that no address of accepts a connection; ``told`` is what asyncio says."""
    tried = [f"{spelled((host, port))}: {os.strerror(int(number))}" for number, host, port in _CALL.findall(told)]
    return unreachable(upstream, tried or [f"{upstream.host}: {_ERRNO.sub('', told)}"])


def not_trusted(upstream: Upstream, refusal: Refusal) -> Answer:
    """Return the answer for an upstream whose certificate was refused."""
    return Answer(
        502,
        f"the upstream {upstream.origin} is not trusted: {refusal.which}: {plainly(refusal.why)}. {advice(refusal)}",
        upstream=upstream.origin,
        certificate={"subject": refusal.subject, "issuer": refusal.issuer, "why": refusal.why},
    )


def no_tls(upstream: Upstream, told: str, path: str) -> Answer:
    """Return the answer for an upstream with which TLS could not be spoken; ``path`` is what was asked for there."""
    plain = f"http://{authority(upstream.host, upstream.port)}{path}"
    if _PLAIN in told:
        why, what = "it answers in plain text, as servers of http:// do", f"Use {plain} for it."
    elif any(word in told for word in _VERSION):
        why = "there is no version of TLS that it and mcpsniff (1.2 and 1.3) have in common"
        what = "Let the server speak TLS 1.2 or newer."
    elif told == CLOSED:
        why, what = "it hangs up during the handshake", f"Check whether it speaks TLS at this port, or use {plain}."
    else:
        reason = _REASON.search(told)
        why, what = reason[1] if reason else told, "Check the server's TLS settings and its log."
    return Answer(502, f"TLS with the upstream {upstream.origin} failed: {why}. {what}", upstream=upstream.origin)


def expects_tls(upstream: Upstream, path: str) -> Answer:
    """Return the answer for an upstream that was spoken to in plain HTTP, and says that it expects TLS."""
    place = f"https://{authority(upstream.host, upstream.port, 443)}{path}"
    return Answer(
        502,
        f"the upstream {upstream.origin} expects TLS: it does not take plain HTTP. Use {place} for it.",
        upstream=upstream.origin,
    )


def wants_certificate(upstream: Upstream) -> Answer:
    """Return the answer for an upstream that lets in only who shows a certificate, which we cannot."""
    return Answer(
        502,
        f"TLS with the upstream {upstream.origin} failed: it wants a certificate of its client, and mcpsniff has none."
        " Let the server do without it for mcpsniff, or put a proxy that has one between the two.",
        upstream=upstream.origin,
    )


def advice(refusal: Refusal) -> str:
    """Return what to pass where a certificate was refused."""
    if any(refusal.why.startswith(why) for why in _OTHER_NAME):
        return "Use a name that is in the certificate, or trust it nevertheless with --insecure."
    if refusal.why == _EXPIRED:
        return "Renew it, or trust it nevertheless with --insecure."
    what = "this certificate" if refusal.why == _SELF_SIGNED else f"the certificate of that CA ({refusal.issuer})"
    return f"Pass --upstream-ca FILE, a file that holds {what}, or --insecure to trust any certificate."


def plainly(why: str) -> str:
    """Return what OpenSSL's reason means, followed by its own words."""
    return f"{_PLAINLY[why]} ({why})" if why in _PLAINLY else why
