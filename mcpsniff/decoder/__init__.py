"""The one decoder: records in, events out, for a live session and for a saved one alike.

    bytes of a channel ─▶ frames ─▶ messages ─▶ exchanges     each numbered in order of appearance (``n``)
                            └──────────┴───────────┴─▶ checks ─▶ findings (``at`` the event they hang on)

`Decoder.feed` takes one record and returns the events it leads to; `Decoder.advance` tells it the time, so that a
deadline fires at its own moment even when nothing arrives; `Decoder.finish` says that no more will come. There is no
I/O and no clock in here, and no input raises an exception.

A `Channel` makes frames of its bytes: `pipes` of a wrapped server's lines, `web` of the bodies and events that HTTP
carries. What a frame says is the business of `speech`, the same for all of them.
"""

from mcpsniff.decoder.core import SLOW_EXIT_US, SLOW_REQUEST_US, Decoder
from mcpsniff.decoder.emitter import Event

__all__ = ["SLOW_EXIT_US", "SLOW_REQUEST_US", "Decoder", "Event"]
