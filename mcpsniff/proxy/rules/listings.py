"""The lists in which servers name what they have, and the requests that use it."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mcpsniff.hooks.actions import MADE
from mcpsniff.protocol.message import REQUEST, RESPONSE, Message
from mcpsniff.wire.frames import Frame


class Listing(NamedTuple):
    """One kind of thing that a server lists."""

    what: str
    """In words."""
    member: str
    """Of the result: the list."""
    name: str
    """Of an element of the list: what it is called by."""
    use: str
    """The method that uses one."""
    param: str
    """Of that method's params: which one."""


_TOOL: Final = Listing("tool", "tools", "name", "tools/call", "name")
_PROMPT: Final = Listing("prompt", "prompts", "name", "prompts/get", "name")
_RESOURCE: Final = Listing("resource", "resources", "uri", "resources/read", "uri")
_TEMPLATE: Final = Listing("resource", "resourceTemplates", "uriTemplate", "resources/read", "uri")

LISTS: Final = {
    "tools/list": _TOOL,
    "prompts/list": _PROMPT,
    "resources/list": _RESOURCE,
    "resources/templates/list": _TEMPLATE,
}
"""By the method that lists them."""
USES: Final = {
    "tools/call": _TOOL,
    "prompts/get": _PROMPT,
    "resources/read": _RESOURCE,
    "resources/subscribe": _RESOURCE,
    "resources/unsubscribe": _RESOURCE,
}
"""By the method that uses one of them."""
_REFERENCES: Final = {"ref/prompt": (_PROMPT, "name"), "ref/resource": (_TEMPLATE, "uri")}
"""What completion/complete may be about, by the type of its ref; and the member that names it."""


class Used(NamedTuple):
    """What a request is about."""

    listing: Listing
    name: str


def list_in(message: Message) -> tuple[Listing, list[Any]] | None:
    """The list that an answer brings, for any page of it; None if it brings none."""
    link = message.link
    listing = None if link is None or message.kind != RESPONSE else LISTS.get(link.method)
    items = None if listing is None else message.result.get(listing.member)
    return None if listing is None or not isinstance(items, list) else (listing, items)


def name_in(item: Any, listing: Listing) -> str | None:
    """What an element of a list is called by; None if it has no name."""
    name = item.get(listing.name) if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def used_by(message: Message) -> Used | None:
    """What a request calls, gets, reads, subscribes to or completes; None if that is nothing that is listed.

    It is called as the client calls it, also if a rule has changed the name since.
    """
    if message.kind != REQUEST:
        return None
    listing = USES.get(message.method or "")
    if listing is not None:
        name = message.params.get(listing.param) if message.link is None else message.link.target
        return Used(listing, name) if isinstance(name, str) else None
    reference = message.params.get("ref") if message.method == "completion/complete" else None
    kind = reference.get("type") if isinstance(reference, dict) else None
    if not isinstance(reference, dict) or not isinstance(kind, str) or kind not in _REFERENCES:
        return None
    listing, member = _REFERENCES[kind]
    name = reference.get(member)
    return Used(listing, name) if isinstance(name, str) else None


def bare_use(used: Used) -> Message:
    """The request that uses something, with nothing else in it, to be judged by a filter expression."""
    frame = Frame(-1, "c2s", MADE, (), 0, 0, b"", 0)
    body = {"jsonrpc": "2.0", "id": 0, "method": used.listing.use, "params": {used.listing.param: used.name}}
    return Message(frame, REQUEST, "0", 0, used.listing.use, body, b"", ())


def named_in(message: Message) -> Iterator[str]:
    """The names of what an answer lists."""
    found = list_in(message)
    if found is not None:
        listing, items = found
        yield from (name for item in items if (name := name_in(item, listing)) is not None)
