"""The options by which `show` and `tail` take addons."""

from collections.abc import Callable
from typing import Any

import click


def with_addons[Function: Callable[..., Any]](function: Function) -> Function:
    """Give a command the options ``--addon`` and ``--set``, whose values are its ``addon`` and ``settings``."""
    file = "Load this Python file: its functions named mcp_... are told of what is shown."
    setting = "Set an option of an addon."
    function = click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help=setting)(function)
    return click.option("--addon", metavar="FILE", multiple=True, help=file)(function)
