"""Recorded HTTP exchanges that cued nothing: streams asked for, sessions ended, refusals, discovery, odd requests.

They are found by method, by the kind of place, and by what routes them; equal ones follow each other as recorded, and
then the last is given again.
"""

from collections.abc import Sequence
from typing import Final

from mcpsniff.protocol.http import HttpExchange
from mcpsniff.protocol.talk import LEGACY
from mcpsniff.replay.script import Web
from mcpsniff.replay.serve.web.clients import Client
from mcpsniff.replay.serve.web.route import (
    ENDPOINT,
    MCP,
    STREAM,
    STREAMABLE,
    Recorded,
    Route,
    bare_path,
    is_message_of_client,
)

_OFFERED_TO_NOBODY: Final = (405, 501)
"""Statuses that are about the method, whatever else a request says."""
_OURS: Final = (MCP, STREAM, ENDPOINT)


class Unspoken:
    """The recorded exchanges without requests of MCP."""

    def __init__(self, webs: Sequence[Web], recorded: Recorded, *, over_sse: bool) -> None:
        """``over_sse`` says that HTTP+SSE is served: what a path is for depends on it."""
        self._recorded = recorded
        self._over_sse = over_sse
        kinds = (LEGACY,) if over_sse else STREAMABLE
        self._answers = [
            web
            for web in webs
            if is_message_of_client(web.http) and not web.scenes and web.talk is not None and web.talk.kind in kinds
        ]
        self._webs: dict[tuple[str, str], list[Web]] = {}
        for web in webs:
            if not web.scenes and web.http.status is not None and not is_message_of_client(web.http):
                self._webs.setdefault((web.http.method, self.place(web.http.path)), []).append(web)
        self._given: dict[tuple[int, str, str, Route], int] = {}

    def place(self, path: str) -> str:
        """What a path is for: MCP, STREAM or ENDPOINT, or the path itself."""
        path = bare_path(path)
        if self._over_sse:
            if path == "/sse" or path in self._recorded.stream_paths:
                return STREAM
            return ENDPOINT if path in self._recorded.endpoint_paths else path
        return MCP if path == "/mcp" or path in self._recorded.mcp_paths else path

    def find(self, client: Client | None, method: str, target: str, route: Route) -> Web | None:
        """The recorded exchange for a request without a message; None if there is none like it."""
        path = target.partition("?")[0]
        place = self.place(path)
        found = self._webs.get((method, place), [])
        talk = None if client is None else client.talk
        if talk is not None and place in _OURS:
            found = [web for web in found if web.talk is None or web.talk is talk]
        fitting = self._fitting(found, place, target, route)
        return self._next(client, method, place, route, fitting)

    def of_answers(self, client: Client) -> Web | None:
        """The recorded exchange in which a client said something that is not answered."""
        found = [web for web in self._answers if web.talk is client.talk]
        return self._next(client, "POST", "", Route(), found)

    def streams(self, client: Client | None) -> list[Web]:
        """The recorded streams that the client's conversation had besides those of its requests, in order."""
        talk = None if client is None else client.talk
        place = STREAM if self._over_sse else MCP
        return [
            web
            for web in self._webs.get(("GET", place), [])
            if is_own_stream(web.http) and (talk is None or web.talk is talk)
        ]

    def next_stream(self, client: Client) -> Web | None:
        """The stream that it has when it asks for its next: the next one, or the last once more."""
        found = self.streams(client)
        return found[min(client.streams_given, len(found) - 1)] if found else None

    def _fitting(self, webs: list[Web], place: str, target: str, route: Route) -> list[Web]:
        if place not in _OURS:
            same = [web for web in webs if web.http.target == target]
            alike = [web for web in same or webs if self._recorded.routes[web.number].authorized == route.authorized]
            return alike or same or webs
        exact = [web for web in webs if self._recorded.routes[web.number] == route]
        if exact:
            return exact
        return [
            web
            for web in webs
            if (not web.http.is_refused and self._recorded.routes[web.number].session == route.session)
            or web.http.status in _OFFERED_TO_NOBODY
        ]

    def _next(self, client: Client | None, method: str, place: str, route: Route, webs: list[Web]) -> Web | None:
        if not webs:
            return None
        key = (0 if client is None else id(client), method, place, route)
        at = self._given.get(key, 0)
        self._given[key] = at + 1
        return webs[min(at, len(webs) - 1)]


def is_own_stream(http: HttpExchange) -> bool:
    """True for an event stream that a GET has opened and that goes on with none."""
    return http.method == "GET" and http.stream is not None and not http.resumed
