"""Proof of the token between two launchers, inside a TLS connection whose certificate no authority has signed.

It is the proof by which workers know one another (``rpc/security/proofs.py``), with the token as its secret. The node dials,
and its content is the facts: who it is and what it runs. The host's content is empty. Both sign the certificate that the host
shows in TLS (RFC 5929 calls this binding ``tls-server-end-point``), so that a process in between is refused by both ends.
"""

from ...base.errors import AuthenticationError
from ...rpc.extend import PROOF_BYTES, AcceptorProof, DialerProof, protocol_of
from ..errors import NodeError, TokenError
from .connection import NodeConnection

NODE_PROTOCOL = 1  # of launchers; the facts tell that of workers
UNKNOWN_TOKEN = "it does not know the token of this job"
NO_PROOF = "it sent no proof of the token"


def prove(connection: NodeConnection, token: bytes, certificate: bytes, facts: bytes, deadline: float) -> None:
    """Prove the token to the host, and check that the host knows it.

    Args:
        connection: to the host, after the TLS handshake.
        token: the job's token.
        certificate: of the host, as TLS has shown it, in DER.
        facts: what the host is to know of this node.
        deadline: monotonic seconds.

    Raises:
        TokenError: the host does not know the token, or a process is in between.
        NodeError: the host is of another version.
        OSError: the connection broke, or the other end is no launcher.
    """
    proof = DialerProof(token, NODE_PROTOCOL)
    connection.send_bytes(proof.hello())
    challenge = connection.receive_bytes(PROOF_BYTES, deadline)
    if (protocol := protocol_of(challenge)) is None:
        raise ConnectionAbortedError("it does not answer as a launcher does")
    if protocol != NODE_PROTOCOL:
        raise NodeError(
            f"the launcher at --rdzv-endpoint speaks protocol {protocol}, this one {NODE_PROTOCOL}; install the same "
            f"version of telegrad on all nodes"
        )
    connection.send_bytes(proof.prove(challenge, certificate, facts))
    if proof.content_of(connection.receive_bytes(PROOF_BYTES, deadline)) is None:
        raise TokenError(
            "the process at --rdzv-endpoint does not know the token of this job; give all nodes the same one"
        )


class NodeProof:
    """Host's end of the exchange with one node.

    Args:
        connection: to the node, after the TLS handshake.
        token: the job's token.
        certificate: that this end shows in TLS, in DER.
    """

    def __init__(self, connection: NodeConnection, token: bytes, certificate: bytes) -> None:
        self._connection = connection
        self._proof = AcceptorProof(token, NODE_PROTOCOL)
        self._certificate = certificate

    def check(self, deadline: float) -> bytes:
        """Check the node's proof and return its facts.

        Raises:
            TokenError: it does not know the token, a process is in between, or it sends something else.
            OSError: the connection broke.
        """
        try:
            self._connection.send_bytes(self._proof.challenge(self._receive(deadline)))
        except AuthenticationError as error:
            raise TokenError(NO_PROOF) from error
        if (facts := self._proof.content_of(self._receive(deadline), self._certificate)) is None:
            raise TokenError(UNKNOWN_TOKEN)
        return facts

    def answer(self) -> None:
        """Prove the token to the node, which has proven it."""
        self._connection.send_bytes(self._proof.welcome(b""))

    def _receive(self, deadline: float) -> bytes:
        return self._connection.receive_bytes(PROOF_BYTES, deadline)
