"""The transcript as one HTML file that needs nothing else: no network, no server, no second file.

    page.py     the whole document, in order; what is kept in temporary files until the head can be written
    rows.py     one row of the transcript as a list item, one exchange as a bar of the timeline
    summary.py  head, findings, counts and latencies
    markup.py   the only way captured text gets into markup
    assets.py   style sheet and script, and the content security policy that lets nothing else run

Three lines of defence: captured text stands in element content only, escaped (never in an attribute, a style or a
script); the data for the script are numbers; and the policy forbids every request and every script but our own.
"""

from mcpsniff.transcript.html.page import write_html

__all__ = ["write_html"]
