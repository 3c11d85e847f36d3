"""Proof of the token between two launchers, inside a TLS connection whose certificate nobody has vouched for yet.

    host -> node:  challenge
    node -> host:  nonce | mac | facts (who it is and what it runs)
    host -> node:  mac

Each mac is an HMAC-SHA256 under the token over its role, the challenge, the nonce, the facts and the certificate that the host
shows in TLS. So someone in between, who would have to show a certificate of its own, is refused by both ends, and no proof can
be replayed, reflected, or moved to another connection (RFC 5929 calls this binding ``tls-server-end-point``). The node proves
first: until then the host says nothing but a random number. The token is never sent.
"""

import hashlib
import hmac
import secrets

from ..errors import TokenError

NONCE_BYTES = 32
MAC_BYTES = 32
MOST_FACTS = 4096
REFUSED = "it does not know the token of this job"


class NodeProof:
    """Node's end of the exchange.

    Args:
        token: the job's token.
        certificate: of the host, as TLS has shown it, in DER.
        facts: what the host is to know of this node.
    """

    def __init__(self, token: bytes, certificate: bytes, facts: bytes) -> None:
        self._token = token
        self._certificate = certificate
        self._facts = facts
        self._transcript: tuple[bytes, ...] = ()

    def answer(self, challenge: bytes) -> bytes:
        """Return the proof that answers a challenge."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        self._transcript = (challenge, nonce, self._certificate, self._facts)
        return nonce + _mac(self._token, b"node", *self._transcript) + self._facts

    def check(self, mac: bytes) -> None:
        """Check the host's proof.

        Raises:
            TokenError: it does not know the token, or someone is in between.
        """
        if not hmac.compare_digest(mac, _mac(self._token, b"host", *self._transcript)):
            raise TokenError(
                "the process at --rdzv-endpoint does not know the token of this job; give all nodes the same one"
            )


class HostProof:
    """Host's end of the exchange with one node.

    Args:
        token: the job's token.
        certificate: that this end shows in TLS, in DER.
    """

    def __init__(self, token: bytes, certificate: bytes) -> None:
        self.challenge = secrets.token_bytes(NONCE_BYTES)
        self._token = token
        self._certificate = certificate
        self._transcript: tuple[bytes, ...] = ()

    def check(self, answer: bytes) -> bytes:
        """Check a node's answer and return its facts.

        Raises:
            TokenError: it does not know the token, or someone is in between.
        """
        nonce, mac = answer[:NONCE_BYTES], answer[NONCE_BYTES : NONCE_BYTES + MAC_BYTES]
        facts = answer[NONCE_BYTES + MAC_BYTES :]
        self._transcript = (self.challenge, nonce, self._certificate, facts)
        if not hmac.compare_digest(mac, _mac(self._token, b"node", *self._transcript)):
            raise TokenError(REFUSED)
        return facts

    def prove(self) -> bytes:
        """Return our own proof."""
        return _mac(self._token, b"host", *self._transcript)


def _mac(token: bytes, *parts: bytes) -> bytes:
    blocks = (len(part).to_bytes(4, "little") + part for part in parts)
    return hmac.new(token, b"".join(blocks), hashlib.sha256).digest()
