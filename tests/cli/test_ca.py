"""`mcpsniff ca`: the authority is found or made, private, and what is said of it can be used as it stands."""

import json
import shlex
import stat
import subprocess
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from mcpsniff.cli.ca import NAMES
from tests.cli.running import COMMAND, environment, run


def test_it_is_made_once_and_its_key_is_private(tmp_path: Path) -> None:
    first = run("ca", env={"HOME": str(tmp_path)})
    second = run("ca", env={"HOME": str(tmp_path)})
    folder = tmp_path / ".mitmproxy"
    assert (first.status, second.status) == (0, 0)
    assert "(made just now)" in first.out
    assert first.out.replace(" (made just now)", "") == second.out
    assert str(folder / "mitmproxy-ca-cert.pem") in first.out
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "mitmproxy-ca.pem").stat().st_mode) == 0o600
    missing = [name for name in NAMES if f"\n{name}: " not in first.out]
    assert missing == []


def test_scripts_get_what_they_need_alone(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "it's home")}
    (tmp_path / "it's home").mkdir()
    path = run("ca", "--path", env=home).out
    pem = run("ca", "--format", "pem", env=home).out
    about = json.loads(run("ca", "--format", "json", "curl", "node", env=home).out)
    assert Path(path.removesuffix("\n")).read_text() == pem == about["pem"]
    assert pem.startswith("-----BEGIN CERTIFICATE-----\n")
    assert about["path"] == path.strip()
    assert list(about["clients"]) == ["node", "curl"]
    export = about["clients"]["node"]["do"][0].removeprefix("$ ")
    shell = subprocess.run(["sh", "-c", f'{export}; printf %s "$NODE_EXTRA_CA_CERTS"'], capture_output=True, text=True)
    assert shell.stdout == about["path"]  # whatever the path is, the command names it


def test_every_command_is_one_for_a_shell(tmp_path: Path) -> None:
    about = json.loads(run("ca", "--format", "json", env={"HOME": str(tmp_path)}).out)
    commands = [
        line.removeprefix("$ ")
        for each in about["clients"].values()
        for line in (*each["do"], *each["undo"])
        if line.startswith("$ ")
    ]
    assert len(commands) > 20
    for command in commands:
        assert "{" not in command
        assert shlex.split(command, comments=True)
        checked = subprocess.run(["sh", "-n", "-c", command], capture_output=True, text=True)
        assert checked.returncode == 0, (command, checked.stderr)


def test_two_at_once_make_one(tmp_path: Path) -> None:
    home = environment(HOME=str(tmp_path))
    words = [*COMMAND, "ca", "--format", "pem"]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, env=home) for _ in range(3)]
    outputs = {each.communicate(timeout=60)[0] for each in both}
    assert [each.returncode for each in both] == [0, 0, 0]
    assert outputs == {(tmp_path / ".mitmproxy" / "mitmproxy-ca-cert.pem").read_bytes()}


def test_one_client_is_asked_for_and_an_unknown_one_refused(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    one = run("ca", "java", env=home).out
    assert "keytool -importcert" in one
    assert "certutil" not in one
    unknown = run("ca", "lynx", env=home)
    assert unknown.status == 2
    assert "'lynx' is not one of 'linux'" in unknown.err


def _break_key(folder: Path) -> None:
    (folder / "mitmproxy-ca.pem").write_text("nonsense")


def _break_certificate(folder: Path) -> None:
    (folder / "mitmproxy-ca-cert.pem").write_text("nonsense")


def _exchange(folder: Path) -> None:
    from tests.mitm.certificates import Authority

    (folder / "mitmproxy-ca-cert.pem").write_bytes(Authority(folder).file.read_bytes())


def _rekey(folder: Path, *, password: bytes | None = None, is_there: bool = True) -> None:
    """Put a key of another beside the certificate, or none."""
    key = rsa.generate_private_key(65537, 2048)
    lock = BestAvailableEncryption(password) if password else NoEncryption()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock) if is_there else b""
    (folder / "mitmproxy-ca.pem").write_bytes(pem + (folder / "mitmproxy-ca-cert.pem").read_bytes())


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_rekey, "holds the private key of another certificate"),
        (partial(_rekey, password=b"secret"), "holds a private key that is encrypted"),
        (partial(_rekey, is_there=False), "holds no private key"),
        (_break_key, "holds no certificate in PEM form"),
        (_break_certificate, "holds no certificate in PEM form"),
        (_exchange, "is not the certificate of"),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path: Path, harm: "object", said: str) -> None:
    run("ca", "--path", env={"HOME": str(tmp_path)})
    assert callable(harm)
    harm(tmp_path / ".mitmproxy")
    broken = run("ca", env={"HOME": str(tmp_path)})
    assert broken.status == 3
    assert said in broken.err
    assert str(tmp_path / ".mitmproxy" / "mitmproxy-ca") in broken.err
    assert "Traceback" not in broken.err


def test_a_certificate_that_is_missing_is_written_from_the_key(tmp_path: Path) -> None:
    pem = run("ca", "--format", "pem", env={"HOME": str(tmp_path)}).out
    certificate = tmp_path / ".mitmproxy" / "mitmproxy-ca-cert.pem"
    certificate.unlink()
    assert run("ca", "--format", "pem", env={"HOME": str(tmp_path)}).out == pem
    assert certificate.read_text() == pem


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".mitmproxy").write_text("a file where the folder should be")
    refused = run("ca", env={"HOME": str(tmp_path)})
    assert refused.status == 3
    assert "cannot read or make mitmproxy's CA" in refused.err
    assert ".mitmproxy" in refused.err
