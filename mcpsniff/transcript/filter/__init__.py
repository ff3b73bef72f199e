"""The filter language: which part of a session is shown. docs/filter.md is the reference.

chosen = compile_filter('tool:echo latency:>500ms')
selector = LiveSelector(chosen)
shown = selector.feed(events)
"""

from mcpsniff.transcript.filter.error import FilterError
from mcpsniff.transcript.filter.expression import Filter, compile_filter
from mcpsniff.transcript.filter.select import LiveSelector, Selection
from mcpsniff.transcript.filter.session import FilteredSession

__all__ = ["Filter", "FilterError", "FilteredSession", "LiveSelector", "Selection", "compile_filter"]
