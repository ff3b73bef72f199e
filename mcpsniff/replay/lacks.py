"""What a capture lacks for a replay: said before it begins, so that nobody looks for the fault elsewhere."""

from typing import Final

from mcpsniff.capture.records import GAP
from mcpsniff.protocol.events import Note
from mcpsniff.protocol.http import LOST, UNDECODED
from mcpsniff.replay.script import Lack, Script, Talk
from mcpsniff.transcript.session import Source
from mcpsniff.transcript.units import count, moment
from mcpsniff.wire.frames import DECODE_CAP, TRUNCATED

MOST_TOLD: Final = 20
"""Lacks of one kind that are told one by one; the others are counted."""


def find_lacks(script: Script, source: Source, notes: list[Note]) -> None:
    """Fill ``script.lacks``; to be asked when the source was read to its end."""
    found = script.lacks
    if source.joined_late:
        found.append(Lack("the first parts of the capture are gone: what was said in them cannot be replayed"))
    for damage in source.damage[:MOST_TOLD]:
        found.append(Lack(f"the capture is damaged in line {damage.line}: {damage.text}"))
    found.extend(_gaps(notes))
    if not any(scene.is_request for talk in script.talks for scene in talk.scenes):
        found.append(Lack("there is no request of a client in it"))
        return
    for talk in script.talks:
        found.extend(_of_talk(talk))
    torn = [web for web in script.webs if web.state in (LOST, UNDECODED)]
    for web in torn[:MOST_TOLD]:
        what = f"{web.http.method} {web.http.path}" if web.http.method else "a response, its request was not seen"
        found.append(Lack(f"HTTP exchange {web.number} ({what}) is not whole"))


def _gaps(notes: list[Note]) -> list[Lack]:
    gaps = [note for note in notes if note.kind == GAP]
    found = []
    for note in gaps[:MOST_TOLD]:
        size, why = note.fields.get("bytes"), note.fields.get("why")
        what = count(size, "byte") if isinstance(size, int) and size else "bytes"
        where = f" of {note.where}" if note.where else ""
        found.append(Lack(f"{what}{where} are missing at {moment(note.t)} ({why})", note.n))
    if len(gaps) > MOST_TOLD:
        found.append(Lack(f"and bytes are missing at {count(len(gaps) - MOST_TOLD, 'more place')}"))
    return found


def _of_talk(talk: Talk) -> list[Lack]:
    found: list[Lack] = []
    if talk.messages and not talk.has_handshake and not all(scene.is_refused for scene in talk.scenes):
        first = talk.messages[0]
        found.append(Lack(f"the conversation that begins with #{first.n} has no answered initialize", first.n))
    cut = [scene for scene in talk.requests() if scene.is_cut]
    for scene in cut[:MOST_TOLD]:
        assert scene.cue is not None
        found.append(Lack(f"the answer to #{scene.cue.n} {scene.method} is not in the capture", scene.cue.n))
    if len(cut) > MOST_TOLD:
        found.append(Lack(f"nor are the answers to {count(len(cut) - MOST_TOLD, 'more request')}"))
    kept = [message for message in talk.messages if TRUNCATED in message.flaws or DECODE_CAP in message.flaws]
    found.extend(Lack(f"#{message.n} was kept in part only", message.n) for message in kept[:MOST_TOLD])
    return found
