"""Findings about mcpsniff and its captures: what they lack must not be mistaken for a fault of a peer."""

from typing import Final

from mcpsniff.capture.parser import DAMAGE, Damage
from mcpsniff.capture.records import GAP
from mcpsniff.checks import MCPSNIFF, NOTE, RECORDER, WARNING, Finding, Hit, Verdict, check
from mcpsniff.checks.words import doer, listed, plain, size
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.edits import ADDED, ANSWERED_BY, CHANGED, Edit, spoilt
from mcpsniff.protocol.events import Note
from mcpsniff.protocol.jsonrpc import BATCH_CUT, BATCH_LIMIT
from mcpsniff.protocol.message import INVALID, Message
from mcpsniff.wire.frames import TRUNCATED, Frame

SOURCE: Final = "source"
WHY_MISSING: Final = {
    "queue": "the queue to the disk was full",
    "disk": "the disk did not take it",
    "limit": "the capture had reached its limit",
    "secret": "it holds secrets that cannot be masked one by one",
    "internal": "a bug of mcpsniff",
    SOURCE: "the imported file does not have it",
}
"""In words, for each ``why`` of a gap that mcpsniff itself writes."""
_FIXES: Final = {
    "disk": "Make room on the disk, or record to another one (--dir).",
    "limit": "Raise the limit, or remove what is not needed any more (mcpsniff prune).",
    "secret": "Nothing needs to be done: it is left out on purpose (--keep-secrets records it).",
    "internal": "Report it to the mcpsniff project, with what mcpsniff said on stderr when it happened.",
    SOURCE: "Have bodies kept that stream: mitmproxy does with --set store_streamed_bodies=true, or record with"
    " mcp_capture (mcpsniff addons).",
    "another addon let it stream": "Run mitmproxy without what lets these bodies stream: stream_large_bodies, or an"
    " addon that sets flow.response.stream.",
}
"""What to do; the docstring has that for ``queue``."""
_UNKNOWN: Final = "Ask what wrote the capture: the reason is not one of mcpsniff's own."


@check(
    "MCP901",
    "check-failed",
    on=Exception,
    severity=WARNING,
    group=RECORDER,
    spec="mcpsniff",
    blame=MCPSNIFF,
)
def check_failed(error: Exception, _: Conversation) -> Verdict:
    """A check of mcpsniff raised an exception; it is off for the rest of this run, the others go on.

    Nothing is wrong with the traffic because of it, but faults that this check would have found are not reported.

    Fix: Report it to the mcpsniff project, with the text of the finding and, if possible, the message it hangs on.
    """
    return f"{type(error).__name__}: {error}"


@check(
    "MCP902",
    "capture-gap",
    on=Note,
    severity=WARNING,
    group=RECORDER,
    spec="mcpsniff",
    blame=MCPSNIFF,
)
def capture_gap(note: Note, _: Conversation) -> Verdict:
    """Bytes that passed are not in the capture: the recorder lost them or left them out.

    The peers got them; only the record has a hole. Messages around it may look cut or unanswered, and checks that need
    the missing part stay silent.

    Fix: Record to a faster disk (--dir), or take load off this one. Other losses have other remedies, which the finding
    names: room on the disk, a higher limit, another program that is told to keep bodies (mitmproxy with ``--set
    store_streamed_bodies=true``, a browser whose HAR file is saved with content). A gap for the sake of a secret is on
    purpose.
    """
    if note.kind != GAP or note.fields.get("why") == DAMAGE:
        return None
    count, why = note.fields.get("bytes"), str(note.fields.get("why"))
    amount = size(count) if isinstance(count, int) and count > 0 else "an unknown number of bytes"
    what = f"{amount} of {note.where}" if note.where else amount
    if why == SOURCE and note.where:
        what = note.where  # all of it
    reason = WHY_MISSING.get(why, plain(why, 40))
    fix = "" if why == "queue" else _FIXES.get(why, _UNKNOWN)
    return Hit(f"not in the capture: {what}; {reason}", NOTE if why == "secret" else WARNING, fix=fix)


@check(
    "MCP903",
    "capture-damaged",
    on=Damage,
    severity=WARNING,
    group=RECORDER,
    spec="mcpsniff",
    blame=MCPSNIFF,
)
def capture_damaged(damage: Damage, _: Conversation) -> Verdict:
    """A part of the capture file cannot be read; what comes before and after it is shown.

    The file was cut (a full disk, a killed recorder, a copy that broke off) or changed. Messages near that place may
    look cut or unanswered, and checks that need the missing part stay silent.

    Fix: A torn last line needs no care, it is where the recording was stopped. For other damage copy the capture again
    from where it was recorded.
    """
    return str(damage)


def damage_finding(at: int, k: int, t: int, text: str) -> Finding:
    """The finding MCP903 for whoever reads a capture: ``text`` says what cannot be read, and where.

    ``at`` is the event before the damage (0: none), ``k`` the finding's place among those there, ``t`` the time in
    microseconds up to which the capture was read.
    """
    return Finding("MCP903", "capture-damaged", WARNING, RECORDER, MCPSNIFF, text, at, k, t)


@check(
    "MCP904",
    "frame-truncated",
    on=Frame,
    when=(TRUNCATED,),
    severity=NOTE,
    group=RECORDER,
    spec="mcpsniff",
    blame=MCPSNIFF,
    in_part=True,
)
def frame_truncated(frame: Frame, _: Conversation) -> Verdict:
    """Only the beginning of a very large message was analysed; the wire and the capture have all of it.

    A message is analysed up to a limit (16 MiB), so that no traffic can exhaust the memory. Checks that need the rest
    of this message stay silent.

    Fix: Nothing needs to be done. The whole message is in the capture.
    """
    return f"only the first {size(len(frame.payload))} of {size(frame.size)} were analysed"


@check(
    "MCP905",
    "batch-cut",
    on=Message,
    when=(BATCH_CUT,),
    severity=NOTE,
    group=RECORDER,
    spec="mcpsniff",
    blame=MCPSNIFF,
)
def batch_cut(message: Message, _: Conversation) -> Verdict:
    """Only the first elements of a very long batch were analysed; the wire and the capture have all of them.

    One line can hold millions of elements, each of which would be a message of its own. What the others said is not
    known to this analysis, so nobody is blamed for what may have been among them.

    Fix: Nothing needs to be done. The whole batch is in the capture.
    """
    return f"only the first {BATCH_LIMIT:,} of {len(message.body):,} elements were analysed"


@check(
    "MCP907",
    "edit-invalid",
    on=Edit,
    when=(CHANGED, ADDED, ANSWERED_BY),
    severity=NOTE,
    group=RECORDER,
    spec="mcpsniff",
    blame=MCPSNIFF,
)
def edit_invalid(edit: Edit, _: Conversation) -> Verdict:
    """An addon, a rule or somebody at a break point let something leave that is no valid JSON-RPC.

    It left as it was wanted: that is how one finds out what a peer does with it. What the receiver makes of it, and
    what it says to that, is not held against it. A fault (--fault) that was asked for is no finding: its row says
    what left.

    Fix: Nothing, if it was meant so. Otherwise let the addon return a message with jsonrpc, and with method, or with
    id and result or error.
    """
    if edit.is_fault:
        return None
    for message in edit.left:
        if wrong := spoilt(message, edit.of):
            what = "a message" if message.kind == INVALID else f"valid JSON-RPC: {listed(list(wrong))}"
            return f"what left by {doer(edit.by, edit.why)} is not {what}"
    if edit.is_no_utf8:
        return f"what left by {doer(edit.by, edit.why)} is not UTF-8"
    return None
