"""gRPC channel to a peer, with TLS or without, and the reason if it does not connect.

gRPC reports a refused connection only in words. So when gRPC has failed, a plain socket is connected, whose error tells the
reason. It must not be connected before: a peer counts TLS handshakes without a stream as those of strangers.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

import grpc

from ...base.errors import AuthenticationError
from ..threads.ioloop import within

if TYPE_CHECKING:
    from ..security.tls import Tls

PROBE_SECONDS = 10.0
CLOSED = "it closed the connection when it had seen this worker's certificate; does it trust the same authority?"
# Parts of OpenSSL's reasons: the other end is no peer of this job, or says that this worker is none.
REFUSALS = ("CERTIFICATE", "UNKNOWN_CA", "WRONG_VERSION_NUMBER")
Options = list[tuple[str, Any]]


def open_channel(target: str, tls: Tls | None, name: str, options: Options) -> Any:
    """Return a channel to ``target``, which connects when it is used.

    Args:
        target: "host:port".
        tls: what this end shows; None for no TLS.
        name: name that the certificate of the other end must carry.
        options: options of gRPC.
    """
    if tls is None:
        return grpc.aio.insecure_channel(target, options=options)
    credentials = grpc.ssl_channel_credentials(tls.ca, tls.key, tls.certificate)
    return grpc.aio.secure_channel(target, credentials, options=[*options, ("grpc.ssl_target_name_override", name)])


async def connect(channel: grpc.aio.Channel, target: str, tls: Tls | None, name: str, seconds: float) -> None:
    """Wait until the peer's transport answers. The peer needs no Python thread for that.

    Args:
        channel: a channel to the peer.
        target: where the peer listens, "host:port".
        tls: what this end shows; None without TLS.
        name: name that the certificate of the other end must carry.
        seconds: time to wait for the answer.

    Raises:
        ConnectionResetError: the peer does not answer.
        ConnectionRefusedError: no process listens there.
        AuthenticationError: the peer's certificate is not the expected one, or the peer has no TLS.
        OSError: the peer cannot be reached.
    """
    try:
        await within(seconds, _ready(channel))
    except asyncio.TimeoutError:
        raise ConnectionResetError(f"it took the connection and said nothing for {seconds:g} s") from None
    except ConnectionResetError:
        # Only now: gRPC reports a refusal in words, a socket by an error.
        await _probe(target, tls, name)
        raise


async def _ready(channel: grpc.aio.Channel) -> None:
    while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            raise ConnectionResetError(
                "its transport did not connect; does another program listen there, or has one end TLS, and the other not?"
            )
        await channel.wait_for_state_change(state)


async def _probe(target: str, tls: Tls | None, name: str) -> None:
    """Raise the error of a plain socket if ``target`` cannot be connected to."""
    host, _, port = target.rpartition(":")
    secured = {} if tls is None else {"ssl": tls.client_context(), "server_hostname": name}
    opening = asyncio.open_connection(host.strip("[]"), int(port), **secured)  # type: ignore[arg-type]
    try:
        reader, writer = await within(PROBE_SECONDS, opening, lambda opened: opened[1].close())
        try:
            # In TLS 1.3 a server refuses the dialer's certificate after the handshake.
            if tls is not None and not await within(PROBE_SECONDS, reader.read(1)):
                raise ConnectionResetError(CLOSED)
        finally:
            writer.close()
            await writer.wait_closed()
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or str(error.reason)
        advice = "give all workers certificates of one authority, or start them with one launcher"
        if "expired" in why or "not yet valid" in why:
            advice = "make certificates that are valid for the whole job, or set the clocks"
        problem = (
            f"there is no TLS connection with {target}, which should show the certificate of {name!r}: {why}; {advice}"
        )
        if any(word in str(error.reason) for word in REFUSALS):
            raise AuthenticationError(problem) from error
        raise ConnectionResetError(problem) from error
