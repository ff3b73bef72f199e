"""What is played as text: the lines of `mcpsniff show`, the findings of a row also one by one below it."""

from mcpsniff.replay.play.reel import Item
from mcpsniff.transcript.payload import FOLDED, Style
from mcpsniff.transcript.rows import REPORT, Row
from mcpsniff.transcript.text import WIDTH, Print, TextTranscript


class PlayPage(TextTranscript):
    """Prints items, so that all of them together are what the rows are in `mcpsniff show`.

    ``before`` is the page that this one goes on with, at another width.
    """

    def __init__(
        self, print_line: Print, width: int = WIDTH, style: Style = FOLDED, before: "PlayPage | None" = None
    ) -> None:
        super().__init__(print_line, width, style)
        self._row: Row | None = None
        if before is not None:
            self._row, self._repeated = before._row, before._repeated

    def item(self, item: Item) -> None:
        """Print a row, or what was found about it later: below it, or if it was not shown, in a row of its own."""
        if item.late and item.row is not self._row:
            self.row(Row(item.row.n, item.t, REPORT, lanes=item.row.lanes, findings=[*item.late]))
        elif item.late:
            for finding in item.late:
                self.finding(finding)
            return
        else:
            repeated = self._repeated
            self.row(item.row)
            if item.has_more and not item.row.findings:
                self._repeated = repeated  # the row has findings, though none is there yet
        self._row = item.row

    def remark(self, text: str) -> None:
        """Print what is said about the playing."""
        self._wrap("remark", text, 0)
