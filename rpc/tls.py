"""TLS of a worker: what it shows to others, whom it trusts, and what it learns of a peer from the peer's certificate.

Both ends of a connection show a certificate of the same authority (mutual TLS). The dialer checks in addition that the
acceptor's carries the name that the job knows it by. The acceptor checks that the dialer's is the one that the handshake
(``security.py``) signs, and that it carries the name of the worker that the dialer says it is.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import stat
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ..core import job_credentials
from ..core.errors import AuthenticationError


@dataclass(frozen=True)
class TlsFiles:
    """Certificate files of one worker, for ``GrpcRpcBackendOptions(tls=...)``. All are PEM.

    Attributes:
        certificate: this worker's certificate, with those between it and the authority; it carries a subject alternative name.
        key: its private key, which other users cannot read.
        ca: certificate of the authority that signed the certificates of all workers.
        rank0_name: name that the certificate of rank 0 carries; ``None`` for the host of the rendezvous' address.
    """

    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str]
    ca: str | os.PathLike[str]
    rank0_name: str | None = None


class PeerCertificate(NamedTuple):
    """Certificate that the other end of a connection has shown; without TLS it has no fingerprint.

    Attributes:
        fingerprint: SHA-256 of the certificate.
        names: names that it carries.
    """

    fingerprint: bytes = b""
    names: tuple[str, ...] = ()


NO_CERTIFICATE = PeerCertificate()


@dataclass(frozen=True)
class Tls:
    """TLS files of a worker, read and checked.

    Attributes:
        files: where they are.
        certificate: the worker's certificate, with those between it and the authority, as PEM.
        key: its private key, as PEM.
        ca: certificate of the authority, as PEM.
        names: names that the certificate carries, the worker's own first.
    """

    files: TlsFiles
    certificate: bytes
    key: bytes
    ca: bytes
    names: tuple[str, ...]

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 of the worker's own certificate."""
        return fingerprint(self.certificate)

    def name_of(self, announced: str, host: str) -> str:
        """Return the name that the certificate of a peer must carry.

        Args:
            announced: the name in its record; empty for rank 0 at the rendezvous.
            host: host that is dialed.
        """
        return announced or self.files.rank0_name or host

    def client_context(self) -> ssl.SSLContext:
        """Return the context of an end that dials."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def server_context(self) -> ssl.SSLContext:
        """Return the context of an end that listens; it asks for a certificate."""
        return self._context(ssl.PROTOCOL_TLS_SERVER)

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self.ca.decode())
        context.load_cert_chain(self.files.certificate, self.files.key)
        return context


def load(files: TlsFiles) -> Tls:
    """Read and check the files of a worker.

    Raises:
        AuthenticationError: one cannot be read, others can read the key, they do not belong together, or are not valid now.
    """
    from .certificates import check

    certificate, key, ca = (_read(Path(file)) for file in (files.certificate, files.key, files.ca))
    if stat.S_IMODE(os.stat(files.key).st_mode) & stat.S_IRWXO:
        raise AuthenticationError(
            f"others can read the key {files.key}; run `chmod 600 {files.key}`, or make a new one"
        )
    names = check(certificate, key, ca, f"the certificate {files.certificate}")
    return Tls(files, certificate, key, ca, names)


def own_tls(files: TlsFiles | None) -> Tls | None:
    """Return the TLS of this worker: of the files that its user gives, else of those that its launcher made, if any.

    Raises:
        AuthenticationError: a file cannot be used.
    """
    folder = job_credentials.folder()
    if files is not None:
        return load(files)
    if folder is None or not (folder / job_credentials.CERTIFICATE).exists():
        return None
    certificate, key, ca = job_credentials.CERTIFICATE, job_credentials.KEY, job_credentials.AUTHORITY
    tls = load(TlsFiles(folder / certificate, folder / key, folder / ca))
    return replace(
        tls, files=replace(tls.files, rank0_name=tls.names[-1])
    )  # the job's name, which all certificates carry


def fingerprint(certificate: bytes) -> bytes:
    """Return the SHA-256 of the first certificate of a chain in PEM."""
    end = b"-----END CERTIFICATE-----"
    first = certificate[: certificate.index(end) + len(end)]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first[first.index(b"-----BEGIN") :].decode())).digest()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise AuthenticationError(f"the file {file} of tls= cannot be read: {error.strerror}") from error
