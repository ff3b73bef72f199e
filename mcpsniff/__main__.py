"""The entry point: `mcpsniff stdio` and `mcpsniff http` start at once, every other command goes through click.

The wrapper's way to the server's start is kept free of imports on purpose: a client waits for it.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpsniff.errors import UsageError


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run the command line ``argv`` (the process's own by default) and return the exit status.

    `mcpsniff stdio` ends the process itself once its server has ended, `mcpsniff http` when it is told to end; they
    return only from a failed start. Ctrl-C while modules are loaded gives 130, and no traceback.
    """
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return 130


def _run(words: "list[str]") -> int:
    """Run the command that ``words`` begin with."""
    if sys.platform == "win32":
        sys.stderr.write("mcpsniff runs on Linux and macOS; on Windows use it inside WSL.\n")
        return 2
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _take_missing_streams()
    if words[:1] == ["stdio"]:
        return _stdio(words)
    if words[:1] == ["http"]:
        return _http(words)
    from mcpsniff.cli.interrupts import interrupted_at_once

    with interrupted_at_once():
        from mcpsniff.cli.main import run
    return run(words)


def _take_missing_streams() -> None:
    """Read from and write to nowhere where a standard stream was closed when we were started (``>&-``).

    Python has None in its place then. Its number is taken too, or the next file that we open would get it.
    """
    import os

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _stdio(words: "Sequence[str]") -> int:
    """Start the wrapper, or say what is wrong with the command line without starting anything."""
    from mcpsniff.cli.options import STDIO, HelpAskedError, parse
    from mcpsniff.errors import UsageError

    try:
        options, command = parse(STDIO, words[1:])
        if not command or not command[0]:
            raise UsageError("no command given; usage: mcpsniff stdio [options] -- COMMAND [ARG...]")
        from mcpsniff.proxy.stdio import wrap

        return wrap(command, options)
    except HelpAskedError:
        from mcpsniff.cli.main import run

        return run(words)
    except UsageError as error:
        sys.stderr.write(_said("stdio", error))
        return error.exit_status


def _http(words: "Sequence[str]") -> int:
    """Start the relay, or say what is wrong with the command line without beginning anything."""
    from mcpsniff.cli.options import HTTP, HelpAskedError, parse
    from mcpsniff.errors import UsageError

    try:
        options, upstreams = parse(HTTP, words[1:], anywhere=True)
        if not upstreams:
            raise UsageError("no upstream given; usage: mcpsniff http [NAME=]URL... [options]")
        from mcpsniff.proxy.tcp import relay

        return relay(upstreams, options)
    except HelpAskedError:
        from mcpsniff.cli.main import run

        return run(words)
    except UsageError as error:
        sys.stderr.write(_said("http", error))
        return error.exit_status


def _said(command: str, error: "UsageError") -> str:
    """What is written about an error; a second line on points at a place in something."""
    from mcpsniff.transcript.safe import visible

    first, *more = map(visible, error.lines)
    return "\n".join((f"mcpsniff {command}: {first} (try mcpsniff {command} --help)", *more)) + "\n"


if __name__ == "__main__":
    sys.exit(main())
