"""The authority that mitmproxy signs with: where it is, and made where there is none yet.

It is the one that mitmproxy itself uses, so that who trusts it for mitmproxy need do nothing for us.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import McpsniffError

if TYPE_CHECKING:
    from cryptography import x509

FOLDER: Final = "~/.mitmproxy"
"""Where mitmproxy keeps it (its option `confdir`)."""
NAME: Final = "mitmproxy"
_KEY_SIZE: Final = 2048


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority on disk."""

    path: str
    """Its certificate, in PEM form: what a client is to trust."""
    key: str
    """Its certificate and private key: who has this file can pose as any server to who trusts the certificate."""
    sha256: str
    """The fingerprint of the certificate, as browsers show it."""
    not_after: datetime
    """When it ends, in UTC."""
    pem: str
    """The certificate's text."""
    is_new: bool
    """True if it was made just now."""


def authority(folder: str = FOLDER) -> Authority:
    """Return the authority in ``folder``, made first if there is none.

    Raises McpsniffError if it cannot be read or made, has no key that fits, or is over.
    """
    place = Path(folder).expanduser()
    key, certificate = place / f"{NAME}-ca.pem", place / f"{NAME}-ca-cert.pem"
    try:
        is_new = not key.exists() and _make(place, key)
        found = _read(certificate if certificate.exists() else key, key, certificate, is_new=is_new)
    except OSError as error:
        where = shown(error.filename or str(place))
        raise McpsniffError(f"cannot read or make mitmproxy's CA: {where}: {error.strerror or error}") from None
    if found.not_after <= datetime.now(UTC):
        raise McpsniffError(
            f"mitmproxy's CA ended on {found.not_after:%Y-%m-%d}: remove {shown(str(place / NAME))}-ca* to have a new"
            " one made, and let clients trust that"
        )
    return found


def _make(place: Path, key: Path) -> bool:
    """Make an authority as mitmproxy does, unless another process does so meanwhile; return True if we did."""
    from mitmproxy.certs import CertStore

    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(place):
        if key.exists():
            return False
        CertStore.create_store(place, NAME, _KEY_SIZE)
        return True


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Keep other processes of mcpsniff out of ``place`` meanwhile."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(source: Path, key: Path, certificate: Path, *, is_new: bool) -> Authority:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        parsed = x509.load_pem_x509_certificates(source.read_bytes())[0]
        if source == certificate and key.exists():
            signing = x509.load_pem_x509_certificates(key.read_bytes())[0]
            if signing != parsed:
                raise McpsniffError(
                    f"{shown(str(certificate))} is not the certificate of {shown(str(key))}, with which mitmproxy"
                    " signs: remove the former to have it written anew"
                )
    except ValueError:
        raise McpsniffError(f"mitmproxy's CA {shown(str(source))} holds no certificate in PEM form") from None
    _check_key(key, parsed)
    content = parsed.public_bytes(Encoding.PEM)
    if source != certificate:  # somebody's own, without the file for clients
        certificate.write_bytes(content)
    digest = hashlib.sha256(parsed.public_bytes(Encoding.DER)).hexdigest().upper()
    fingerprint = ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
    return Authority(
        str(certificate), str(key), fingerprint, parsed.not_valid_after_utc, content.decode("ascii"), is_new
    )


def _check_key(key: Path, certificate: "x509.Certificate") -> None:
    """Raise McpsniffError if the private key in ``key`` cannot sign for ``certificate``: no client would get TLS."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    try:
        private = load_pem_private_key(key.read_bytes(), None)  # as mitmproxy reads it
        is_its_own = private.public_key().public_bytes(*form) == certificate.public_key().public_bytes(*form)
        why = "" if is_its_own else "holds the private key of another certificate than the one in it"
    except TypeError:
        why = "holds a private key that is encrypted, and mcpsniff asks for no passphrase"
    except (ValueError, UnsupportedAlgorithm):
        why = "holds no private key in PEM form that can be read"
    if why:
        raise McpsniffError(
            f"mitmproxy's CA {shown(str(key))} {why}: put its own key there in plain, or move"
            f" {shown(str(key.with_name(NAME)))}-ca* away to have a new one made, and let clients trust that"
        )
