"""Who may speak at all: both ends of a connection prove that they know the job's secret, which itself is never sent.

Challenge and response, mutual, in three messages (Hello, Welcome, Proof): each side's proof is an HMAC-SHA256 under the
secret over its role and everything said so far, both sides' fresh nonces included, so that no proof can be replayed or
reflected. Nothing from a peer is unpickled before its proof was checked. Sans-IO: the lanes carry the messages.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from ..core.errors import AuthenticationError
from ..proto.telegrad_pb2 import Hello, Proof, Welcome, WorkerRecord

PROTOCOL = 1
NONCE_BYTES = 32
SECRET_VARIABLE = "TELEGRAD_SECRET"


def job_secret() -> bytes:
    """The job's secret: ``TELEGRAD_SECRET`` if the launcher set it, else one per user, made on first use (mode 0600).

    Raises:
        AuthenticationError: the user's secret file belongs to another user or can be read by others.
    """
    given = os.environ.get(SECRET_VARIABLE)
    return given.encode() if given else _user_secret(_secret_path())


def _secret_path() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "telegrad" / "secret"


def _user_secret(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        os.link(draft, path)  # atomic, and never over one that another process made meanwhile
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    facts = path.stat()
    if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        raise AuthenticationError(
            f"the secret in {path} is not yours alone (owner {facts.st_uid}, mode {stat.S_IMODE(facts.st_mode):o}); "
            f"delete the file, or set {SECRET_VARIABLE} to the same text for every worker"
        )
    return path.read_bytes()


class _Handshake:
    """What both ends share: the secret, their own record, and the transcript."""

    def __init__(self, secret: bytes, me: WorkerRecord) -> None:
        self._secret = secret
        self._me = me
        self._transcript = b""
        self.peer = WorkerRecord()

    def _proof(self, role: bytes) -> bytes:
        return hmac.new(self._secret, role + self._transcript, hashlib.sha256).digest()

    def _check(self, role: bytes, proof: bytes) -> None:
        if not hmac.compare_digest(proof, self._proof(role)):
            raise AuthenticationError(
                f"worker {self.peer.name!r} does not know this job's secret; start every worker with the same "
                f"{SECRET_VARIABLE} (telegrad run sets it), as the same user, or on the same job"
            )

    def session_token(self) -> str:
        """Ties further streams to this handshake; only its two ends can compute it."""
        return self._proof(b"session").hex()


class DialerHandshake(_Handshake):
    """The end that opened the connection."""

    def __init__(self, secret: bytes, me: WorkerRecord, expected_identity: bytes) -> None:
        super().__init__(secret, me)
        self._expected = expected_identity

    def hello(self) -> bytes:
        """The first message."""
        message = Hello(
            protocol=PROTOCOL,
            worker=self._me,
            nonce=secrets.token_bytes(NONCE_BYTES),
            expected_identity=self._expected,
        ).SerializeToString()
        self._transcript = _block(message)
        return message

    def prove(self, welcome: bytes) -> bytes:
        """Check the acceptor's proof and give ours.

        Raises:
            AuthenticationError: it does not know the secret.
        """
        message = Welcome.FromString(welcome)
        self.peer = message.worker
        self._transcript += _block(_unproven(message))
        self._check(b"acceptor", message.proof)
        return Proof(proof=self._proof(b"dialer")).SerializeToString()


class AcceptorHandshake(_Handshake):
    """The end that listens."""

    def welcome(self, hello: bytes) -> bytes:
        """Answer the first message with our proof.

        Raises:
            AuthenticationError: it speaks another protocol.
        """
        message = Hello.FromString(hello)
        if message.protocol != PROTOCOL or len(message.nonce) != NONCE_BYTES:
            raise AuthenticationError(
                f"a peer speaks protocol {message.protocol}, this worker {PROTOCOL}; use one version of telegrad"
            )
        self.peer = message.worker
        self.expected_identity = message.expected_identity
        answer = Welcome(worker=self._me, nonce=secrets.token_bytes(NONCE_BYTES))
        self._transcript = _block(hello) + _block(_unproven(answer))
        answer.proof = self._proof(b"acceptor")
        return answer.SerializeToString()

    def check(self, proof: bytes) -> None:
        """Check the dialer's proof.

        Raises:
            AuthenticationError: it does not know the secret.
        """
        self._check(b"dialer", Proof.FromString(proof).proof)


def _block(message: bytes) -> bytes:
    return len(message).to_bytes(4, "little") + message


def _unproven(message: Welcome) -> bytes:
    return Welcome(worker=message.worker, nonce=message.nonce).SerializeToString(deterministic=True)
