"""Click's options, made from the tables of `mcpsniff.cli.options`."""

import click

from mcpsniff.cli.options import Option


def click_option(option: Option) -> click.Option:
    """Return ``option`` as click has it."""
    if option.metavar is None:
        return click.Option(option.spellings, is_flag=True, default=False, help=option.help)
    return click.Option(
        option.spellings,
        metavar=option.metavar,
        type=click.Choice(option.choices) if option.choices else option.kind,
        default=option.default,
        multiple=option.is_repeated,
        show_default=option.default is not None,
        help=option.help,
    )
