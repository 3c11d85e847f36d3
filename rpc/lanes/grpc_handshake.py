"""Handshake over gRPC, in the metadata (the HTTP/2 headers) of two streams.

The dialer opens one stream that carries hello and challenge. Then it opens the stream that it wants, which carries proof and
welcome. So no message of a peer is read before the handshake is over. The memory that a stranger can take is limited: to the
metadata, which gRPC limits, and to the bytes that HTTP/2's flow control lets it send on a stream that is not read (64 KiB).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NoReturn

import grpc

from ...base.errors import AuthenticationError
from ..security.handshake import SAME_SECRET, AcceptorHandshake, DialerHandshake
from ..security.joiners import Joiners
from ..security.proofs import NONCE_BYTES
from .grpc_tls import NO_STREAM, TlsHandshakes, certificate_of

if TYPE_CHECKING:
    from .lane import LaneListener

CHALLENGE = "/telegrad.Handshake/Challenge"
HELLO_KEY, CHALLENGE_KEY = "telegrad-hello-bin", "telegrad-challenge-bin"
PROOF_KEY, WELCOME_KEY = "telegrad-proof-bin", "telegrad-welcome-bin"
OTHER_PROTOCOL = "it speaks another protocol than this worker; use one version of telegrad"


async def introduce(channel: grpc.aio.Channel, method: str, handshake: DialerHandshake) -> Any:
    """Open a stream with the dialer's side of the handshake, and return it.

    Raises:
        AuthenticationError: the acceptor is not the expected worker, or one of the two does not know the secret.
        ConnectionAbortedError: the acceptor knows the secret, and refuses this worker.
        ConnectionResetError: the acceptor closed the connection.
    """
    asking = channel.stream_stream(CHALLENGE)(metadata=((HELLO_KEY, handshake.hello()),))
    try:
        challenge = await _answer(asking, CHALLENGE_KEY)
    finally:
        asking.cancel()
    stream = channel.stream_stream(method)(metadata=((PROOF_KEY, handshake.prove(challenge)),))
    handshake.check(await _answer(stream, WELCOME_KEY))
    return stream


async def _answer(stream: Any, key: str) -> bytes:
    # The answer of a stream that ends at once is in the trailing metadata: gRPC may have lost the initial metadata.
    if answer := entry(await stream.initial_metadata(), key) or entry(await stream.trailing_metadata(), key):
        return answer
    code, details = await stream.code(), await stream.details()
    if code == grpc.StatusCode.UNAUTHENTICATED:
        raise AuthenticationError(f"it turned this worker away; {SAME_SECRET}")
    raise ConnectionResetError(f"the peer hung up during the handshake: {details}")


def entry(metadata: Any, key: str) -> bytes:
    """Return one binary entry of a stream's metadata; empty if there is none."""
    return next((bytes(value) for name, value in metadata or () if name == key and isinstance(value, bytes)), b"")


class Acceptor:
    """Acceptor's side of the handshake, for all joiners of one agent. Used on the lane's loop.

    Attributes:
        last_refusal: address of the joiner that was refused last, and the reason; empty if none was refused.
    """

    def __init__(self, listener: LaneListener) -> None:
        self._listener = listener
        self._joiners: Joiners[AcceptorHandshake] = Joiners()
        self.last_refusal = ""
        self.tls_handshakes = TlsHandshakes(
            asyncio.get_running_loop(), lambda: self._refuse("this worker's port", NO_STREAM)
        )

    async def challenge(self, _: Any, context: Any) -> None:
        """Send a joiner its challenge."""
        self.tls_handshakes.opened()
        handshake = self._listener.acceptor_handshake()
        try:
            challenge = handshake.challenge(entry(context.invocation_metadata(), HELLO_KEY))
        except AuthenticationError as error:
            await self.turn_away(context, str(error))
        if handshake.other_protocol:
            self._refuse(address_of(context), OTHER_PROTOCOL)
        for address, reason in self._joiners.add(handshake.nonce, address_of(context), handshake, time.monotonic()):
            self._refuse(address, reason)
        context.set_trailing_metadata(((CHALLENGE_KEY, challenge),))

    async def authenticate(self, context: Any) -> AcceptorHandshake:
        """Return the handshake with which a stream was opened; end the stream if its proof is wrong."""
        proof = entry(context.invocation_metadata(), PROOF_KEY)
        handshake = self._joiners.take(proof[:NONCE_BYTES], address_of(context), time.monotonic())
        if handshake is None:
            await self.turn_away(context, "it did not answer a challenge", grpc.StatusCode.UNAVAILABLE)
        try:
            handshake.check(proof, certificate_of(context))
        except AuthenticationError as error:
            await self.turn_away(context, str(error))
        return handshake

    async def turn_away(
        self, context: Any, reason: str, code: grpc.StatusCode = grpc.StatusCode.UNAUTHENTICATED
    ) -> NoReturn:
        """End a stream and count a refused joiner. The joiner is not told the reason."""
        self._refuse(address_of(context), reason)
        await context.abort(code)
        raise AssertionError("abort() has raised what ends the handler")

    def _refuse(self, address: str, reason: str) -> None:
        self.last_refusal = f"{address}: {reason}"
        self._listener.refused(address, reason)


def address_of(context: Any) -> str:
    """Return where a stream comes from, without the port."""
    return str(context.peer()).rpartition(":")[0]


def translate(error: Exception, target: str) -> Exception:
    """Return the error that ended a connection as an ``OSError`` or ``AuthenticationError``.

    gRPC and asyncio have many other errors for "the other end is gone".
    """
    if isinstance(error, (OSError, AuthenticationError)):
        return error
    details = f"{type(error).__name__}: {error}"
    if isinstance(error, grpc.aio.AioRpcError):
        details = error.details() or str(error.code())
    return ConnectionResetError(f"the connection to {target} broke: {details}")
