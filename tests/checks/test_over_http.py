"""What URL references name an origin, as the URL standard of the WHATWG has it and clients in JavaScript read them."""

import pytest

from mcpsniff.checks.over_http import origin_named


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("/messages", None),
        ("messages?next=http://evil.example", None),
        ("?a//b", None),
        ("http:/messages", None),
        ("http:messages", None),
        ("", None),
        ("//evil.example/m", ("http", "evil.example")),
        ("/\\evil.example/m", ("http", "evil.example")),
        ("\\\\evil.example", ("http", "evil.example")),
        ("http:\\\\evil.example\\m", ("http", "evil.example")),
        ("HTTP://EVIL.example:81?x", ("http", "EVIL.example:81")),
        ("///evil.example/m", ("http", "evil.example")),
        ("\t/\n/evil.example/m", ("http", "evil.example")),
        (" \x01//evil.example", ("http", "evil.example")),
        ("ht\ntp://a@evil.example#x", ("http", "a@evil.example")),
        ("https:evil.example/m", ("https", "evil.example")),
        ("https:/evil.example/m", ("https", "evil.example")),
        ("javascript:x", ("javascript", "")),
        ("data:,x", ("data", "")),
    ],
)
def test_the_origin_that_a_reference_names(reference: str, named: tuple[str, str] | None) -> None:
    assert origin_named(reference, "http") == named
