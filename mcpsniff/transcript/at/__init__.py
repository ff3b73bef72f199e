"""One event of a session whole: all that is known of it, its exchange, its bytes."""

from mcpsniff.transcript.at.found import NoSuchNumberError, event_lines, find_event
from mcpsniff.transcript.at.text import EventPage

__all__ = ["EventPage", "NoSuchNumberError", "event_lines", "find_event"]
