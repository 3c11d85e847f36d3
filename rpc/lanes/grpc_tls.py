"""TLS of a gRPC server: its port, the certificates that it sees, and the number of handshakes that failed.

gRPC does not report TLS handshakes that failed at the server. But at the beginning of each it asks for the server's
certificate, and an honest dialer opens its first stream right after the handshake. So connections that open no stream are
counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import grpc

from ..security.joiners import HANDSHAKE_SECONDS
from ..security.tls import NO_CERTIFICATE, PeerCertificate, Tls, fingerprint

MOST_TLS_WAITING = 10_000
STREAM_SECONDS = HANDSHAKE_SECONDS  # time from the beginning of a connection to its first stream
NO_STREAM = "it opened no stream: it has no certificate of this job, or one that is not valid now, or speaks no TLS"


def add_port(server: Any, address: str, tls: Tls | None, begun: Callable[[], None]) -> int:
    """Let a server listen at ``address`` and return the port; 0 if that is not possible.

    Args:
        server: a server of grpc.aio.
        address: "host:port".
        tls: the server's certificate; None for no TLS.
        begun: called in a thread of gRPC when a TLS handshake begins.
    """
    try:
        if tls is None:
            return int(server.add_insecure_port(address))
        shown = grpc.ssl_server_certificate_configuration([(tls.key, tls.certificate)], tls.ca)
        return int(server.add_secure_port(address, grpc.dynamic_ssl_server_credentials(shown, begun, True)))
    except RuntimeError:  # gRPC gives no reason
        return 0


def certificate_of(context: Any) -> PeerCertificate:
    """Return the certificate that the dialer of a stream has shown."""
    facts = context.auth_context()
    if not (pem := facts.get("x509_pem_cert")):
        return NO_CERTIFICATE
    names = tuple(name.decode(errors="replace") for name in facts.get("x509_subject_alternative_name", ()))
    return PeerCertificate(fingerprint(pem[0]), names)


class TlsHandshakes:
    """TLS handshakes that have begun at a server, until a stream is opened or the time is over.

    Args:
        loop: the lane's loop.
        refused: called on the loop for each connection that opened no stream in time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, refused: Callable[[], None]) -> None:
        self._loop = loop
        self._refused = refused
        self._waiting: deque[asyncio.TimerHandle] = deque()  # a timer for each handshake, the oldest first
        self._closed = False

    def begun(self) -> None:
        """Note that a handshake begins. Any thread. For gRPC the result, None, means that the certificate is the same."""
        if not self._closed:
            self._loop.call_soon_threadsafe(self._add)

    def opened(self) -> None:
        """Note that a connection has opened its first stream. It does not matter which one, because they are only counted."""
        if self._waiting:
            self._waiting.popleft().cancel()

    def close(self) -> None:
        """Stop counting."""
        self._closed = True
        while self._waiting:
            self._waiting.pop().cancel()

    def _add(self) -> None:
        if self._closed:
            return
        if len(self._waiting) >= MOST_TLS_WAITING:
            self._refused()
        else:
            self._waiting.append(self._loop.call_later(STREAM_SECONDS, self._late))

    def _late(self) -> None:
        self._waiting.popleft()
        self._refused()
