"""Being a good neighbour to the processes that talk to each other through us."""

import os

let_others_run = getattr(os, "sched_yield", lambda: None)
"""Give the processor to whoever waits for it, and come back after them.

A thread that computes is left to do so for its whole slice, about 3 ms on Linux, even while one that was woken by a
message waits behind it. So what only observes says this every few messages.
"""
