"""Secrets in words about the traffic: errors that quote lines, headers and URLs."""

import pytest

from mcpsniff.proxy.mask import Masker
from mcpsniff.proxy.mask_told import without_secrets

TOLD = [
    "net::ERR https://h/cb?code=<S>&x=1 Authorization: Bearer <S>",
    "cannot reach http://<S>@h/x: refused",
    "to https://h/cb#access_token=<S> which",
    "headers {'Authorization': 'Bearer <S>', \"x-api-key\": \"<S>\"}",
    "Set-Cookie: <S>",
    "it sent Bearer <S>",
    "client_secret=<S>; retried",
    "[SSL: WRONG_VERSION_NUMBER] wrong version (_ssl.c:1000), exit code=1",
    "invalid token: a comma; unknown key: b",
    "it wants Bearer authentication, or Basic Authentication",
    "Mcp-Session-Id: 4f0c3a is unknown",
    "half surrogates \ud800 stay",
    "",
]


@pytest.mark.parametrize("text", TOLD)
@pytest.mark.parametrize("secret", ["s3cr3t-s3cr3t", "SECRET0123456789"])
def test_secrets_are_hidden_in_equal_length_and_all_else_stays(text: str, secret: str) -> None:
    assert without_secrets(text.replace("<S>", secret)) == text.replace("<S>", "*" * len(secret))


@pytest.mark.parametrize(("kind", "member"), [("comment", "text"), ("close", "error")])
def test_records_that_tell_in_words_are_masked(kind: str, member: str) -> None:
    entry = (1, kind, None, {member: "GET https://h/cb?code=s3cr3t-s3cr3t failed", "by": "x"})
    [(_, _, _, body)] = Masker(lambda: b"salt")([entry])
    assert body == {member: "GET https://h/cb?code=************* failed", "by": "x"}
