"""Certificates of a job: an authority that signs them, and the check of certificates that users give.

This is the only module that imports ``cryptography``, which takes 70 ms. So import this module only where TLS is used.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..base.errors import AuthenticationError

VALID_DAYS = 30.0  # longest time that a job may take: after that its workers cannot make connections
SKEW_DAYS = 1 / 24  # how far another host's clock may be behind
UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)


class Issued(NamedTuple):
    """Certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


class KeyPair(NamedTuple):
    """Private key of a worker, and its public half, as PEM."""

    key: bytes
    public: bytes


def new_key() -> KeyPair:
    """Return a new private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), public)


class Authority:
    """Certificate authority of one job. Its private key stays in the memory of the process that made the authority.

    Args:
        job: name of the job, which every certificate carries.
        days: how many days the certificates are valid.
    """

    def __init__(self, job: str, days: float = VALID_DAYS) -> None:
        self.job = job
        self._days = days
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(f"authority of {job}")
        self._certificate = self._sign(
            self._key.public_key(), self._name, _AUTHORITY_USAGE, x509.BasicConstraints(True, 0), ()
        )
        self.certificate = self._certificate.public_bytes(Encoding.PEM)

    def issue(self, worker: str) -> Issued:
        """Return a new key with a certificate that names the worker, and then the job.

        Args:
            worker: text that no other worker of the job has; the certificate's name is ``<worker>.<job>``.
        """
        key = new_key()
        return Issued(self.certify(worker, key.public), key.key)

    def certify(self, worker: str, public: bytes) -> bytes:
        """Return a certificate, as PEM, for a key that another process has made.

        Args:
            worker: as for ``issue``.
            public: the public key, as PEM.

        Raises:
            ValueError: ``public`` is no public key of an elliptic curve.
        """
        key = load_pem_public_key(public)
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise ValueError("a worker's key is one of an elliptic curve")
        own_name = f"{worker}.{self.job}"
        constraints = x509.BasicConstraints(False, None)
        certificate = self._sign(key, _name(own_name), _WORKER_USAGE, constraints, (own_name, self.job))
        return certificate.public_bytes(Encoding.PEM)

    def _sign(
        self,
        key: ec.EllipticCurvePublicKey,
        subject: x509.Name,
        usage: x509.KeyUsage,
        constraints: x509.BasicConstraints,
        names: tuple[str, ...],
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=SKEW_DAYS))
            .not_valid_after(now + datetime.timedelta(days=self._days))
            .add_extension(constraints, critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
            builder = builder.add_extension(alternatives, critical=False).add_extension(purposes, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def check(certificate: bytes, key: bytes, ca: bytes, source: str) -> tuple[str, ...]:
    """Check a worker's certificate, its key and the authorities that it trusts; return the names in the certificate.

    Args:
        certificate: chain of certificates, the worker's own first, as PEM.
        key: private key of the worker's own certificate, as PEM, not encrypted.
        ca: certificates of the authorities to trust, as PEM.
        source: where the certificate comes from, for errors.

    Raises:
        AuthenticationError: a file cannot be read, the key belongs to another certificate, or the certificate is not valid
            now or has no name.
    """
    try:
        own = x509.load_pem_x509_certificates(certificate)[0]
        public_key = load_pem_private_key(key, None).public_key()
        x509.load_pem_x509_certificates(ca)
    except UNREADABLE as error:
        raise AuthenticationError(
            f"{source}, its key and its authority must be PEM files, the key without a password: {error}"
        ) from error
    if _encoded(public_key) != _encoded(own.public_key()):
        raise AuthenticationError(
            f"{source} belongs to another key; give the certificate and the key that were made together"
        )
    _check_time(own, source)
    return _names(own, source)


def _check_time(certificate: x509.Certificate, source: str) -> None:
    now = datetime.datetime.now(datetime.timezone.utc)
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not begin <= now <= end:
        raise AuthenticationError(
            f"{source} is valid from {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC, and this machine's clock says "
            f"{now:%Y-%m-%d %H:%M}; make a new one, or set the clock"
        )


def _names(certificate: x509.Certificate, source: str) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        found = x509.SubjectAlternativeName([])
    hosts = [name for name in found.get_values_for_type(x509.DNSName) if "*" not in name]
    names = (*hosts, *(str(ip) for ip in found.get_values_for_type(x509.IPAddress)))
    if not names:
        raise AuthenticationError(
            f"{source} names no host: peers could not tell whose it is; make one with a subject alternative name"
        )
    return names


def _encoded(key: object) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return encoded


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


_AUTHORITY_USAGE, _WORKER_USAGE = _usage(True), _usage(False)
