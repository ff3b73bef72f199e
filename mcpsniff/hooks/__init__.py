"""Message hooks, the same on every transport: what addons are told, and how they change what passes.

`events` is the single source of the hooks' names, arguments and documentation. Observing hooks are given what the
decoder has found, in a process that follows the capture (`manager`); edit hooks stand in line, in the thread of the
direction whose message they are given (`editor`), and say what to do by what they return (`actions`).
"""
