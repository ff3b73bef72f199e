"""Captures of several clients served over HTTP: who goes through what, in which revision, from where."""

import json
from typing import Any

from mcpsniff.replay.match import SEQUENCE, Matcher, Rules
from mcpsniff.replay.serve.stand_in import lacks_handshake
from tests.dialogue import ENVELOPE
from tests.replay.serving import INITIALIZE, Client, over_http
from tests.replay.staging import answer, request, script_of

VERSION = "2026-07-28"


def modern(number: Any, method: str, **params: Any) -> dict[str, Any]:
    return request(number, method, **params, _meta=ENVELOPE)


def exchange(asked: Any, answered: Any, *headers: str) -> str:
    lines = [f"C> POST /mcp {json.dumps(asked)}", *(f"    {header}" for header in headers)]
    return "\n".join([*lines, f"S> 200 {json.dumps(answered)}", ""])


async def ask(client: Client, message: dict[str, Any]) -> Any:
    headers = {"MCP_Protocol_Version": VERSION, "Mcp_Method": message["method"]}
    return (await (await client.post(message, **headers)).json())["result"]


def test_clients_without_sessions_go_through_a_sequence_together() -> None:
    """In 2026-07-28 nothing tells which client asks; whoever begins when all was given begins at the beginning."""
    script = "@http\n@modern\n" + "".join(
        exchange(modern(n, "server/discover"), answer(n, about=n))
        + exchange(modern(n, "tools/list"), answer(n, page=n))
        for n in (1, 2)
    )

    async def act(client: Client) -> None:
        discovered = [await ask(client, modern(n, "server/discover")) for n in "abc"]
        assert [one.get("about") for one in discovered] == [None, 1, 2]  # the first is of @modern
        other = Client(client.server)
        for who, user_agent, page in (
            (client, "a", 1),
            (other, "b", 2),
            (other, "b", 2),
            (client, "a", 2),
            (other, "c", 1),
        ):
            who.headers["User-Agent"] = user_agent
            assert await ask(who, modern("x", "tools/list")) == {"page": page}
        other.close()

    stage = over_http(script, act, rules=Rules(SEQUENCE))
    assert stage.matcher.never_asked() == []


def test_a_request_is_answered_in_its_own_revision() -> None:
    old, new = answer(1, tools=["old"]), answer(1, tools=["new"])
    script = f"@http\n@open 2025-11-25\n{exchange(request(1, 'tools/list'), old)}@session\n@modern\n"
    script += exchange(modern(1, "tools/list"), new)

    async def act(client: Client) -> None:
        assert await ask(client, modern(7, "tools/list")) == new["result"]
        await client.open()
        assert (await (await client.post(request(8, "tools/list"))).json())["result"] == old["result"]
        assert await ask(Client(client.server), modern(9, "tools/list")) == new["result"]

    for rules in (Rules(), Rules(SEQUENCE)):
        over_http(script, act, rules=rules)


def test_a_server_of_a_later_revision_that_refused_a_handshake_refuses_it_again() -> None:
    error = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no initialize here"}}
    opening = f"@modern\n{exchange(modern(1, 'tools/list'), answer(1))}@version\n"
    script = script_of(f"@http\n{opening}C> POST /mcp {json.dumps(INITIALIZE)}\nS> 404 {json.dumps(error)}\n")

    async def act(client: Client) -> None:
        refused = await client.post(INITIALIZE)
        assert (refused.status, await refused.json()) == (404, error)

    over_http(script, act)
    assert not lacks_handshake(Matcher(script.talks))


def test_what_was_refused_for_its_host_is_not_refused_here() -> None:
    script = f"@http\nC> POST /mcp {json.dumps(INITIALIZE)}\n    Host: evil.example\nS> 421 no\n@open 2025-11-25\n"

    async def act(client: Client) -> None:
        assert (await client.post(INITIALIZE, Host="evil.example")).status == 403
        assert (await client.open())["result"]["protocolVersion"] == "2025-11-25"

    over_http(script, act)


def test_a_refusal_with_an_answer_in_it_is_no_refusal_on_another_transport() -> None:
    """A client on HTTP+SSE takes any status but 202 for the end, and waits for the error on its stream."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}
    asked = json.dumps(modern(1, "server/discover"))
    script = f"@http\nC> POST /mcp {asked}\nS> 400 {json.dumps(error)}\n@open 2025-11-25\n"

    async def act(client: Client) -> None:
        stream = await client.request("GET")
        endpoint = await stream.event()
        assert endpoint is not None
        assert endpoint.data is not None
        taken = await client.post(modern("a", "server/discover"), endpoint.data.decode())
        assert taken.status == 202
        event = await stream.event()
        assert event is not None
        assert event.message == error | {"id": "a"}

    assert over_http(script, act, over_sse=True).matcher.missed == 0


def test_the_state_that_a_client_sends_to_a_page_comes_back() -> None:
    """Clients of OAuth make up a new one each time and take no other (RFC 6749 section 10.12)."""
    script = """@http
C> GET /authorize?state=a%2Bb%20c&code_challenge=x
S> 302
    Location: http://localhost:3000/callback?code=abc&state=a%2Bb+c&other=a%2Bb+c
C2> GET /authorize?code_challenge=x
S2> 302
    Location: http://localhost:3000/callback?code=abc&state=own
"""

    async def act(client: Client) -> None:
        page = await client.request("GET", "/authorize?code_challenge=y&state=n%26w")
        assert page.headers["location"] == "http://localhost:3000/callback?code=abc&state=n%26w&other=a%2Bb+c"
        page = await client.request("GET", "/authorize?code_challenge=x")
        assert page.headers["location"] == "http://localhost:3000/callback?code=abc&state=own"

    over_http(script, act)
