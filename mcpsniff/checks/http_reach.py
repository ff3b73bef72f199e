"""Checks of whether MCP is there at all: a wrong path, and a server that does not run."""

import re
from typing import Final

from mcpsniff.capture.records import COMMENT
from mcpsniff.checks import CLIENT, ERROR, HTTP, NETWORK, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import STREAMABLE, request_line
from mcpsniff.checks.words import plain, said_by_us
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.events import Note
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.reach import NotHere

METHOD_NOT_ALLOWED: Final = 405
_TRIED: Final = re.compile(r"cannot reach the upstream (\S+) \((.*)\)\.")
_TLS: Final = re.compile(
    r"(?:the upstream (?P<place>\S+) is not trusted: (?P<which>[^(]*) \((?P<names>.*)\): "
    r"|TLS with the upstream (?P<other>\S+) failed: )(?P<why>.*)\. (?P<fix>(?:Check|It|Let|Pass|Renew|Use) .*)",
    re.DOTALL,
)
"""What `mcpsniff.proxy.mitm.words` says."""
_EXPECTS: Final = re.compile(r"the upstream (\S+) expects TLS: .*?\. (Use .*)", re.DOTALL)
_DISTRUST: Final = re.compile(r"a client refused mcpsniff's certificate for (.+?)(, it seems)? \((.*)\)", re.DOTALL)
"""What `mcpsniff.proxy.mitm.forward` notes."""
_NO_TUNNEL: Final = re.compile(
    r"a client that asked for a tunnel was answered \d+: cannot reach the upstream (\S+) \((.*)\)\.", re.DOTALL
)
"""What `mcpsniff.proxy.mitm.forward_side` notes."""
_TOLD_LIMIT: Final = 1_000
"""Servers without a tunnel that are remembered as told."""
_REFUSED: Final = "connection refused"
_UNKNOWN: Final = ("name or service not known", "nodename nor servname", "no address associated", "name resolution")
"""How systems say that a name leads nowhere."""
_SILENT: Final = ("timed out", "no answer in", "no route to host", "network is unreachable", "host is down")


@check(
    "MCP555",
    "http-not-here",
    on=NotHere,
    severity=WARNING,
    group=HTTP,
    spec=STREAMABLE,
    blame=CLIENT,
)
def http_not_here(moment: NotHere, _: Conversation) -> Verdict:
    """Messages are POSTed to a path where no MCP is spoken, and the client does not look elsewhere.

    404 without a JSON-RPC error says that the server knows no such path, 405 that it takes no POST there. Clients that
    know both transports then ask for a stream by GET, which is no fault; here nothing like that followed within 3 s,
    or was refused too, and nobody has spoken MCP at this path. Told once for each path.

    Fix: Check the path in the URL that the client was given; usual ones are ``/mcp`` (Streamable HTTP) and ``/sse``
    (HTTP+SSE, for a client that is set to this transport). mcpsniff passes every path on as it is.
    """
    http = moment.exchange
    said = f"{request_line(http)} was answered {http.status}, and no MCP is spoken there"
    if http.status == METHOD_NOT_ALLOWED:
        return f"{said}: check the path (usual ones are /mcp and /sse), and whether the server is one of HTTP+SSE"
    return f"{said}: check the path, usual ones are /mcp and /sse"


@check(
    "MCP556",
    "upstream-unreachable",
    on=Http,
    when=("unreachable",),
    severity=ERROR,
    group=HTTP,
    spec="rfc9110#section-15.6.3",
    blame=NETWORK,
)
def upstream_unreachable(event: Http, _: Conversation) -> Verdict:
    """The upstream accepts no connection, or TLS with it fails, so that mcpsniff answers 502 in its place.

    The server does not run, has ended, or listens at another address or port; ``localhost`` may be 127.0.0.1 for one
    program and ::1 for another. A certificate is refused that nobody known has issued, that is for other names, or that
    has expired. TLS may also fail because the server speaks plain HTTP, or wants a certificate of its client. Told
    once, until the upstream has answered again.

    Fix: Start the server, and check host and port of the upstream that mcpsniff was given. ``--upstream-ca FILE`` lets
    it trust a certificate of your own, ``--insecure`` any.
    """
    said = said_by_us(event.exchange.answered.beginning)
    found = _TLS.search(said)
    if found is not None:
        fix = plain(found["fix"].strip(), 200)
        if found["place"] is None:
            return Hit(f"TLS with {plain(found['other'], 60)} failed: {plain(found['why'], 150)}", fix=fix)
        whose = "the certificate" if found["which"] == "its certificate" else plain(found["which"], 40)
        whose = whose.removesuffix(" its chain").removesuffix(" of")
        of = "of" if found["which"] == "its certificate" else "in the chain of"
        why, names = plain(found["why"], 150), plain(found["names"], 150)
        return Hit(f"{whose} {of} {plain(found['place'], 60)} ({names}) is not trusted: {why}", fix=fix)
    found = _EXPECTS.search(said)
    if found is not None:
        return Hit(f"{plain(found[1], 60)} expects TLS, and is spoken to without", fix=plain(found[2], 200))
    found = _TRIED.search(said)
    if found is None:
        return f"no connection could be made to {plain(event.exchange.authority, 60)}"
    return _unreached(found[1], found[2])


@check(
    "MCP560",
    "tunnel-unreachable",
    on=Note,
    severity=WARNING,
    group=HTTP,
    spec="rfc9110#section-9.3.6",
    blame=NETWORK,
)
def tunnel_unreachable(note: Note, conversation: Conversation) -> Verdict:
    """A client asked for a tunnel, as one does for ``https://``, and the server accepts no connection.

    The server does not run, has ended, or listens at another address or port; or its name leads nowhere. mcpsniff
    answers 502 in its place, so the client never says what it had to say, and whether that was MCP is unknown. Told
    once for each server.

    Fix: Start the server, and check host and port in the URL that the client was given.
    """
    if note.kind != COMMENT or note.fields.get("by") != "mcpsniff":
        return None
    found = _NO_TUNNEL.match(str(note.fields.get("text")))
    if found is None:
        return None
    told = f"MCP560 {found[1]}"
    if told in conversation.told:
        return None
    if len(conversation.told) < _TOLD_LIMIT:
        conversation.told.add(told)
    return _unreached(found[1], found[2])


@check(
    "MCP559",
    "upstream-expects-tls",
    on=Http,
    when=("expects-tls",),
    severity=ERROR,
    group=HTTP,
    spec="rfc9110#section-4.2.2",
    blame=CLIENT,
)
def upstream_expects_tls(event: Http, _: Conversation) -> Verdict:
    """The server expects TLS, and is spoken to in plain HTTP: its URL has to begin with ``https://``.

    It answers with an alert of TLS, which no client of HTTP can read, or with a 400 that says so. Other servers of TLS
    hang up without a word.

    Fix: Give ``https://`` in the place of ``http://``, to mcpsniff or to the client.
    """
    http = event.exchange
    if http.request is None:
        return None  # what is no HTTP on the same connection
    how = f"a {http.status} that says so" if http.response is not None else "an alert of TLS"
    place = plain(http.authority.removeprefix("http://"), 60)
    fix = f"Use https://{place}{plain(http.path, 60)} for it." if http.authority.startswith("http://") else ""
    return Hit(f"{place} expects TLS, and answered {request_line(http)} with {how}", fix=fix)


def _unreached(upstream: str, why: str) -> Hit:
    """Return what is said of an upstream that accepts no connection; ``why`` are addresses with reasons."""
    tried = [one.rpartition(": ") for one in why.split("; ")]
    if all(reason.lower() == _REFUSED for _place, _colon, reason in tried):
        places = " or ".join(plain(place, 60) for place, _colon, _reason in tried[:3])
        return Hit(f"nothing accepts connections at {places} (connection refused)")
    return Hit(f"no connection could be made to {plain(upstream, 60)}: {plain(why, 150)}", fix=_way_out(why.lower()))


def _way_out(tried: str) -> str:
    """Return what to do about an upstream that is not reached for this reason; empty: what is said of all."""
    if any(words in tried for words in _UNKNOWN):
        return "Check how the host is spelled, and that this machine can look its name up."
    if any(words in tried for words in _SILENT):
        return "Check host and port, and whether a firewall or VPN stands in between."
    return ""


@check(
    "MCP558",
    "tls-refused-by-client",
    on=Note,
    severity=WARNING,
    group=HTTP,
    spec="rfc8446#section-6.2",
    blame=CLIENT,
)
def tls_refused_by_client(note: Note, _: Conversation) -> Verdict:
    """The client refused the certificate that mcpsniff showed it in the server's place, so nothing was said.

    A proxy that looks into TLS signs certificates with an authority of its own, which the client does not trust: it has
    a store of its own (Node, Python, Java, Firefox), was started before it was told, or pins the server's certificate.
    Clients say so by an alert. Node closes the connection without a word, within the handshake or after it, and so does
    Python's asyncio: that is told as likely, at the end, unless somebody has spoken to this server by then. What the
    client would have said there is unknown. Told once for each server and way of refusing.

    Fix: ``mcpsniff http https://HOST`` needs no trust: give the client the address that it prints in the place of the
    server's URL. Or let the client trust mcpsniff: ``mcpsniff ca`` tells how, for each kind of client, also where what
    ``mcpsniff run`` sets is not heeded. One that pins certificates cannot be made to.
    """
    if note.kind != COMMENT or note.fields.get("by") != "mcpsniff":
        return None
    found = _DISTRUST.fullmatch(str(note.fields.get("text")))
    if found is None:
        return None
    host, how = plain(found[1], 80), plain(found[3], 80)
    if found[2]:
        return f"the client probably does not trust mcpsniff's authority: it {how} for {host}"
    return f"the client does not trust mcpsniff's authority, and refused the certificate for {host} ({how})"
