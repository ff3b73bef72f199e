"""URLs in words: where a user, a key or a code may stand, nothing of it is left."""

import pytest

from mcpsniff.capture.urls import named_url


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h:8443/mcp", "https://h:8443/mcp"),
        ("https://usr:SECRET@h/mcp?key=SECRET#access_token=SECRET", "https://h/mcp"),
        ("https://h/mcp#access_token=SECRET?x", "https://h/mcp"),
        ("https://SECRET@h", "https://h"),
        ("//usr:SECRET@h/x", "//h/x"),
        ("usr:SECRET@h/x?y", "h/x"),
        ("http://u:SEC@RET@h/p", "http://h/p"),
        ("https://u:SEC/RET@h/p", "https://h/p"),
        ("wss://u:SEC?RET@h/x", "wss://"),
        ("/authorize?code=SECRET", "/authorize"),
        ("https://h:80/a:b@c", "https://h:80/a:b@c"),
        ("http://[::1]:8/a@b", "http://[::1]:8/a@b"),
        ("mailto:x", "mailto:x"),
        ("", ""),
    ],
)
def test_a_name_has_no_user_no_query_and_no_fragment(url: str, name: str) -> None:
    assert named_url(url) == name


def test_a_name_is_cut() -> None:
    assert named_url("https://h/" + "x" * 500) == "https://h/" + "x" * 190
