"""Secrets on a server's command line do not reach the capture; everything else does."""

import pytest

from mcpsniff.proxy.mask_argv import mask_argv
from tests.proxy.wrapped import Path, Wrapped

KEY = "sk-proj-0123456789abcdefghij"


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        (["--api-key", "abc"], ["--api-key", "***"]),
        (["--apiKey=abc"], ["--apiKey=***"]),
        (["--token", "abc", "--port", "80"], ["--token", "***", "--port", "80"]),
        (["--GITHUB_TOKEN", "abc"], ["--GITHUB_TOKEN", "***"]),
        (["-password", "abc"], ["-password", "***"]),
        (["--password", "--token", "abc"], ["--password", "--token", "***"]),
        (["-e", "GITHUB_PERSONAL_ACCESS_TOKEN=abc", "image"], ["-e", "GITHUB_PERSONAL_ACCESS_TOKEN=***", "image"]),
        (["AWS_SECRET_ACCESS_KEY=a/b+c="], ["AWS_SECRET_ACCESS_KEY=***"]),
        (["--header", "Authorization: Bearer abc"], ["--header", "Authorization: Bearer ***"]),
        (["-H", "X-Api-Key: abc"], ["-H", "X-Api-Key: ***"]),
        (["Cookie: a=b; c=d"], ["Cookie: ***"]),
        (["https://user:pass@example.com/mcp"], ["https://***@example.com/mcp"]),
        (["postgres://u:p%40ss@db:5432/x"], ["postgres://***@db:5432/x"]),
        (["https://x/mcp?api_key=abc&page=2#token=def"], ["https://x/mcp?api_key=***&page=2#token=***"]),
        (["sh", "-c", "API_KEY=abc run --token def -v"], ["sh", "-c", "API_KEY=*** run --token *** -v"]),
        (['PASS="a b" run'], ['PASS="***" run']),
        (['{"apiKey": "abc", "n": 1}'], ['{"apiKey": "***", "n": 1}']),
        (["--api-key=abc'12345678"], ["--api-key=***"]),
        (["sh", "-c", "TOKEN=abc'd e'\"f\" run; x"], ["sh", "-c", "TOKEN=*** run; x"]),
        (["sh", "-c", "sh -c 'TOKEN=abc\"12345678'"], ["sh", "-c", "sh -c 'TOKEN=***'"]),
        ([KEY, "x"], ["***", "x"]),
        (["ghp_0123456789abcdefghij0123"], ["***"]),
    ],
)
def test_secrets_are_masked(given: list[str], masked: list[str]) -> None:
    assert mask_argv(given) == masked
    assert mask_argv(masked) == masked


@pytest.mark.parametrize(
    "argv",
    [
        ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/me"],
        ["--max-tokens", "100", "--token-limit", "5", "--tokenizer", "gpt2"],
        ["--author", "me", "--compass", "north", "--pattern", "x", "--no-auth", "path=/usr"],
        ["https://example.com/mcp?sessionId=12&session_id=3"],
        ["python", "-c", "print('keyboard', 'tokens')"],
        ["é\udcff", "", "-"],
    ],
)
def test_other_words_stay(argv: list[str]) -> None:
    assert mask_argv(argv) == argv


@pytest.mark.parametrize("keep", [False, True])
def test_the_header_is_masked_but_not_the_servers_command(tmp_path: Path, keep: bool) -> None:
    command = ["sh", "-c", 'echo "$2"', "x", "--token", "hunter2"]
    with Wrapped(tmp_path, command, *["--keep-secrets"] * keep) as wrapped:
        assert wrapped.read_all() == b"hunter2\n"
        assert wrapped.wait() == 0
    assert (b'"hunter2"' in wrapped.capture().path.read_bytes().splitlines()[0]) == keep
