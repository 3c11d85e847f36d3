"""TLS of a worker: its certificate, the authority that it trusts, and the names in a peer's certificate.

Both ends of a connection show a certificate of the same authority (mutual TLS). In addition, the dialer checks that the
acceptor's certificate has the name that is in the acceptor's record. The acceptor checks that the dialer's certificate is the
one that the handshake (``handshake.py``) signs, and that it has the name in the record that the dialer sends.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ...base import job_credentials
from ...base.errors import ArgumentKindError, AuthenticationError


@dataclass(frozen=True)
class TlsFiles:
    """Certificate files of one worker, for ``GrpcRpcBackendOptions(tls=...)``. All are PEM.

    Attributes:
        certificate: this worker's certificate, with those between it and the authority. It has a subject alternative name.
        key: the private key of the certificate, which other users cannot read.
        ca: certificate of the authority that signed the certificates of all workers.
        rank0_name: name in the certificate of rank 0; ``None`` for the host of the rendezvous' address.
    """

    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str]
    ca: str | os.PathLike[str]
    rank0_name: str | None = None

    def __post_init__(self) -> None:
        for name in ("certificate", "key", "ca"):
            if not isinstance(file := getattr(self, name), (str, os.PathLike)):
                raise ArgumentKindError(f"{name} of TlsFiles must be the path of a PEM file; you gave {file!r}")


class PeerCertificate(NamedTuple):
    """Certificate that the other end of a connection has shown; without TLS it has no fingerprint.

    Attributes:
        fingerprint: SHA-256 of the certificate.
        names: names in the certificate.
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
        names: names in the certificate, the worker's own first.
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
        """Return the name that must be in the certificate of a peer.

        Args:
            announced: the name in the peer's record; empty for rank 0 at the rendezvous.
            host: the host that is dialed.
        """
        return announced or self.files.rank0_name or host

    def client_context(self) -> ssl.SSLContext:
        """Return the SSL context of an end that dials."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def server_context(self) -> ssl.SSLContext:
        """Return the SSL context of an end that listens. It asks the other end for a certificate."""
        return self._context(ssl.PROTOCOL_TLS_SERVER)

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = tls_context(protocol)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self.ca.decode())
        context.load_cert_chain(self.files.certificate, self.files.key)
        return context


def tls_context(protocol: int) -> ssl.SSLContext:
    """Return an SSL context, for ``ssl.PROTOCOL_TLS_CLIENT`` or ``_SERVER``, that takes the versions of TLS which we trust."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def load(files: TlsFiles) -> Tls:
    """Read and check the files of a worker.

    Raises:
        AuthenticationError: a file cannot be read, others can read the key, the key belongs to another certificate, or the
            certificate is not valid now or was not signed by the authority.
    """
    from ..certificates import check

    certificate, key, ca = (_read(Path(file)) for file in (files.certificate, files.key, files.ca))
    if stat.S_IMODE(os.stat(files.key).st_mode) & stat.S_IRWXO:
        raise AuthenticationError(
            f"others can read the key {files.key}; run `chmod 600 {files.key}`, or make a new one"
        )
    names = check(certificate, key, ca, f"the certificate {files.certificate}")
    tls = Tls(files, certificate, key, ca, names)
    _check_signature(tls)
    return tls


def _check_signature(tls: Tls) -> None:
    """Check that workers with the same authority accept this worker: with a handshake in memory, up to its certificate.

    Otherwise only the other workers would notice, and TLS 1.3 closes such a connection without a reason.
    """
    towards, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = tls.client_context()
    context.check_hostname = False
    dialer, acceptor = context.wrap_bio(back, towards), tls.server_context().wrap_bio(towards, back, server_side=True)
    try:
        for end in (dialer, acceptor, dialer):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        raise AuthenticationError(
            f"the certificate {tls.files.certificate} was not signed by the authority {tls.files.ca}, so that other workers "
            f"would refuse it ({error.verify_message}); give certificates of one authority, and ca= that authority's"
        ) from None


def own_tls(files: TlsFiles | None) -> Tls | None:
    """Return the TLS of this worker, from the files that its user gives, else from those that its launcher made.

    Without either, return ``None``.

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
    # The last name is the job's name, which is in all its certificates.
    return replace(tls, files=replace(tls.files, rank0_name=tls.names[-1]))


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
