"""Checks of HTTP/1.1 itself: framing that peers read differently, broken codings, bodies that break off."""

from typing import Final

from mcpsniff.checks import (
    CLIENT,
    ERROR,
    HTTP,
    INFO,
    MCPSNIFF,
    NETWORK,
    NOTE,
    RECORDER,
    SERVER,
    WARNING,
    Hit,
    Verdict,
    check,
)
from mcpsniff.checks.over_http import request_line
from mcpsniff.checks.words import listed, plain, size
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.http import ABORTED, COMPLETE, POST, UNDECODED, Http, HttpExchange
from mcpsniff.wire.frames import (
    CODING_CUT,
    CODING_DAMAGED,
    CODING_MISMATCH,
    CODING_TRAILING,
    CODING_UNKNOWN,
    DECODE_CAP,
    FRAME_FLAWS,
)
from mcpsniff.wire.http1_parts import (
    BAD_CHUNK,
    BAD_HEADER,
    BAD_LENGTH,
    BAD_START_LINE,
    BAD_TRAILER,
    BAD_TRANSFER_ENCODING,
    BAD_VERSION,
    BARE_CR,
    BARE_LF,
    CHUNK_WHITE_SPACE,
    CHUNKED_IN_HTTP10,
    CONFLICTING_FRAMING,
    CONFLICTING_LENGTH,
    CONTROL_CHARACTER,
    FOLDED_HEADER,
    HEAD_TOO_LARGE,
    HTTP2,
    HTTP_FLAWS,
    LEADING_BLANK_LINE,
    LOWER_CASE_METHOD,
    NO_REASON_PHRASE,
    REPEATED_LENGTH,
    SPACE_BEFORE_COLON,
    TUNNEL,
    UNASKED_RESPONSE,
    UPGRADED,
)
from mcpsniff.wire.http1_parts import UNDECODED as WHY_UNDECODED

BREAKING: Final = (
    BAD_CHUNK,
    BAD_LENGTH,
    BAD_TRAILER,
    BAD_TRANSFER_ENCODING,
    CHUNKED_IN_HTTP10,
    CONFLICTING_FRAMING,
    CONFLICTING_LENGTH,
    SPACE_BEFORE_COLON,
    UNASKED_RESPONSE,
)
"""Flaws with which two readers may disagree about where a message ends."""
SLOPPY: Final = (
    BAD_HEADER,
    BAD_START_LINE,
    BAD_VERSION,
    BARE_CR,
    BARE_LF,
    CHUNK_WHITE_SPACE,
    CONTROL_CHARACTER,
    FOLDED_HEADER,
    LEADING_BLANK_LINE,
    LOWER_CASE_METHOD,
    NO_REASON_PHRASE,
    REPEATED_LENGTH,
)
"""Flaws that strict readers refuse and lenient ones read alike."""
SWITCHING: Final = 101
_MAYBE_TLS: Final = (
    "Look at the server's log for that moment: a crash, a worker's time limit. It has not answered anything so far: if"
    " it expects TLS, give https://{}."
)
_CODING: Final = (CODING_CUT, CODING_DAMAGED, CODING_MISMATCH, CODING_TRAILING, CODING_UNKNOWN)


def flaws_of(http: HttpExchange, side: str) -> tuple[str, ...]:
    """The flaws of the request (``client``) or of the response (``server``)."""
    head, body = (http.request, http.asked) if side == CLIENT else (http.response, http.answered)
    return (*(() if head is None else head.flaws), *body.flaws)


def _told(http: HttpExchange, flaws: tuple[str, ...], severity: str | None = None) -> list[str | Hit]:
    """One sentence for each side that has any of ``flaws``."""
    found: list[str | Hit] = []
    for side, what in ((CLIENT, "request"), (SERVER, "response")):
        if side == SERVER and http.by is not None:
            continue
        there = [flaw for flaw in flaws_of(http, side) if flaw in flaws]
        if there:
            first = _meaning(there[0])
            more = f" (and {listed(there[1:])})" if there[1:] else ""
            found.append(Hit(f"the {what}: {first}{more}", severity, side))
    return found


def _meaning(flaw: str) -> str:
    return HTTP_FLAWS.get(flaw) or FRAME_FLAWS.get(flaw) or flaw


@check(
    "MCP549",
    "http-broken-framing",
    on=Http,
    when=BREAKING,
    severity=ERROR,
    group=HTTP,
    spec="rfc9112#section-6",
)
def http_broken_framing(event: Http, _: Conversation) -> Verdict:
    """A message breaks HTTP/1.1 in a way that lets readers disagree about where it ends.

    Contradicting lengths, chunks that cannot be read, a name with a blank before its colon: one reader takes for body
    what another takes for the next message. Strict ones close the connection; gateways have been tricked by it.

    Fix: Let the HTTP library set Content-Length or Transfer-Encoding, and do not write either by hand. mcpsniff passes
    on every byte as it was, and reads on as best it can.
    """
    return _told(event.exchange, BREAKING)


@check(
    "MCP554",
    "http-sloppy-head",
    on=Http,
    when=SLOPPY,
    severity=NOTE,
    group=HTTP,
    spec="rfc9112#section-2",
    once=True,
)
def http_sloppy_head(event: Http, _: Conversation) -> Verdict:
    """The head or the framing of a message is not written as HTTP/1.1 asks for, and can still be read.

    Lines that end with LF alone, folded headers, odd white space: lenient readers take them, strict ones answer 400 or
    close the connection. Told once per conversation.

    Fix: Let the HTTP library write heads; end lines with CR LF.
    """
    return _told(event.exchange, SLOPPY)


@check(
    "MCP550",
    "http-cut",
    on=Http,
    when=(ABORTED,),
    severity=WARNING,
    group=HTTP,
    spec="rfc9112#section-8",
    blame=SERVER,
)
def http_cut(event: Http, _: Conversation) -> Verdict:
    """The server, or what is between, ends the connection before its response is whole.

    The client sees an error in place of an answer, and does not know whether the request took effect. A stream of the
    server's own may be cut at any time, which is a note; a client that hangs up is not meant here.

    Fix: Look at the server's log for that moment: a crash, a worker's time limit, a proxy that waits no longer. A
    server that hangs up on every request without a byte may expect TLS: give ``https://``. End a stream by its last
    chunk.
    """
    http = event.exchange
    if http.ended_by != "server" or http.by is not None or http.fact("expects-tls") is not None:
        return None
    if http.fact("garbled") is not None:
        return None  # an edit has cut the request
    if http.response is None:
        text = f"the connection ended before {request_line(http)} was answered"
        is_plain = http.authority.startswith("http://") and http.fact("never-answered") is not None
        return Hit(text, fix=_MAYBE_TLS.format(http.authority.removeprefix("http://")) if is_plain else "")
    what = "the stream" if http.stream is not None else "the response"
    text = f"{what} of {request_line(http)} broke off after {size(http.answered.wire)}"
    return Hit(text, NOTE if http.stream is not None and http.stream.kind != POST else None)


@check(
    "MCP551",
    "http-coding",
    on=Http,
    when=_CODING,
    severity=WARNING,
    group=HTTP,
    spec="rfc9110#section-8.4",
)
def http_coding(event: Http, _: Conversation) -> Verdict:
    """The content coding of a body is not what its head says, is broken, or goes on after its end.

    A reader that trusts the head fails on the body or loses its end. A coding that mcpsniff does not know, and bytes
    after the end, are a note.

    Fix: Set Content-Encoding where the body is compressed, and nowhere else; flush and close the compressor.
    """
    http = event.exchange
    if event.state != COMPLETE:
        return None  # a body that was broken off is cut in its coding, too
    serious = _told(http, (CODING_CUT, CODING_DAMAGED, CODING_MISMATCH))
    return serious or _told(http, (CODING_TRAILING, CODING_UNKNOWN), NOTE)


@check(
    "MCP552",
    "http-undecoded",
    on=Http,
    when=(UNDECODED, TUNNEL),
    severity=NOTE,
    group=HTTP,
    spec="rfc9112#section-2.3",
    blame=NETWORK,
)
def http_undecoded(event: Http, _: Conversation) -> Verdict:
    """A connection carries something that is not HTTP/1.x, or not any more: it is passed on, and not decoded.

    HTTP/2 without TLS, WebSockets after an Upgrade, tunnels: messages in them are not analysed. Told once per reason
    and connection. A head of more than 256 KiB is not read either.

    Fix: Let client and server speak HTTP/1.1 while they are observed.
    """
    if event.why in (UPGRADED, TUNNEL) or event.exchange.fact("expects-tls") is not None:
        return None  # told with the exchange that led to it
    why = event.why or (UPGRADED if event.exchange.status == SWITCHING else TUNNEL)
    reason = WHY_UNDECODED.get(why, plain(why, 40))
    text = f"not decoded from here on: {reason}"
    return Hit(text, INFO if why in (HTTP2, UPGRADED, TUNNEL) else None, MCPSNIFF if why == HEAD_TOO_LARGE else None)


@check(
    "MCP906",
    "body-decode-capped",
    on=Http,
    when=(DECODE_CAP,),
    severity=NOTE,
    group=RECORDER,
    spec="mcpsniff",
    blame=MCPSNIFF,
)
def body_decode_capped(event: Http, _: Conversation) -> Verdict:
    """Only the beginning of a compressed body was decoded; the wire and the capture have all of it.

    A few kilobytes can expand to gigabytes, so mcpsniff stops decoding at a limit (16 MiB; of an event stream when it
    expands too far). Checks that need the rest stay silent.

    Fix: Nothing needs to be done here. A peer that reads such a body should have a limit, too.
    """
    http = event.exchange
    side, body = ("request", http.asked) if DECODE_CAP in http.asked.flaws else ("response", http.answered)
    return f"only {size(body.size)} of the {side}'s body were decoded from {size(body.wire)} on the wire"
