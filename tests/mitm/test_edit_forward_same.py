"""What the forward proxy promises without edit hooks, it promises with them: tests of it, through the relay."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.mitm import test_forward, test_forward_failures
from tests.mitm.certificates import Authority
from tests.mitm.proxied import Proxy, home, upstream_ca

__all__ = ["home", "upstream_ca"]

PROMISES: list[tuple[Any, Callable[..., None], dict[str, Any]]] = [
    (test_forward, test_forward.test_mcp_is_recorded_and_nothing_else, {}),
    (test_forward, test_forward.test_everything_is_recorded_when_that_is_asked_for, {}),
    (test_forward, test_forward.test_hosts_that_only_leaves_out_are_not_decrypted, {}),
    (test_forward, test_forward.test_hosts_that_only_names_are, {}),
    (test_forward, test_forward.test_what_is_no_http_passes_untouched_whoever_speaks_first, {}),
    (test_forward, test_forward.test_what_was_held_keeps_its_time_while_others_are_recorded, {}),
    (test_forward, test_forward.test_a_server_that_is_not_trusted_is_told_of_with_what_to_pass, {}),
    (test_forward, test_forward.test_oauth_of_a_server_is_recorded_and_its_secrets_are_not, {}),
    (test_forward, test_forward.test_a_client_may_go_on_with_other_servers, {}),
    (test_forward, test_forward.test_a_request_that_takes_the_proxy_for_a_server_is_told_so, {}),
    (test_forward_failures, test_forward_failures.test_a_host_header_decides_nothing, {}),
    (test_forward_failures, test_forward_failures.test_what_cannot_be_read_is_told_once_without_a_word_of_it, {}),
    (test_forward_failures, test_forward_failures.test_so_is_one_that_goes_to_the_proxy_with_tls, {"protocol": "h2"}),
    (test_forward_failures, test_forward_failures.test_clients_of_http2_are_answered_in_our_words, {}),
]


@pytest.mark.parametrize(("module", "promise", "more"), PROMISES, ids=[each[1].__name__ for each in PROMISES])
def test_the_same(  # noqa: PLR0917
    tmp_path: Path,
    upstream_ca: Authority,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    promise: Callable[..., None],
    more: dict[str, Any],
) -> None:
    addon = tmp_path / "same.py"
    addon.write_text("def mcp_edit(message):\n    return message\n")
    monkeypatch.setattr(module, "Proxy", partial(Proxy, addon=addon))
    given = {"tmp_path": tmp_path, "upstream_ca": upstream_ca, **more}
    promise(**{name: given[name] for name in inspect.signature(promise).parameters})
