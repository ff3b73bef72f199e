"""Click's options, made from the tables of `mcpsniff.cli.options`."""

import click

from mcpsniff.cli.options import INTERCEPTING, Option


class Recording(click.Command):
    """A command that records; in its help the options by which messages are changed stand apart."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under two headings."""
        apart = {option.name for option in INTERCEPTING}
        for heading, is_apart in (("Options", False), ("Options that change messages", True)):
            records = [
                record
                for param in self.get_params(ctx)
                if isinstance(param, click.Option) and (param.name in apart) == is_apart
                if (record := param.get_help_record(ctx)) is not None
            ]
            with formatter.section(heading):
                formatter.write_dl(records)


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
