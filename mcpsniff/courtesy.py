"""Being a good neighbour to the processes that talk to each other through us."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

SWITCH: "Final" = 0.00005
"""Seconds after which a pump gets the interpreter from whoever holds it, such as the thread that stores."""

let_others_run = getattr(os, "sched_yield", lambda: None)
"""Give the processor to whoever waits for it, and come back after them.

A thread that computes is left to do so for its whole slice, about 3 ms on Linux, even while one that was woken by a
message waits behind it. So what only observes says this every few messages.
"""
