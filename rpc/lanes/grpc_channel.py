"""gRPC channel to a peer, with TLS or without, and the reason if it does not connect.

gRPC tells a refusal only in words. So the reason is asked of a socket, after gRPC has failed: a socket opened before would
look like a stranger to a peer that counts TLS handshakes which lead to nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import grpc

from ...core.errors import AuthenticationError
from ..tls import Tls

PROBE_SECONDS = 10.0
REFUSALS = (
    "CERTIFICATE",
    "UNKNOWN_CA",
    "WRONG_VERSION_NUMBER",
)  # in OpenSSL's reasons: it is no peer of ours, or says so
Options = list[tuple[str, Any]]


def open_channel(target: str, tls: Tls | None, name: str, options: Options) -> Any:
    """Return a channel to ``target``, which connects when it is used.

    Args:
        target: "host:port".
        tls: what this end shows; None for no TLS.
        name: name that the certificate of the other end must carry.
        options: gRPC's options.
    """
    if tls is None:
        return grpc.aio.insecure_channel(target, options=options)
    credentials = grpc.ssl_channel_credentials(tls.ca, tls.key, tls.certificate)
    return grpc.aio.secure_channel(target, credentials, options=[*options, ("grpc.ssl_target_name_override", name)])


async def connect(channel: grpc.aio.Channel, target: str, tls: Tls | None, name: str, seconds: float) -> None:
    """Wait until the peer's transport answers, which needs no thread of its Python.

    Args:
        channel: a channel to it.
        target: where it listens, "host:port".
        tls: what this end shows; None without TLS.
        name: name that the certificate of the other end must carry.
        seconds: time that the peer's system may take.

    Raises:
        ConnectionResetError: it does not answer.
        ConnectionRefusedError: nobody listens there.
        AuthenticationError: its certificate is not the one to expect, or it speaks no TLS.
        OSError: it cannot be reached.
    """
    try:
        await asyncio.wait_for(_ready(channel), seconds)
    except asyncio.TimeoutError:
        raise ConnectionResetError(f"it took the connection and said nothing for {seconds:g} s") from None
    except ConnectionResetError:
        # Only now: gRPC tells a refusal in words, a socket tells it by an error.
        await _probe(target, tls, name)
        raise


async def _ready(channel: grpc.aio.Channel) -> None:
    while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            raise ConnectionResetError("its transport did not connect; has one end TLS, and the other not?")
        await channel.wait_for_state_change(state)


async def _probe(target: str, tls: Tls | None, name: str) -> None:
    """Fail as a socket does if ``target`` cannot be connected to."""
    host, _, port = target.rpartition(":")
    secured = {} if tls is None else {"ssl": tls.client_context(), "server_hostname": name}
    opening = asyncio.open_connection(host.strip("[]"), int(port), **secured)  # type: ignore[arg-type]
    try:
        reader, writer = await asyncio.wait_for(opening, PROBE_SECONDS)
        try:
            if tls is not None:  # in TLS 1.3 a server refuses the dialer's certificate after the handshake
                await asyncio.wait_for(reader.read(1), PROBE_SECONDS)
        finally:
            writer.close()
            await writer.wait_closed()
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or str(error.reason)
        problem = (
            f"there is no TLS connection with {target}, which should show the certificate of {name!r}: {why}; give all workers "
            f"certificates of one authority, or start them with one launcher"
        )
        if any(word in str(error.reason) for word in REFUSALS):
            raise AuthenticationError(problem) from error
        raise ConnectionResetError(problem) from error
