"""Options of click that take a number of seconds."""

from typing import Any, Final

import click
from click.types import FloatParamType

LEAST: Final = 0.001
MOST: Final = 1e6


class Seconds(FloatParamType):
    """A number of seconds from `LEAST` to `MOST`; what is no number (``nan``) or has no end (``inf``) is refused."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds. Raises click.BadParameter."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not LEAST <= seconds <= MOST:  # not a number compares false, too
            self.fail(f"it needs a number of seconds from {LEAST:g} to {MOST:,.0f}, not {value!r}", param, ctx)
        return seconds
