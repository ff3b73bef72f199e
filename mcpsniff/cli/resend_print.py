"""`mcpsniff resend --as`: the command that would send one recorded request again."""

import os
from typing import Any

from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import Capture, open_capture
from mcpsniff.cli.output import note, output
from mcpsniff.cli.replay_send import open_to_send
from mcpsniff.cli.resend_edit import draft_of
from mcpsniff.cli.show import choose
from mcpsniff.cli.target import Target
from mcpsniff.errors import UsageError
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.resend.curl import curl
from mcpsniff.replay.resend.order import Order, order_of
from mcpsniff.replay.resend.pick import Picked, pick
from mcpsniff.replay.resend.python import python
from mcpsniff.replay.resend.removed import is_redacted, names_in, removed_from
from mcpsniff.replay.resend.talk import edited_message
from mcpsniff.replay.script import Script


def print_order(what: str | None, number: int, target: Target | None, options: dict[str, Any]) -> None:
    """Print the request with this number as a command, changed first if that is wanted. Raises UsageError."""
    wanted = {**options, "capture": what}
    capture = choose(what, None) if what == "-" else open_to_send(wanted, "printing from", refuses=False)
    capture.keep()
    script = read_script(capture)
    picked = pick(capture, script, number)
    text = _text(picked, script, target, options)  # what cannot be printed need not be edited
    if not options["edit"]:
        _write(text, picked, capture, options)
        return
    if picked.message is None:
        raise UsageError("this is an HTTP exchange without a message: there is nothing to edit")
    with draft_of(picked.message) as draft:
        if (edited := draft.edited()) is not None:
            changed = picked._replace(message=edited_message(picked.message, edited))
            text = _text(changed, script, target, options)
        _write(text, picked, capture, {**options, "edit": edited is not None})


def _text(picked: Picked, script: Script, target: Target | None, options: dict[str, Any]) -> str:
    order: Order = _order(picked, script, target)
    return curl(order) if options["form"] == "curl" else python(order)


def _order(picked: Picked, script: Script, target: Target | None) -> Order:
    url, words = (None, ()) if target is None else (target.url, target.command)
    return order_of(picked, script, os.path.basename(script.path), url_to=url, command=words)


def _write(text: str, picked: Picked, capture: Capture, options: dict[str, Any]) -> None:
    with output(options["path"]) as stream:
        stream.write(text.encode(errors="backslashreplace"))
    if options["path"] is not None:
        note(f"written to {shown(options['path'])}")
    whole = open_capture(capture.path) if os.path.exists(capture.path) else capture
    if not is_redacted(whole):
        return
    if names := names_in(text):
        note(f"values were removed from what is printed, and names stand in their place: {shown(', '.join(names))}")
    elif picked.message is not None and not options["edit"] and (found := removed_from(whole, [picked.message])):
        note(f"values were removed from what is printed: {shown('; '.join(found))}")
