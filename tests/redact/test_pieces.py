"""A text without its escapes: what it says, and where each byte of it came from."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.export.redact.pieces import FORM, HTML, JOINED_LINES, JSON, PERCENT, RUN, Coding, Pieces

UNITS = st.sampled_from([
    *(rb"\\", rb"\n", rb"\"", rb"\u0041", rb"\U0041", rb"\ud83d\ude00", rb"\ud83d", rb"\x41", rb"\q", b"\\", b"\\\n"),
    *(b"%41", b"%", b"+", b"&amp;", b"&zzz", b"&#x4e2d;", b"\r\ndata:", b"a", b"\xff", "ä".encode()),
])  # fmt: skip
TEXTS = st.lists(st.tuples(UNITS, st.sampled_from([1, 1, 1, 2, RUN + 6])), max_size=8).map(
    lambda units: b"".join(unit * times for unit, times in units)
)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from([JSON, PERCENT, FORM, HTML, JOINED_LINES]))
def test_one_stretch_after_the_other_is_the_same(source: bytes, coding: Coding) -> None:
    pieces = Pieces(coding, source)
    assert pieces.text == coding.stretch.sub(coding.means, source)
    text, at = b"", 0
    for found in [*coding.stretch.finditer(source), None]:
        stop = len(source) if found is None else found.start()
        for offset in range(stop - at):
            assert pieces.place(len(text) + offset) == at + offset or found is None
            assert pieces.place(len(text) + offset + 1, is_stop=True) == at + offset + 1
        text += source[at:stop]
        if found is None:
            break
        means = coding.means(found)
        if means != found[0] and means:
            assert pieces.place(len(text)) == found.start()
            assert pieces.place(len(text) + len(means), is_stop=True) == found.end()
            assert pieces.changes(len(text), len(text) + len(means))
        text, at = text + means, found.end()
    assert text == pieces.text
