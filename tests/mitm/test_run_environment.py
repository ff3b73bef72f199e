"""What a client under `mcpsniff run` finds in its environment at its first instruction (case B127)."""

import json
import os
import ssl
import subprocess
import sys
from pathlib import Path

import certifi
import pytest

from mcpsniff.errors import UsageError
from mcpsniff.proxy.client_env import replaced, through_proxy
from mcpsniff.proxy.client_folder import Folder
from mcpsniff.proxy.client_trust import BUNDLES, IF_SET, Certificates, certificates, defaults
from tests.mitm.fake_run import AUTHORITY, URL
from tests.proxy.wrapped import environment

LOOK = """
import json, os
named = {name: value for name, value in os.environ.items() if value.endswith(".pem")}
files = {path: open(path).read() for path in set(named.values()) if "mcpsniff" in path}
modes = {path: os.stat(path).st_mode & 0o777 for path in files}
print(json.dumps([dict(os.environ), named, files, modes]))
"""
SET_HERE = {*BUNDLES, *IF_SET, "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}
"""What the machine that runs the tests may have set."""
PROXIES = [name for each in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for name in (each, each.lower())]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A file of the user's with a certificate of their own, and a key."""
    first = certificates(certifi.where())[0].decode()
    path = tmp_path / "corp.pem"
    path.write_text(f"# a comment\n-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n{first}\n")
    return path


def seen(folder: Path, **more: str) -> tuple[dict[str, str], dict[str, str], dict[str, str], dict[str, int]]:
    """What a client sees, and afterwards its files are gone."""
    kept = {
        name: value for name, value in environment().items() if name not in SET_HERE and "PROXY" not in name.upper()
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.mitm.fake_run", "--dir", str(folder / "c"), "--", sys.executable, "-c", LOOK],
        capture_output=True,
        env={**kept, "TMPDIR": str(folder), **more},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    variables, named, files, modes = json.loads(done.stdout)
    assert [path for path in files if os.path.exists(path)] == []
    assert [each for each in os.listdir(folder) if each.startswith("mcpsniff")] == []
    return variables, named, files, modes


def test_all_of_it_is_there_at_the_first_instruction(tmp_path: Path) -> None:
    variables, named, files, modes = seen(tmp_path)
    assert {variables[name] for name in PROXIES} == {URL}
    assert (variables["NO_PROXY"], variables["no_proxy"], variables["NODE_USE_ENV_PROXY"]) == ("", "", "1")
    assert {*BUNDLES, "NODE_EXTRA_CA_CERTS"} <= set(named)
    ours = AUTHORITY.read_text().strip()
    assert all(ours in files[named[name]] for name in [*BUNDLES, "NODE_EXTRA_CA_CERTS"])
    assert set(modes.values()) == {0o644}


def test_bundles_hold_what_programs_trust_anyway_and_extras_do_not(tmp_path: Path) -> None:
    _, named, files, _ = seen(tmp_path)
    known = {each.decode() for each in defaults()}
    assert len(known) > 50
    text = files[named["REQUESTS_CA_BUNDLE"]]
    assert all(each in text for each in known)
    assert files[named["NODE_EXTRA_CA_CERTS"]].strip() == AUTHORITY.read_text().strip()
    assert len(text.split("BEGIN CERTIFICATE")) - 1 == len(known) + 1


def test_openssl_can_load_a_bundle(tmp_path: Path) -> None:
    made = Certificates({})
    try:
        for path in set(made.variables(str(AUTHORITY)).values()):
            ssl.create_default_context(cafile=path)
    finally:
        made.remove()


@pytest.mark.parametrize("name", [*BUNDLES, "NODE_EXTRA_CA_CERTS", "npm_config_cafile"])
def test_what_the_user_has_set_stays_in_force(tmp_path: Path, other: Path, name: str) -> None:
    _, named, files, _ = seen(tmp_path, **{name: str(other)})
    (theirs,) = certificates(str(other))
    assert files[named[name]].split("-----BEGIN")[1:] == [
        part for each in (theirs.decode() + "\n", AUTHORITY.read_text()) for part in each.split("-----BEGIN")[1:]
    ]
    assert "SECRET" not in "".join(files.values())


def test_the_bundle_of_one_program_is_that_of_another_where_programs_have_it_so(tmp_path: Path, other: Path) -> None:
    _, named, files, _ = seen(tmp_path, CURL_CA_BUNDLE=str(other))
    assert named["REQUESTS_CA_BUNDLE"] == named["CURL_CA_BUNDLE"] != named["SSL_CERT_FILE"]
    assert len(files[named["SSL_CERT_FILE"]]) > 10 * len(files[named["CURL_CA_BUNDLE"]])
    assert "npm_config_cafile" not in named


def test_folders_of_certificates_are_read(tmp_path: Path, other: Path) -> None:
    folder = tmp_path / "hashed"
    folder.mkdir()
    other.rename(folder / "1a2b3c4d.0")
    _, named, files, _ = seen(tmp_path, SSL_CERT_DIR=str(folder))
    assert files[named["SSL_CERT_FILE"]].count("BEGIN CERTIFICATE") == 2


def test_a_bundle_that_cannot_be_read_is_named_and_the_usual_one_takes_its_place(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = Certificates(
        {"SSL_CERT_FILE": str(tmp_path / "none.pem"), "NODE_EXTRA_CA_CERTS": str(tmp_path / "none.pem")}
    )
    try:
        bundles = made.variables(str(AUTHORITY))
        assert len(certificates(bundles["SSL_CERT_FILE"])) > 50
        assert len(certificates(bundles["NODE_EXTRA_CA_CERTS"])) == 1
    finally:
        made.remove()
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "none.pem: No such file" in said


def test_mcpsniff_trusts_servers_that_any_program_of_the_client_trusts(tmp_path: Path, other: Path) -> None:
    theirs, more = certificates(str(other))[0], tmp_path / "more.pem"
    more.write_bytes(AUTHORITY.read_bytes())
    made = Certificates({"NODE_EXTRA_CA_CERTS": str(other)})
    try:
        trusted = certificates(made.for_upstream(str(more)))
        assert {theirs, *certificates(str(more)), *defaults()} == set(trusted)
        with pytest.raises(UsageError, match="holds no certificate"):
            made.for_upstream(__file__)
        with pytest.raises(UsageError, match="No such file"):
            made.for_upstream(str(tmp_path / "none"))
    finally:
        made.remove()


def test_only_what_has_to_change_does() -> None:
    given = {
        "PATH": "/bin",
        "HTTP_PROXY": "http://corp:3128",
        "no_proxy": "localhost",
        "NODE_OPTIONS": "--trace-warnings",
    }
    changed = through_proxy(given, URL, {"SSL_CERT_FILE": "/x"})
    assert {name: changed[name] for name in ("PATH", "NODE_OPTIONS")} == {
        "PATH": "/bin",
        "NODE_OPTIONS": "--trace-warnings",
    }
    assert "JAVA_TOOL_OPTIONS" not in changed
    assert (changed["HTTP_PROXY"], changed["no_proxy"]) == (URL, "")
    assert replaced(given) == ["HTTP_PROXY"]


def test_a_folder_without_room_leads_to_another(tmp_path: Path) -> None:
    """/proc stands for a full disk."""
    made = Certificates({"TMPDIR": "/proc", "TEMP": str(tmp_path / "none"), "TMP": str(tmp_path)})
    path = made.variables(str(AUTHORITY))["SSL_CERT_FILE"]
    assert Path(path).parent.parent == tmp_path
    made.remove()
    assert os.listdir(tmp_path) == []


def test_no_folder_at_all_is_told_with_what_it_is_for(tmp_path: Path) -> None:
    """No client could connect without the files, so none is started."""
    script = "trap '' XFSZ; ulimit -f 0; exec \"$@\""
    words = [sys.executable, "-m", "mcpsniff", "run", "--", "touch", str(tmp_path / "mark")]
    done = subprocess.run(
        ["sh", "-c", script, "sh", *words],
        env=environment(TMPDIR=str(tmp_path), XDG_STATE_HOME=str(tmp_path)),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, os.listdir(tmp_path)) == (3, [])
    assert "mcpsniff: no folder for the certificates that the client is to trust (" in done.stderr
    assert f"{tmp_path}: File too large" in done.stderr
    assert "set TMPDIR to a folder that can be written to" in done.stderr


def test_what_a_killed_run_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Only what is old enough, that nobody holds, and that is a folder."""
    live = Folder({"TMPDIR": str(tmp_path)})
    kept = Path(live.write("a", [b"a"])).parent
    (tmp_path / "mcpsniff-run-file").touch()
    (tmp_path / "mcpsniff-run-link").symlink_to(tmp_path / "another")
    for name in ("mcpsniff-run-dead", "mcpsniff-run-young", "another"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bundle.pem").touch()
    for path in tmp_path.iterdir():
        if path.name != "mcpsniff-run-young":
            os.utime(path, (0, 0), follow_symlinks=False)
    Folder({"TMPDIR": str(tmp_path)})
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {kept.name, "mcpsniff-run-file", "mcpsniff-run-link", "mcpsniff-run-young", "another"}
    assert (tmp_path / "another" / "bundle.pem").exists()
    live.remove()
    assert not kept.exists()
