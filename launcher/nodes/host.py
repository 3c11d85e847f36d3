"""Host of a job on several nodes: lets the nodes in, shares ranks and certificates, and tells all how the job ends.

It runs in threads of the launcher of node 0: one that accepts, and one for each node. Node 0 itself joins like every other.
"""

import json
import logging
import os
import socket
import ssl
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from ...core import job_credentials
from ..credentials import CredentialFolders
from ..environment import reserve_port
from ..errors import NodeError, TokenError
from .assignment import Assignment, NodeFacts, Placement
from .connection import NodeConnection
from .exchange import MOST_FACTS, NONCE_BYTES, HostProof
from .outcome import Outcome, Outcomes

logger = logging.getLogger("telegrad.launcher")
HANDSHAKE_SECONDS = 10.0
MOST_UNPROVEN = 64
CREDENTIAL_SECONDS = 60.0
VERDICT_SECONDS = 20.0  # after the first failure: time in which the other nodes end
NO_TLS = "it completed no TLS handshake"
NO_PROOF = "it sent no proof of the token"


class Host:
    """Host of one job.

    Args:
        host: name or address at which the nodes reach it.
        port: port of the rendezvous.
        listen_host: address to listen at; None for ``host``.
        token: the job's token.
        facts: of node 0.
        join_seconds: see ``Assignment``.
        timeout: seconds in which the nodes must have come.

    Attributes:
        refused: number of refused connections, by reason.

    Raises:
        NodeError: the address is taken, or not one of this machine.
    """

    def __init__(
        self,
        host: str,
        port: int,
        listen_host: str | None,
        token: bytes,
        facts: NodeFacts,
        join_seconds: float,
        timeout: float,
    ) -> None:
        from ...rpc.certificates import Authority

        self._host = host
        self._token = token
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._resources = ExitStack()
        self._folders = self._resources.enter_context(closing(CredentialFolders()))
        self._authority = Authority(f"{self._folders.root.name}.telegrad".lower().replace("_", "-"))
        self._context, self._certificate = self._tls()
        self._server = self._resources.enter_context(closing(_listen(listen_host or host, port)))
        self._reserved = self._resources.enter_context(closing(reserve_port(listen_host or host)))
        self._changed = threading.Condition()
        self._assignment = Assignment(facts, join_seconds)
        self._placements: list[Placement] | None = None
        self._failure = ""
        self._outcomes: Outcomes | None = None
        self._failed_at: float | None = None
        self._connections: dict[int, NodeConnection] = {}  # of nodes, by their place
        self._unproven = threading.Semaphore(MOST_UNPROVEN)
        self.refused: Counter[str] = Counter()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self, seconds: float = 5.0) -> None:
        """End: wait until the nodes have heard the verdict, at most some seconds, and free the port."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + seconds
        for thread in self._threads[1:]:
            thread.join(max(deadline - time.monotonic(), 0.0))
        for connection in list(self._connections.values()):
            connection.close()
        for thread in self._threads:
            thread.join(seconds)
        self._resources.close()

    def _tls(self) -> tuple[ssl.SSLContext, bytes]:
        issued = self._authority.issue("launcher")
        files = {job_credentials.CERTIFICATE: issued.certificate, job_credentials.KEY: issued.key}
        folder = Path(self._folders.add("launcher", files)[job_credentials.VARIABLE])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(folder / job_credentials.CERTIFICATE, folder / job_credentials.KEY)
        return context, ssl.PEM_cert_to_DER_cert(issued.certificate.decode())

    def _start(self, work: Any, *args: Any) -> None:
        self._threads = [*self._threads[:1], *(each for each in self._threads[1:] if each.is_alive())]
        self._threads.append(threading.Thread(target=work, args=args, name="telegrad-node-host", daemon=True))
        self._threads[-1].start()

    # -- letting nodes in

    def _accept(self) -> None:
        while True:
            try:
                plain, address = self._server.accept()
            except OSError:
                return  # closed
            if self._unproven.acquire(blocking=False):
                self._start(self._serve, plain, str(address[0]))
            else:
                plain.close()
                self._refuse(str(address[0]), "too many had not proven themselves")

    def _serve(self, plain: socket.socket, address: str) -> None:
        connection = None
        try:
            try:
                connection = NodeConnection(
                    self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
                )
                facts = self._prove(connection)
            finally:
                self._unproven.release()
            self._serve_node(connection, facts)
        except TokenError as error:
            self._refuse(address, str(error))
        except (OSError, NodeError) as error:
            reason = NO_TLS if connection is None or connection.stream.version() is None else NO_PROOF
            self._refuse(address, reason)
            logger.debug("%s: %s", address, error)
        finally:
            (connection or plain).close()

    def _prove(self, connection: NodeConnection) -> NodeFacts:
        deadline = time.monotonic() + HANDSHAKE_SECONDS
        connection.handshake(deadline)
        proof = HostProof(self._token, self._certificate)
        connection.send_bytes(proof.challenge)
        facts = proof.check(connection.receive_bytes(2 * NONCE_BYTES + MOST_FACTS, deadline))
        connection.send_bytes(proof.prove())
        told = json.loads(facts)
        return NodeFacts(**{**told, "nodes": tuple(told["nodes"])})

    def _refuse(self, address: str, reason: str) -> None:
        self.refused[reason] += 1
        if self.refused[reason] == 1:
            logger.warning(
                "the launcher refused a connection from %s: %s (further ones are only counted)", address, reason
            )

    # -- one node, from here on trusted

    def _serve_node(self, connection: NodeConnection, facts: NodeFacts) -> None:
        try:
            with self._changed:
                place = self._assignment.join(facts, time.monotonic())
                self._connections[place] = connection
                self._changed.notify_all()
            placement = self._wait_for_placement(place)
            connection.send({"placement": placement.as_message()})
            self._hand_out_certificates(connection, placement)
        except NodeError as error:
            with suppress(OSError):
                connection.send({"refused": str(error)})
            return
        except OSError as error:
            self._ended(place, _gone(facts, place, error))
            return
        self._watch(connection, facts, place)

    def _wait_for_placement(self, place: int) -> Placement:
        with self._changed:
            while not self._assignment.complete(time.monotonic()) and not self._failure:
                if time.monotonic() > self._deadline:
                    self._failure = f"the nodes did not come within {self._timeout:g} s: {self._assignment.missing()}"
                self._changed.wait(0.2)
            if not self._failure and self._placements is None:
                self._place()
            self._changed.notify_all()
            if self._failure:
                raise NodeError(self._failure)
            assert self._placements is not None
            return self._placements[place]

    def _place(self) -> None:
        try:
            self._placements = self._assignment.placements(self._host, self._reserved.getsockname()[1])
            self._outcomes = Outcomes([placement.workers for placement in self._placements])
        except NodeError as error:
            self._failure = str(error)

    def _hand_out_certificates(self, connection: NodeConnection, placement: Placement) -> None:
        keys = connection.receive(time.monotonic() + CREDENTIAL_SECONDS)["keys"]
        ranks = range(placement.first_rank, placement.first_rank + len(placement.workers))
        certificates = [self._authority.certify(f"rank{rank}", key.encode()).decode() for rank, key in zip(ranks, keys)]
        connection.send(
            {
                "secret": self._folders.secret,
                "authority": self._authority.certificate.decode(),
                "certificates": certificates,
            }
        )

    def _watch(self, connection: NodeConnection, facts: NodeFacts, place: int) -> None:
        try:
            outcome = Outcome.from_message(connection.receive()["outcome"])
        except (OSError, NodeError) as error:
            outcome = _gone(facts, place, error)
        self._ended(place, outcome)
        verdict = self._wait_for_verdict()
        with suppress(OSError):
            connection.send({"verdict": verdict})
            connection.receive(time.monotonic() + HANDSHAKE_SECONDS)  # until it hangs up

    def _ended(self, place: int, outcome: Outcome) -> None:
        with self._changed:
            if self._outcomes is None:
                self._failure = self._failure or outcome.cause
            else:
                self._outcomes.add(place, outcome)
                if self._outcomes.failed and self._failed_at is None:
                    self._failed_at = time.monotonic()
            self._changed.notify_all()
            running = [other for other in self._connections if self._outcomes is None or not self._outcomes.has(other)]
        if outcome.exit_code:
            for other in running:
                with suppress(OSError):
                    self._connections[other].send({"end": outcome.cause or "another node has ended"})

    def _wait_for_verdict(self) -> dict[str, Any]:
        with self._changed:
            assert self._outcomes is not None
            while not self._outcomes.complete:
                if self._failed_at is not None and time.monotonic() > self._failed_at + VERDICT_SECONDS:
                    break
                self._changed.wait(0.5)
            found = self._outcomes.verdict()
        return {} if found is None else {"node": found[0], **found[1].as_message()}


def _gone(facts: NodeFacts, place: int, error: Exception) -> Outcome:
    text = f"the launcher at {facts.host} is gone, or cut off ({error})"
    return Outcome(1, text, gone=True)


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NodeError(f"the host {host!r} of --rdzv-endpoint has no address: {error.strerror}") from error
    problems = []
    for family, _, _, _, address in found:
        try:
            return socket.create_server(address[:2], family=family)
        except OSError as error:
            problems.append(f"{address[0]}: {os.strerror(error.errno or 0)}")
    raise NodeError(
        f"node 0 cannot listen at {host}:{port} ({'; '.join(problems)}): is another job there, or is the address another "
        f"machine's? node 0 is the machine that --rdzv-endpoint names"
    )
