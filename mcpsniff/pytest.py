"""A plugin for pytest: captures in the place of servers (``mcp_replay``), and sessions recorded (``mcp_record``).

It is loaded wherever mcpsniff and pytest are installed, and does nothing until a test asks for one of its fixtures.
``-p no:mcpsniff.pytest`` leaves it out. docs/pytest.md tells more.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mcpsniff.errors import McpsniffError
    from mcpsniff.testing.recordings import Recording
    from mcpsniff.testing.replays import Replay
    from mcpsniff.testing.verdict import Allowed

_FAILED: pytest.StashKey[bool] = pytest.StashKey()
_REPLAYS: pytest.StashKey["list[_Judged]"] = pytest.StashKey()


class _Judged:
    """A replay and what is allowed in it."""

    def __init__(self, replay: "Replay", missed: "Allowed", unasked: "Allowed") -> None:
        self.replay = replay
        self.is_told = False
        """What is wrong stands beside the failure of the test."""
        self._missed, self._unasked = missed, unasked

    def lines(self, report: dict[str, Any], *, is_failed: bool) -> list[str]:
        """What is wrong. Of a test that has failed already it is no wonder that requests were never made."""
        from mcpsniff.testing.verdict import faults, remarks

        if not report["starts"] and not report["killed"]:
            nobody = f"nobody started the server that replays {self.replay.path.name}"
            return [] if is_failed or self._unasked is True else [nobody]
        found = faults(report, allow_missed=self._missed, allow_unasked=is_failed or self._unasked)
        if report["killed"] and not is_failed:
            found.append(
                f"{report['killed']} of the servers {'was' if report['killed'] == 1 else 'were'} killed before it could"
                " tell what it was asked; a client ends its server by closing its input, or with TERM"
            )
        if not found:
            return []
        return [f"what the client asked is not what {self.replay.path.name} has:", *found, *remarks(report)]


def _failure(error: "McpsniffError") -> BaseException:
    """What pytest shows as the error's own lines, and nothing else."""
    from mcpsniff.testing.arguments import as_arguments

    return pytest.fail.Exception("\n".join(map(as_arguments, error.lines)), pytrace=False)


@pytest.fixture
def mcp_replay(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[Callable[..., Replay]]":
    """Serve captures: ``mcp_replay("weather.mcpcap")`` gives what a client needs in the place of the server.

    Its ``command`` (a list of words) is for ``transport="stdio"``, its ``url`` for ``"http"`` and ``"sse"``. The path
    is relative to the file of the test. ``match``, ``timing``, ``ignore``, ``timeout``, ``server``, ``raw`` and
    ``allow_redacted`` are as for `mcpsniff replay --serve`.

    When the test is over, requests that are not in the capture, and those in it that were never made, are errors.
    ``allow_missed`` and ``allow_unasked`` let all pass (True), or those with these methods (``["ping", "tasks/*"]``).
    """
    judged = request.node.stash.setdefault(_REPLAYS, [])

    def start(
        capture: str | Path,
        *,
        transport: str = "stdio",
        match: str = "exact",
        timing: str = "none",
        ignore: str | Iterable[str] = (),
        timeout: float = 30.0,
        server: str | None = None,
        raw: bool = False,
        allow_redacted: bool = False,
        allow_missed: "Allowed" = False,
        allow_unasked: "Allowed" = False,
    ) -> "Replay":
        from mcpsniff.errors import McpsniffError
        from mcpsniff.testing.arguments import methods_of, path_of, replay_options, transport_of
        from mcpsniff.testing.replays import Replay, check

        try:
            allowed = methods_of(allow_missed, "allow_missed"), methods_of(allow_unasked, "allow_unasked")
            path, over = path_of(capture, request.path.parent, "mcp_replay"), transport_of(transport)
            options = replay_options(
                match=match,
                timing=timing,
                timeout=timeout,
                ignore=ignore,
                server=server,
                raw=raw,
                allow_redacted=allow_redacted,
            )
            check(path, server=server, allow_redacted=allow_redacted, over_http=over != "stdio")
            replay = Replay(path, tmp_path_factory.mktemp("mcp_replay"), over, options)
        except McpsniffError as error:
            raise _failure(error) from None
        judged.append(_Judged(replay, *allowed))
        return replay

    yield start
    is_failed = request.node.stash.get(_FAILED, False)
    reports = [(one, one.replay.report) for one in judged]
    lines = [line for one, told in reports if not one.is_told for line in one.lines(told, is_failed=is_failed)]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test failed, and show beside why what its client asked that is not in the capture."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
        for one in item.stash.get(_REPLAYS, []) if report.failed else ():
            lines = one.lines(one.replay.report_so_far(), is_failed=True)
            if lines:
                one.is_told = True
                report.sections.append(("mcp_replay", "\n".join(lines)))
    return report


class McpRecord:
    """What ``mcp_record`` gives: it records sessions."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self.recordings: list[tuple[Recording, Path | None]] = []
        """All that were begun, and where each is to be kept."""

    def stdio(self, command: Sequence[str], to: str | Path | None = None) -> "Recording":
        """Record a server that is started by a command: start `Recording.command` in its place.

        When the test has passed, the capture is kept as ``to``, relative to the file of the test, if that is given.
        """
        return self._begin(to, command=command)

    def http(self, url: str, to: str | Path | None = None) -> "Recording":
        """Record a server at a URL: connect to `Recording.url` in its place. ``to`` is as for `stdio`."""
        return self._begin(to, url=url)

    def _begin(
        self, to: str | Path | None, *, command: Sequence[str] | None = None, url: str | None = None
    ) -> "Recording":
        from mcpsniff.errors import McpsniffError
        from mcpsniff.testing.arguments import path_of, words_of
        from mcpsniff.testing.recordings import Recording, check_place

        path = self._folder / f"session-{len(self.recordings) + 1}.mcpcap"
        try:
            place = None if to is None else path_of(to, self._request.path.parent, "to")
            if place is not None:
                check_place(place)
            recording = Recording(path, command=words_of(command) if url is None else (), url=url)
        except McpsniffError as error:
            raise _failure(error) from None
        self.recordings.append((recording, place))
        return recording


@pytest.fixture
def mcp_record(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpRecord]:
    """Record sessions: ``mcp_record.stdio(command)`` or ``mcp_record.http(url)``, and ask what was said in them."""
    record = McpRecord(request, tmp_path_factory.mktemp("mcp_record"))
    yield record
    from mcpsniff.errors import McpsniffError

    is_failed = request.node.stash.get(_FAILED, False)
    failures: list[McpsniffError] = []
    for recording, to in record.recordings:
        try:
            if to is None or is_failed:
                recording.close()
            else:
                recording.save(to)
        except McpsniffError as error:
            failures.append(error)
    if failures:
        raise _failure(failures[0])
