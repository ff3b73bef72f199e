"""What is played as text: the lines of `mcpsniff show`, the findings of a row also one by one below it."""

from mcpsniff.replay.play_reel import Item
from mcpsniff.transcript.text import TextTranscript


class PlayPage(TextTranscript):
    """Prints items, so that all of them together are what the rows are in `mcpsniff show`."""

    def item(self, item: Item) -> None:
        """Print a row, or what was found about it later."""
        if item.late:
            for finding in item.late:
                self.finding(finding)
            return
        repeated = self._repeated
        self.row(item.row)
        if item.has_more and not item.row.findings:
            self._repeated = repeated  # the row has findings, though none is there yet

    def remark(self, text: str) -> None:
        """Print what is said about the playing."""
        self._wrap("remark", text, 0)
