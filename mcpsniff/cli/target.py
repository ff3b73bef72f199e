"""`--to URL` and `--to -- COMMAND [ARG...]`: whom a command speaks to, where everything after ``--`` is not ours."""

import shlex
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import click

from mcpsniff.errors import UsageError

COMMAND_KEY = "mcpsniff.target"


@dataclass(frozen=True, slots=True)
class Target:
    """A server to speak to: exactly one of the two is given."""

    url: str | None = None
    command: tuple[str, ...] = ()


class TargetCommand(click.Command):
    """A click command whose last option may be ``--to -- COMMAND [ARG]...``; ``target_of`` gives what was said."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command away before click reads the rest, so that its options are never taken for ours."""
        for at, (word, following) in enumerate(pairwise(args)):
            if word == "--":
                break
            if word == "--to" and _is_command(args[at + 1 :]):
                raise click.UsageError(f"a command comes after --: --to -- {shlex.join(args[at + 1 :])}", ctx)
            if word == "--to" and following == "--":
                ctx.meta[COMMAND_KEY] = tuple(args[at + 2 :])
                if not args[at + 2 :]:
                    raise click.UsageError("--to -- wants the server's command after it", ctx)
                args = args[:at]
                break
        return super().parse_args(ctx, args)


def _is_command(words: list[str]) -> bool:
    """True for several words that are no options, the first of which is no URL."""
    return len(words) > 1 and "://" not in words[0] and not any(word.startswith("-") for word in words[:2])


def target_of(ctx: click.Context, url: str | None) -> Target | None:
    """The server that ``--to`` names; None without it. Raises UsageError for what is neither URL nor command."""
    command: Any = ctx.meta.get(COMMAND_KEY, ())
    if url is not None and command:
        raise UsageError("--to is given twice: once with a URL and once with a command")
    if command:
        return Target(None, command)
    if url is None:
        return None
    if not url.lower().startswith(("http://", "https://")):
        raise UsageError(f"--to wants a URL, or -- and a command: --to -- {url}")
    return Target(url)
