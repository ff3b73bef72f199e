"""Options of addons: types, what a word may say, and what it must not."""

from collections.abc import Sequence
from typing import Any, Optional

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.hooks.options import Loader, Options


def options(typespec: Any, default: Any) -> Options:
    made = Options()
    Loader(made).add_option("it", typespec, default, "help")
    return made


@pytest.mark.parametrize(
    ("typespec", "default", "words", "value"),
    [
        (bool, False, ["it"], True),
        (bool, True, ["it=no"], False),
        (int, 1, ["it=-7"], -7),
        (int, 1, ["it=2", "it=3"], 3),
        (float, 1, ["it=2.5"], 2.5),
        (str, "", ["it=a=b"], "a=b"),
        (str, "", ["it="], ""),
        (int | None, 3, ["it="], None),
        (Optional[str], None, ["it=x"], "x"),  # noqa: UP045 - as addons for older versions write it
        (Sequence[str], [], ["it=a", "it=b"], ["a", "b"]),
        (list[int], [1], ["it=2"], [2]),
        (Sequence[str], ["a"], ["it="], []),
        (str, "kept", [], "kept"),
    ],
)
def test_a_word_sets_an_option(typespec: Any, default: Any, words: list[str], value: Any) -> None:
    made = options(typespec, default)
    assert made.set(words) == ({"it"} if words else set())
    assert made.it == value
    assert type(made.it) is type(value)


@pytest.mark.parametrize(
    ("typespec", "word", "text"),
    [
        (int, "it=x", "--set it needs integer, not 'x'"),
        (int, "it", "--set it needs a value: it=integer"),
        (float, "it=", "--set it needs number, not ''"),
        (bool, "it=2", "--set it needs true or false, not '2'"),
        (bool, "its=1", "--set its: no addon has an option of that name; did you mean it?; there is it"),
    ],
)
def test_a_word_that_says_nothing_usable_is_refused(typespec: Any, word: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        options(typespec, typespec()).set([word])
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("typespec", "default"), [(int, True), (int, "1"), (float, False), (bool, 1), (list[str], [1])]
)
def test_a_default_must_have_the_type(typespec: Any, default: Any) -> None:
    with pytest.raises(TypeError, match="the default"):
        options(typespec, default)


@pytest.mark.parametrize("typespec", [dict, Sequence[dict], int | str, None, list])
def test_other_types_are_refused(typespec: Any) -> None:
    with pytest.raises(TypeError, match="it is not"):
        options(typespec, None)


def test_an_option_that_nobody_has_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"no addon has declared an option itt; did you mean it\?"):
        _ = options(int, 1).itt
