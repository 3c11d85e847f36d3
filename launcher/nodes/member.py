"""Membership of one launcher in a job on several nodes: joins at the host, and stays connected until the job is over."""

import json
import queue
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from ...rpc.extend import tls_context
from ..errors import NodeError
from . import exchange
from .assignment import NodeFacts, Placement
from .connection import NodeConnection
from .outcome import Outcome, Verdict
from .part import JobPart, worker_files
from .rounds import NextRound

HOST_CONNECT_SECONDS = 10.0
HOST_RETRY_SECONDS = 0.25
HOST_ANSWER_SECONDS = 30.0


class Membership(JobPart):
    """Membership of this node, from its joining to the verdict.

    Args:
        host: host of the rendezvous.
        port: its port.
        token: the job's token.
        facts: of this node; without a host it takes the address from which it reaches the rendezvous.
        timeout: seconds in which the nodes must have come.
        listen_host: address at which this node's workers are to listen; None for the one at which others reach it.

    Attributes:
        round: number of the round that runs.
        host_lost: how the connection to the host ended, before the verdict; empty if it stands.

    Raises:
        NodeError: the host does not answer, refuses this node, or the nodes do not come.
        TokenError: the host does not know the token.
    """

    def __init__(
        self, host: str, port: int, token: bytes, facts: NodeFacts, timeout: float, listen_host: str | None = None
    ) -> None:
        self._connection, self._facts = _join(host, port, token, facts, timeout)
        try:
            # The host gives up by itself, and says who is missing.
            placement = Placement.from_message(self._answer("placement", timeout + HOST_ANSWER_SECONDS))
            super().__init__(placement, *self._fetch(len(placement.workers)), listen_host)
        except BaseException:
            self._connection.close()
            raise
        self.round = placement.round
        self.host_lost = ""
        self._answers: queue.SimpleQueue[NextRound | Verdict | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="telegrad-node", daemon=True)
        self._reader.start()

    def tell(self, outcome: Outcome) -> None:
        """Tell the host how this node ended in this round; the first word counts."""
        with suppress(OSError):
            self._connection.send({"outcome": outcome.as_message()})

    def finish(self, outcome: Outcome) -> NextRound | Verdict | None:
        """Tell how this node ended, wait until all have, and return what follows: a further round, or the verdict.

        Args:
            outcome: of this node. It is the answer if the host is lost, and one of its own workers was the cause.

        Returns:
            None if the job is over and no node failed.
        """
        self.tell(outcome)
        answer = self._answers.get()
        if self.host_lost and outcome.cause:
            return Verdict(self.placement.node, outcome)
        return answer

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
        self._reader.join()
        super().close()

    def _fetch(self, workers: int) -> tuple[str, list[dict[str, bytes]]]:
        """Make a key for each worker, which stays here, have the host certify them; return the secret, and their files."""
        from ...rpc.certificates import new_key

        keys = [new_key() for _ in range(workers)]
        self._connection.send({"keys": [key.public.decode() for key in keys]})
        given = self._connection.receive(time.monotonic() + HOST_ANSWER_SECONDS)
        authority = given["authority"].encode()
        return given["secret"], [
            worker_files(own.encode(), key.key, authority) for own, key in zip(given["certificates"], keys)
        ]

    def _answer(self, kind: str, seconds: float) -> Any:
        try:
            message = self._connection.receive(time.monotonic() + seconds)
        except OSError as error:
            raise NodeError(f"node 0 has hung up before the job began ({error}); its own messages tell why") from error
        if kind not in message:
            raise NodeError(f"node 0: {message.get('refused') or message.get('end') or 'unknown message'}")
        return message[kind]

    def _read(self) -> None:
        try:
            while "verdict" not in (message := self._connection.receive()):
                self._take(message)
            verdict = message["verdict"]
            self._answers.put(Verdict.from_message(verdict) if verdict else None)
        except (OSError, NodeError) as error:
            self.host_lost = f"the connection to node 0's launcher is lost ({error})"
            self.end(self.host_lost)
            self._answers.put(Verdict(0, Outcome(1, self.ended_because, gone=True)))

    def _take(self, message: dict[str, Any]) -> None:
        if "again" in message:
            further = NextRound(**message["again"])
            self.round = further.number
            self.begin_round(further.master_port)
            self._answers.put(further)
        elif message.get("round") == self.round:  # else it came too late
            self.end(message["end"])


def _join(host: str, port: int, token: bytes, facts: NodeFacts, timeout: float) -> tuple[NodeConnection, NodeFacts]:
    """Connect, and prove the token. Node 0 may start later than this one."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            stream = connect(host, port)
            break
        except OSError as error:
            if time.monotonic() > deadline:
                raise NodeError(
                    f"node 0 did not answer at {host}:{port} within {timeout:g} s ({error}); is its launcher running, is the "
                    f"address right, and does a firewall let it through?"
                ) from error
            time.sleep(HOST_RETRY_SECONDS)
    own = replace(facts, host=facts.host or stream.getsockname()[0])
    try:
        return prove(stream, token, json.dumps(asdict(own)).encode()), own
    except OSError as error:
        stream.close()
        raise NodeError(
            f"the process at {host}:{port} broke the connection off ({error}); do all nodes have the same token, and is it the "
            f"launcher of node 0?"
        ) from error


def prove(plain: socket.socket, token: bytes, facts: bytes) -> NodeConnection:
    """Return a connection on which both launchers have proven the token.

    Args:
        plain: a connected socket.
        token: the job's token.
        facts: what the other launcher is to know of this one.

    Raises:
        TokenError: the other launcher does not know the token.
        NodeError: the other launcher is of another version.
        OSError: the connection broke.
    """
    context = tls_context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the proof of the token vouches for the certificate
    connection = NodeConnection(context.wrap_socket(plain, do_handshake_on_connect=False))
    try:
        deadline = time.monotonic() + HOST_ANSWER_SECONDS
        connection.handshake(deadline)
        certificate = connection.stream.getpeercert(binary_form=True)
        assert certificate is not None, "a server shows one"
        exchange.prove(connection, token, certificate, facts, deadline)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(host: str, port: int) -> socket.socket:
    """Return a connection to the first address of a host that answers.

    Raises:
        OSError: none does; all are listed. Or the host has none.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise ConnectionError(f"the host {host!r} has no address: {error.strerror}") from error
    problems = []
    for family, kind, protocol, _, address in found:
        stream = socket.socket(family, kind, protocol)
        try:
            stream.settimeout(HOST_CONNECT_SECONDS)
            stream.connect(address)
            return stream
        except OSError as error:
            stream.close()
            problems.append(f"{address[0]}: {error.strerror or error}")
    raise ConnectionError("; ".join(problems))
