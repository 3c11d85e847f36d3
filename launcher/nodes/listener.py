"""Listener for other launchers: accepts TLS connections whose other end proves the token, each in a thread of its own."""

import errno
import logging
import os
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...base import job_credentials
from ...rpc.extend import tls_context
from ..credentials import CredentialFolders
from ..errors import NodeError, TokenError
from .connection import NodeConnection
from .exchange import NO_PROOF, NodeProof
from .handshakes import PendingHandshakes
from .token import expired

if TYPE_CHECKING:
    from ...rpc.certificates import Authority

logger = logging.getLogger("telegrad.launcher")
NODE_HANDSHAKE_SECONDS = 10.0
CLOSED_SECONDS = 0.1  # after which it is seen that the listener is closed
MOST_PENDING = 64  # connections that have not proven the token
MOST_JOINING = 1024
NO_TLS = "it completed no TLS handshake"
PROBE = "it hung up before the TLS handshake, as a check of the port does"
HUNG_UP = (errno.ENOTCONN, errno.ECONNRESET, errno.EPIPE, ssl.SSL_ERROR_EOF)
NO_THREAD = "this machine gives no more threads"
EXPIRED = "the token of this job has expired"
Serve = Callable[[NodeConnection, bytes], None]


class _AcceptedSocket(ssl.SSLSocket):
    """Socket that is closed when it is dropped, as ``wrap_socket`` does if the peer hangs up meanwhile."""

    def __del__(self) -> None:
        self.close()


class NodeListener:
    """Listening port of a launcher.

    Args:
        host: name or address to listen at.
        port: its port.
        token: the job's token.
        authority: makes the certificate that this end shows.
        serve: called with each connection whose other end has proven the token, and the facts that it told; the connection is
            closed when it returns. It handles its own errors.
        probed: called with the address of each connection that hung up before the handshake; None counts them as refused.

    Attributes:
        refused: number of refused connections, by reason.

    Raises:
        NodeError: the address is taken, or not one of this machine.
    """

    def __init__(
        self,
        host: str,
        port: int,
        token: bytes,
        authority: "Authority",
        serve: Serve,
        probed: Callable[[str], None] | None = None,
    ) -> None:
        self._token = token
        self._probed = probed or partial(self._refuse, reason=PROBE)
        self._serve_proven = serve
        self.refused: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._context, self._certificate = _tls(authority)
        self._resources = ExitStack()
        self._resources.callback(self._log_counts)
        self._server = self._resources.enter_context(closing(_listen(host, port)))
        self._pending = PendingHandshakes(MOST_PENDING)
        self._closed = False
        self._threads: list[threading.Thread] = []  # for each connection; changed by the acceptor
        self._acceptor = _started(self._accept)

    def close(self, seconds: float) -> None:
        """Take no further connections, and wait for the threads, together at most so long."""
        self._closed = True
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + seconds
        self._acceptor.join(seconds)
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        self._resources.close()

    def _accept(self) -> None:
        while not self._closed:
            if not self._pending.reserve(CLOSED_SECONDS):
                continue
            try:
                self._accept_one()
            except OSError:
                self._pending.give_up()
                time.sleep(CLOSED_SECONDS)  # closed, or there are no descriptors

    def _accept_one(self) -> None:
        plain, (address, *_) = self._server.accept()
        try:
            handle = self._pending.begin(plain, str(address))
        except OSError:
            plain.close()
            raise
        self._threads = [each for each in self._threads if each.is_alive()]
        try:
            self._threads.append(_started(self._serve, plain, handle, str(address)))
        except RuntimeError:
            self._pending.end(handle)
            plain.close()
            self._refuse(str(address), NO_THREAD)

    def _serve(self, plain: socket.socket, handle: socket.socket, address: str) -> None:
        with ExitStack() as stack:
            stack.callback(plain.close)
            try:
                connection, facts = self._received(plain, handle, stack)
            except TokenError as error:
                self._refuse(address, str(error))
            except OSError as error:
                logger.debug("%s: %s", address, error)
                if error.errno in HUNG_UP:
                    self._probed(address)
                else:
                    self._refuse(address, NO_TLS)
            else:
                self._serve_proven(connection, facts)

    def _received(self, plain: socket.socket, handle: socket.socket, stack: ExitStack) -> tuple[NodeConnection, bytes]:
        try:
            plain.getpeername()  # fails if it has hung up
            stream = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
            connection = stack.enter_context(closing(NodeConnection(stack.enter_context(stream))))
            deadline = time.monotonic() + NODE_HANDSHAKE_SECONDS
            connection.handshake(deadline)
            try:
                return connection, self._prove(connection, deadline)
            except TokenError:
                raise
            except OSError as error:
                raise TokenError(NO_PROOF) from error
        finally:
            self._pending.end(handle)

    def _prove(self, connection: NodeConnection, deadline: float) -> bytes:
        proof = NodeProof(connection, self._token, self._certificate)
        facts = proof.check(deadline)
        if expired(self._token):
            raise TokenError(EXPIRED)
        proof.answer()
        return facts

    def _refuse(self, address: str, reason: str) -> None:
        with self._counting:
            self.refused[reason] += 1
            first = self.refused[reason] == 1
        if first:
            logger.warning(
                "the launcher refused a connection from %s: %s (further ones are only counted)", address, reason
            )

    def _log_counts(self) -> None:
        with self._counting:
            counts = dict(self.refused)
        if sum(counts.values()) > len(counts):  # else each has had its line
            told = ", ".join(f"{reason} ({count})" for reason, count in counts.items())
            logger.warning("the launcher refused %d connections: %s", sum(counts.values()), told)


def _started(work: Callable[..., None], *args: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=args, name="telegrad-node-listener", daemon=True)
    thread.start()
    return thread


def _tls(authority: "Authority") -> tuple[ssl.SSLContext, bytes]:
    """Return the context of the listening end, and the certificate that it shows, in DER."""
    issued = authority.issue("launcher")
    context = tls_context(ssl.PROTOCOL_TLS_SERVER)
    context.sslsocket_class = _AcceptedSocket
    with closing(CredentialFolders()) as folders:  # OpenSSL's context reads files
        files = {job_credentials.CERTIFICATE: issued.certificate, job_credentials.KEY: issued.key}
        folder = Path(folders.add("launcher", files)[job_credentials.VARIABLE])
        context.load_cert_chain(folder / job_credentials.CERTIFICATE, folder / job_credentials.KEY)
    return context, ssl.PEM_cert_to_DER_cert(issued.certificate.decode())


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listening(host, port)
    except socket.gaierror as error:
        raise NodeError(f"the host {host!r} of --rdzv-endpoint has no address: {error.strerror}") from error
    except OSError as error:
        raise NodeError(
            f"node 0 cannot listen at {host}:{port} ({error}): is another job there, or is the address another machine's? "
            f"node 0 is the machine that --rdzv-endpoint names"
        ) from error


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the first address of a host of this machine that can be had.

    Args:
        host: name or address.
        port: 0 for any.

    Raises:
        OSError: it has no address (``socket.gaierror``), or none can be had; all that were tried are listed.
    """
    problems = []
    for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            return socket.create_server(address[:2], family=family, backlog=MOST_JOINING)
        except OSError as error:
            problems.append(f"{address[0]}: {os.strerror(error.errno or 0)}")
    raise OSError("; ".join(problems))
