"""Handshake of two workers: both prove that they know the job's secret, and say which workers they are.

``proofs.py`` is the exchange. The dialer's content is an ``Introduction``: its record, the worker it expects, the address it
dialed. The acceptor's is a ``Welcome``: its record, or why it refuses. Nothing is parsed or unpickled before its mac was
checked. The address that was dialed is signed. So if a process in between passes a handshake on to a worker at another
address, both ends refuse it.

Under TLS the proof also signs the certificate that the dialer shows on this connection. The acceptor compares it with the
certificate that it sees. So the process that knows the secret is the other end of the TLS connection, and all later frames,
which TLS protects, are from it. (In TLS the dialer signs the whole TLS handshake, the acceptor's certificate included, with
the key of its certificate: RFC 8446, section 4.4.3.)

This module does no I/O: lanes carry the messages.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import NamedTuple

from ...base import job_credentials
from ...base.errors import AuthenticationError
from ...proto.rpc_pb2 import Introduction, Welcome, WorkerRecord
from .private_file import open_private
from .proofs import MAC_BYTES, MOST_CONTENT_BYTES, AcceptorProof, DialerProof, protocol_of
from .tls import NO_CERTIFICATE, PeerCertificate, Tls

PROTOCOL = 7
SOCKET_NAME_BYTES = 16
SOCKET_TOKEN_BYTES = MAC_BYTES
SECRET_VARIABLE = "TELEGRAD_SECRET"
SECRET_BYTES = 16
SAME_SECRET = (
    f"start every worker with the same {SECRET_VARIABLE} (telegrad run sets it), as the same user, or on the same job"
)


def job_secret() -> bytes:
    """Return the job's secret: ``TELEGRAD_SECRET``, else the launcher's, else the user's own, made on first use (mode 0600).

    Raises:
        AuthenticationError: the secret is too short, or the user's secret file cannot be used, or other users can read it.
    """
    if (given := os.environ.get(SECRET_VARIABLE)) is not None:
        return check_secret(os.fsencode(given), SECRET_VARIABLE)  # the bytes may be no valid text
    if folder := job_credentials.folder():
        return check_secret(_read_secret(folder / job_credentials.SECRET), str(folder))
    path = _secret_path()
    return check_secret(_user_secret(path), str(path))


def check_secret(secret: bytes, source: str) -> bytes:
    """Return ``secret`` if it is long enough.

    Raises:
        AuthenticationError: it is so short that others could guess it.
    """
    if len(secret) < SECRET_BYTES:
        raise AuthenticationError(
            f"{source} holds a secret of {len(secret)} bytes, which others could guess; use at least {SECRET_BYTES} random "
            f"bytes, such as `python -c 'import secrets; print(secrets.token_hex(32))'` prints"
        )
    return secret


def _secret_path() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "telegrad" / "secret"


def _user_secret(path: Path) -> bytes:
    if not os.path.lexists(path):
        try:
            _make_secret(path)
        except OSError as error:
            raise _unusable(path, error) from error
    return _read_secret(path)


def _read_secret(path: Path) -> bytes:
    try:
        descriptor = open_private(str(path), os.O_RDONLY, stat.S_IRWXG | stat.S_IRWXO)
    except OSError as error:
        raise _unusable(path, error) from error
    with open(descriptor, "rb") as file:
        return file.read()


def _unusable(path: Path, error: OSError) -> AuthenticationError:
    return AuthenticationError(
        f"the file of your secret, {path}, cannot be used ({error.strerror}); it must be yours alone: delete it, or set "
        f"{SECRET_VARIABLE} to the same text for every worker"
    )


def _make_secret(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        os.link(draft, path)  # atomic, and fails if another process has made the file meanwhile
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)


class SocketTokens(NamedTuple):
    """Tokens of a connection's socket, which only the two ends of its handshake can compute.

    Attributes:
        name: identifies the connection; it is no secret.
        dialer: the dialer's proof that the socket belongs to the connection.
        acceptor: the acceptor's proof.
    """

    name: bytes
    dialer: bytes
    acceptor: bytes


class _Handshake:
    """State of one end: its proof of the secret, its own record, and the peer's record."""

    _proof: DialerProof | AcceptorProof

    def __init__(self, me: WorkerRecord) -> None:
        self._me = me
        self.peer = WorkerRecord()

    def session_token(self) -> str:
        """Return a token that ties further streams to this handshake; only its two ends can compute it."""
        return self._proof.sign(b"session").hex()

    def socket_tokens(self, purpose: str) -> SocketTokens:
        """Return the tokens that identify the socket of this connection for ``purpose``."""
        name, dialer, acceptor = (
            self._proof.sign(f"socket for {purpose}: {what}".encode()) for what in ("name", "dialer", "acceptor")
        )
        return SocketTokens(name[:SOCKET_NAME_BYTES], dialer, acceptor)


class DialerHandshake(_Handshake):
    """Handshake at the end that dials.

    Args:
        secret: the job's secret.
        me: this worker.
        expected_identity: the worker that should answer; empty for the host of the rendezvous.
        address: the address that is dialed, as its worker announces it: ``grpc://127.0.0.1:4711``.
        certificate: fingerprint of the certificate that this end shows on the connection; empty without TLS.
    """

    def __init__(
        self, secret: bytes, me: WorkerRecord, expected_identity: bytes, address: str, certificate: bytes = b""
    ) -> None:
        super().__init__(me)
        self._proof: DialerProof = DialerProof(secret, PROTOCOL)
        self._expected = expected_identity
        self._address = address
        self._certificate = certificate

    def hello(self) -> bytes:
        """Return the first message."""
        return self._proof.hello()

    def prove(self, challenge: bytes) -> bytes:
        """Return this end's proof, the answer to the acceptor's challenge.

        Raises:
            AuthenticationError: the challenge came from no worker, or from a worker with another protocol.
        """
        _check_protocol(challenge, f"the process that answers at {self._address}")
        content = Introduction(
            worker=self._me, expected_identity=self._expected, address=self._address
        ).SerializeToString()
        if len(content) > MOST_CONTENT_BYTES:
            raise AuthenticationError(
                f"the name, addresses and script path of worker {self._me.name!r} take {len(content)} bytes, too long for a "
                f"handshake; start it from a folder with a shorter path"
            )
        return self._proof.prove(challenge, self._certificate, content)

    def check(self, welcome: bytes) -> None:
        """Check the acceptor's proof.

        Raises:
            AuthenticationError: the acceptor does not know the secret, or is not the worker that was dialed.
            ConnectionAbortedError: the acceptor knows the secret, and refuses this worker.
        """
        if (content := self._proof.content_of(welcome)) is None:
            raise AuthenticationError(
                f"the process that answers at {self._address} does not know this job's secret; {SAME_SECRET}"
            )
        message = Welcome.FromString(content)
        if message.refusal:
            raise ConnectionAbortedError(message.refusal)
        if self._expected not in (b"", message.worker.identity):
            raise AuthenticationError(f"another worker, {message.worker.name!r}, answers at {self._address}")
        if self._address not in message.worker.addresses:
            raise AuthenticationError(
                f"worker {message.worker.name!r} answers at {self._address}, which it does not announce"
            )
        self.peer = message.worker


class AcceptorHandshake(_Handshake):
    """Handshake at the end that listens. Its errors repeat nothing that the dialer sent."""

    def __init__(self, secret: bytes, me: WorkerRecord) -> None:
        super().__init__(me)
        self._proof: AcceptorProof = AcceptorProof(secret, PROTOCOL)
        self.nonce = self._proof.nonce
        self.expected_identity = b""
        self.certificate = b""
        self.other_protocol = False  # the dialer has one; it is answered nevertheless, so that it can tell its user

    def challenge(self, hello: bytes) -> bytes:
        """Return the challenge, the answer to the dialer's first message.

        Raises:
            AuthenticationError: the message is no greeting.
        """
        message = self._proof.challenge(hello)
        self.other_protocol = protocol_of(hello) != PROTOCOL
        return message

    def check(self, proof: bytes, certificate: PeerCertificate = NO_CERTIFICATE) -> None:
        """Check the dialer's proof, and set ``peer``, ``expected_identity`` and ``certificate`` from it.

        Args:
            proof: the dialer's message.
            certificate: certificate that the dialer shows on the connection.

        Raises:
            AuthenticationError: the dialer does not know the secret, is not the end of this TLS connection, shows another
                worker's certificate, or dialed another worker's address.
        """
        if (content := self._proof.content_of(proof, certificate.fingerprint)) is None:
            raise AuthenticationError("it does not know this job's secret")
        message = Introduction.FromString(content)
        if certificate.fingerprint and message.worker.certificate_name not in certificate.names:
            raise AuthenticationError("it shows the certificate of another worker")
        if message.address not in self._me.addresses:
            raise AuthenticationError("it dialed an address of another worker, and was passed on to this one")
        self.peer, self.expected_identity = message.worker, message.expected_identity
        self.certificate = certificate.fingerprint

    def welcome(self, refusal: str = "") -> bytes:
        """Return this end's proof, with this worker's record, or the reason why the dialer is refused."""
        message = Welcome(refusal=refusal) if refusal else Welcome(worker=self._me)
        return self._proof.welcome(message.SerializeToString())


class Credentials(NamedTuple):
    """Credentials of a worker: its record, the job's secret to prove it with, and its TLS certificate, if any."""

    record: WorkerRecord
    secret: bytes
    tls: Tls | None = None

    def dialer_handshake(self, expected_identity: bytes, address: str, certificate: bytes = b"") -> DialerHandshake:
        """Return the dialer's end of a handshake.

        Args:
            expected_identity: identity of the worker that should answer; empty for any.
            address: where that worker listens.
            certificate: fingerprint of the certificate that this end shows; empty without TLS.
        """
        return DialerHandshake(self.secret, self.record, expected_identity, address, certificate)

    def acceptor_handshake(self) -> AcceptorHandshake:
        """Return the acceptor's end of a handshake."""
        return AcceptorHandshake(self.secret, self.record)


def _check_protocol(greeting: bytes, sender: str) -> None:
    protocol = protocol_of(greeting)
    if protocol is None:
        raise AuthenticationError(f"{sender} is no worker of this job")
    if protocol != PROTOCOL:
        raise AuthenticationError(
            f"{sender} speaks protocol {protocol}, this worker {PROTOCOL}; use one version of telegrad"
        )
