"""What is said of a server that is not reached, and what `mcpsniff show` makes of it: the fault and the fix."""

import errno
import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcpsniff.checks import Hit
from mcpsniff.checks.http_reach import upstream_unreachable
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.proxy.address import Upstream
from mcpsniff.proxy.answers import Answer
from mcpsniff.proxy.mitm.upstream import Refusal
from mcpsniff.proxy.mitm.words import no_tls, not_connected, not_trusted, wants_certificate
from mcpsniff.wire.http1 import Http1Splitter
from mcpsniff.wire.http1_parts import Head

UPSTREAM = Upstream(None, "mcp.test", 8443, "/mcp", "https")
CA = "Acme Inc. Root"
JSON = b"POST / HTTP/1.1\r\nHost: h\r\nAccept: application/json\r\n\r\n"
RPC = JSON.replace(b"application/json", b"application/json, text/event-stream")


def refusal(why: str, depth: int = 0, issuer: str = CA) -> Answer:
    return not_trusted(UPSTREAM, Refusal(why, depth, "mcp.test", issuer, "a.test, b.test"))


NAMES = f"(mcp.test, issued by {CA}, for a.test, b.test)"
CERTIFICATE = f"the certificate of https://mcp.test:8443 {NAMES} is not trusted"
CHAIN = f"certificate 1 in the chain of https://mcp.test:8443 (mcp.test, issued by {CA}) is not trusted"
ALONE = "it is signed by itself, not by a CA that mcpsniff knows (self-signed certificate)"
PASS = (
    f"Pass --upstream-ca FILE, a file that holds the certificate of that CA ({CA}),"
    " or --insecure to trust any certificate."
)
FAILED = "TLS with https://mcp.test:8443 failed"
UNREACHED = "no connection could be made to https://mcp.test:8443"


@pytest.mark.parametrize(
    ("answer", "told", "fix"),
    [
        (
            refusal("unable to get local issuer certificate"),
            f"{CERTIFICATE}: no CA that mcpsniff knows has issued it (unable to get local issuer certificate)",
            PASS,
        ),
        (
            refusal("self-signed certificate in certificate chain", 1),
            f"{CHAIN}: it is that of a CA which mcpsniff does not know (self-signed certificate in certificate chain)",
            PASS,
        ),
        (
            refusal("self-signed certificate", issuer="mcp.test"),
            f"{CERTIFICATE.replace(CA, 'mcp.test')}: {ALONE}",
            "Pass --upstream-ca FILE, a file that holds this certificate, or --insecure to trust any certificate.",
        ),
        (
            refusal("certificate has expired"),
            f"{CERTIFICATE}: certificate has expired",
            "Renew it, or trust it nevertheless with --insecure.",
        ),
        (
            refusal("hostname mismatch"),
            f"{CERTIFICATE}: it is for other names (hostname mismatch)",
            "Use a name that is in the certificate, or trust it nevertheless with --insecure.",
        ),
        (
            no_tls(UPSTREAM, "The remote server does not speak TLS.", "/mcp"),
            f"{FAILED}: it answers in plain text, as servers of http:// do",
            "Use http://mcp.test:8443/mcp for it.",
        ),
        (
            no_tls(UPSTREAM, "OpenSSL Error([('SSL routines', '', 'unsupported protocol')])", "/mcp"),
            f"{FAILED}: there is no version of TLS that it and mcpsniff (1.2 and 1.3) have in common",
            "Let the server speak TLS 1.2 or newer.",
        ),
        (
            no_tls(UPSTREAM, "connection closed", "/mcp"),
            f"{FAILED}: it hangs up during the handshake",
            "Check whether it speaks TLS at this port, or use http://mcp.test:8443/mcp.",
        ),
        (
            no_tls(UPSTREAM, "OpenSSL Error([('SSL routines', '', 'ssl/tls alert handshake failure')])", ""),
            f"{FAILED}: ssl/tls alert handshake failure",
            "Check the server's TLS settings and its log.",
        ),
        (
            wants_certificate(UPSTREAM),
            f"{FAILED}: it wants a certificate of its client, and mcpsniff has none",
            "Let the server do without it for mcpsniff, or put a proxy that has one between the two.",
        ),
        (
            not_connected(UPSTREAM, f"[Errno {errno.ECONNREFUSED}] Connect call failed ('10.0.0.1', 8443)"),
            "nothing accepts connections at 10.0.0.1:8443 (connection refused)",
            "",
        ),
        (
            not_connected(UPSTREAM, "[Errno -2] Name or service not known"),
            f"{UNREACHED}: mcp.test: Name or service not known",
            "Check how the host is spelled, and that this machine can look its name up.",
        ),
        (
            not_connected(UPSTREAM, f"[Errno {errno.ETIMEDOUT}] Connect call failed ('10.0.0.1', 8443)"),
            f"{UNREACHED}: 10.0.0.1:8443: {os.strerror(errno.ETIMEDOUT)}",
            "Check host and port, and whether a firewall or VPN stands in between.",
        ),
    ],
)
@pytest.mark.parametrize("request_", [b"", JSON, RPC], ids=["text", "json", "json-rpc"])
def test_fault_and_fix(answer: Answer, told: str, fix: str, request_: bytes) -> None:
    (head,) = [part for part in Http1Splitter(0, "c2s").feed(0, request_) if isinstance(part, Head)] or [None]
    body = answer.to(head).partition(b"\r\n\r\n")[2]
    assert body.startswith(
        b'{"jsonrpc": "2.0", "id": null, ' if request_ == RPC else b"{" if request_ else b"mcpsniff: "
    )
    exchange = SimpleNamespace(answered=SimpleNamespace(beginning=body), authority="mcp.test:8443")
    found = upstream_unreachable(cast(Any, SimpleNamespace(exchange=exchange)), Conversation(1))
    hit = found if isinstance(found, Hit) else Hit(str(found))
    assert (hit.text, hit.fix) == (told, fix)
