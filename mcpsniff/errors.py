"""The errors that mcpsniff raises on purpose, and the exit status each one means.

McpsniffError        something the user can act on; its text is one plain sentence
+- UsageError        the command line is wrong                              exit status 2
+- CaptureError      a capture cannot be read or written                    exit status 3

Anything else that reaches the top is a bug in mcpsniff.
"""


class McpsniffError(Exception):
    """An error for the user: ``str(error)`` says what is wrong, where, and what to do."""

    exit_status = 3

    @property
    def lines(self) -> tuple[str, ...]:
        """The text by lines: one, unless the error points at a place in something."""
        return (str(self),)


class UsageError(McpsniffError):
    """The command line asks for something that cannot be done."""

    exit_status = 2


class CaptureError(McpsniffError):
    """A capture file is unreadable, foreign, empty, or written by a newer version."""

    exit_status = 3
