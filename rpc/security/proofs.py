"""Proof of a shared secret by both ends of a connection. The secret is never sent.

    dialer -> hello:       protocol | nonce
    acceptor -> challenge: protocol | nonce
    dialer -> proof:       the acceptor's nonce | mac | content
    acceptor -> welcome:   mac | content

The dialer proves first: until its proof is checked, the acceptor sends nothing but a random number. Each mac is an
HMAC-SHA256 with the secret as key. It covers the role of its sender, all messages before it, a certificate, and the content
that it signs. So no proof can be replayed, reflected or moved to another connection, and no content is read before its mac was
checked. The certificate is one that TLS shows on this connection, so that a process in between, which would have to show one
of its own, is refused.

Workers prove the job's secret so (``handshake.py``), and launchers the token (``launcher/nodes/exchange.py``): they say what
the contents are, and which end's certificate is signed. This module does no I/O.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct

from ...base.errors import AuthenticationError

NONCE_BYTES = 32
MAC_BYTES = 32
PROOF_BYTES = 6 * 1024  # no message is longer
MOST_CONTENT_BYTES = PROOF_BYTES - NONCE_BYTES - MAC_BYTES
GREETING = struct.Struct(f"<H{NONCE_BYTES}s")  # hello and challenge: protocol, nonce


def sign(secret: bytes, purpose: bytes, *parts: bytes) -> bytes:
    """Return the HMAC of ``parts`` for one purpose. For another purpose, or other parts of the same bytes, it differs."""
    blocks = (len(part).to_bytes(4, "little") + part for part in (purpose, *parts))
    return hmac.new(secret, b"".join(blocks), hashlib.sha256).digest()


def protocol_of(greeting: bytes) -> int | None:
    """Return the protocol that a hello or a challenge names; ``None`` if it is neither."""
    return int(GREETING.unpack(greeting)[0]) if len(greeting) == GREETING.size else None


class Proof:
    """State of one end: the secret, the protocol that it speaks, and the messages so far."""

    def __init__(self, secret: bytes, protocol: int) -> None:
        self._secret = secret
        self._protocol = protocol
        self._transcript: tuple[bytes, ...] = ()

    def sign(self, role: bytes, *content: bytes) -> bytes:
        """Return the mac of the messages so far and of a content, in a role; only the two ends can compute it."""
        return sign(self._secret, role, *self._transcript, *content)

    def _greeting(self, nonce: bytes) -> bytes:
        return GREETING.pack(self._protocol, nonce)


class DialerProof(Proof):
    """Proof at the end that dials."""

    def hello(self) -> bytes:
        """Return the first message."""
        message = self._greeting(secrets.token_bytes(NONCE_BYTES))
        self._transcript = (message,)
        return message

    def prove(self, challenge: bytes, certificate: bytes, content: bytes) -> bytes:
        """Return this end's proof, the answer to the acceptor's challenge.

        Args:
            challenge: a greeting (``protocol_of`` tells).
            certificate: that both ends see on this connection; empty without TLS.
            content: at most ``MOST_CONTENT_BYTES``.
        """
        self._transcript += (challenge, certificate, content)
        return GREETING.unpack(challenge)[1] + self.sign(b"dialer") + content

    def content_of(self, welcome: bytes) -> bytes | None:
        """Return the content of the acceptor's welcome; ``None`` if the acceptor does not know the secret."""
        mac, content = welcome[:MAC_BYTES], welcome[MAC_BYTES:]
        known = len(welcome) <= PROOF_BYTES and hmac.compare_digest(mac, self.sign(b"acceptor", content))
        return content if known else None


class AcceptorProof(Proof):
    """Proof at the end that listens. Its errors repeat nothing that the dialer sent.

    Attributes:
        nonce: the random number of its challenge.
    """

    def __init__(self, secret: bytes, protocol: int) -> None:
        super().__init__(secret, protocol)
        self.nonce = secrets.token_bytes(NONCE_BYTES)

    def challenge(self, hello: bytes) -> bytes:
        """Return the challenge, the answer to the dialer's first message.

        Raises:
            AuthenticationError: the message is no greeting.
        """
        if protocol_of(hello) is None:
            raise AuthenticationError("its first message is no greeting")
        message = self._greeting(self.nonce)
        self._transcript = (hello, message)
        return message

    def content_of(self, proof: bytes, certificate: bytes) -> bytes | None:
        """Return the content of the dialer's proof; ``None`` if the dialer does not know the secret.

        Args:
            proof: the dialer's message.
            certificate: that both ends see on this connection; empty without TLS.
        """
        nonce, mac, content = proof[:NONCE_BYTES], proof[NONCE_BYTES:][:MAC_BYTES], proof[NONCE_BYTES + MAC_BYTES :]
        self._transcript += (certificate, content)
        known = hmac.compare_digest(mac, self.sign(b"dialer"))
        return content if known and nonce == self.nonce and len(proof) <= PROOF_BYTES else None

    def welcome(self, content: bytes) -> bytes:
        """Return this end's proof, with a content."""
        return self.sign(b"acceptor", content) + content
