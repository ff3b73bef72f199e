"""Rows of edits on the page."""

from tests.edited import Session
from tests.html.conftest import Opened

WHY = "dropped by hand at --break tool:delete_file kind:request, since somebody looked at it and found it to be wrong"


def test_a_long_reason_leaves_room_for_the_link_and_the_name_of_the_tool(opened: Opened) -> None:
    made = Session().ask(1, name="delete_file").change(None, by="break", why=WHY).end()
    made.ask(2, name="delete_file").hold(2_000_000, by="break", why=WHY).answer(2)
    page = opened(made.records)
    page.size(1300, 900)
    edges = page.js(
        "[...document.querySelectorAll('li.edit')].map((row) => ['span', 'a'].map((name) => {"
        " const box = row.querySelector(name).getBoundingClientRect(); return [box.left, box.right]; }))"
    )
    assert len(edges) == 2
    assert all(reason[1] <= link[0] for reason, link in edges)
    heights = page.js(
        "[...document.querySelectorAll('#messages em')].map((one) => one.getBoundingClientRect().height < 30)"
    )
    assert heights == [True] * len(heights) != []
