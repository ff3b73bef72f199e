"""The certificates that a client under `mcpsniff run` is to trust: what it trusts anyway, and our proxy's authority.

Variables that name a bundle replace what a program trusts otherwise, so each of them gets the bundle that is in force
for it, with ours added. Only certificates are copied: a file that a user names may hold a key, too.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError
from mcpsniff.proxy.client_folder import Folder
from mcpsniff.proxy.say import say

BUNDLES: Final[dict[str, tuple[str, ...]]] = {
    "SSL_CERT_FILE": ("SSL_CERT_FILE", "SSL_CERT_DIR"),  # OpenSSL: Python, Ruby, PHP, Perl, curl, .NET; Go on Linux; uv
    "NIX_SSL_CERT_FILE": ("NIX_SSL_CERT_FILE", "SSL_CERT_FILE"),
    "REQUESTS_CA_BUNDLE": ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    "CURL_CA_BUNDLE": ("CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    "AWS_CA_BUNDLE": ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
    "PIP_CERT": ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    "GIT_SSL_CAINFO": ("GIT_SSL_CAINFO",),
    "CARGO_HTTP_CAINFO": ("CARGO_HTTP_CAINFO",),
    "HTTPLIB2_CA_CERTS": ("HTTPLIB2_CA_CERTS",),
    "DENO_CERT": ("DENO_CERT",),
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE": ("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",),
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": ("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",),
}
"""By variable, where its program looks for the bundle in force: the first of these that is set; none: its default."""
IF_SET: Final = ("npm_config_cafile", "NPM_CONFIG_CAFILE")
"""Like `BUNDLES`, but only for who uses it: npm takes NODE_EXTRA_CA_CERTS, unless this tells it not to."""
EXTRA: Final = "NODE_EXTRA_CA_CERTS"
"""Node's variable, which adds to what it trusts. Node reads it once, before anything else runs."""

_SYSTEM: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/cert.pem",  # macOS
)
_CERTIFICATE: Final = re.compile(rb"-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----.*?-----END \1-----", re.DOTALL)


class Certificates:
    """The bundles of one run, in a `Folder`. Methods raise McpsniffError where there is room nowhere."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """``environment`` is that of the user, whose own bundles stay in force."""
        self._environment = environment
        self._told: set[str] = set()
        self._folder = Folder(environment)

    def for_upstream(self, more: str | None) -> str:
        """Return a bundle of all that any program of the client trusts, and of the file ``more``: what we trust.

        Raises UsageError if ``more`` holds no certificates.
        """
        names = [name for names in BUNDLES.values() for name in names]
        told = [self._environment.get(name) for name in dict.fromkeys([*names, *IF_SET, EXTRA])]
        asked = _asked_for(more) if more else []
        return self._write("upstream", [*defaults(), *self._read_all(path for path in told if path), *asked])

    def variables(self, authority: str) -> dict[str, str]:
        """Return the variables that name bundles, each with what is in force for it and the PEM file ``authority``."""
        ours = certificates(authority)
        given = self._environment.get(EXTRA)
        found = {EXTRA: self._write("extra", [*self._read_all([given] if given else []), *ours])}
        bundles: dict[tuple[str, ...], str] = {}
        for name, sources in [*BUNDLES.items(), *((each, (each,)) for each in IF_SET if self._environment.get(each))]:
            in_force = self._in_force(sources)
            if in_force not in bundles:
                trusted = self._read_all(in_force)
                bundles[in_force] = self._write(f"bundle-{len(bundles)}", [*(trusted or defaults()), *ours])
            found[name] = bundles[in_force]
        return found

    def remove(self) -> None:
        """Remove them."""
        self._folder.remove()

    def _in_force(self, sources: Iterable[str]) -> tuple[str, ...]:
        """Return the path that the first of ``sources`` which is set names, or nothing."""
        for name in sources:
            if path := self._environment.get(name):
                return (path,)
        return ()

    def _read_all(self, paths: Iterable[str]) -> list[bytes]:
        """Return the certificates of all files and folders; say which cannot be read."""
        found: list[bytes] = []
        for path in paths:
            try:
                found += certificates(path)
            except OSError as error:
                if path not in self._told:
                    say(f"certificates that the environment names cannot be read: {shown(path)}: {error.strerror}")
                self._told.add(path)
        return found

    def _write(self, name: str, parts: Iterable[bytes]) -> str:
        """Write certificates, each once, and return the path."""
        return self._folder.write(f"{name}.pem", [part + b"\n" for part in dict.fromkeys(parts)])


def certificates(path: str) -> list[bytes]:
    """Return the PEM certificates of a file, or of all files of a folder, in their order. Raises OSError."""
    files = sorted(entry.path for entry in os.scandir(path) if entry.is_file()) if os.path.isdir(path) else [path]
    found: list[bytes] = []
    for each in files:
        with open(each, "rb") as file:
            found += [match.group() for match in _CERTIFICATE.finditer(file.read())]
    return found


def _asked_for(path: str) -> list[bytes]:
    """Return the certificates of --upstream-ca. Raises UsageError."""
    try:
        found = certificates(os.path.expanduser(path))
    except OSError as error:
        raise UsageError(f"--upstream-ca {shown(path)}: {error.strerror or error}") from None
    if not found:
        raise UsageError(f"--upstream-ca {shown(path)} holds no certificate in PEM form")
    return found


def defaults() -> list[bytes]:
    """Return what programs trust untold: the system's bundle, and that of Mozilla in the shape Python programs use."""
    import certifi

    system = next((path for path in _SYSTEM if os.path.isfile(path)), None)
    return [*(certificates(system) if system else []), *certificates(certifi.where())]
