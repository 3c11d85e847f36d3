"""Host of a job on several nodes: lets the nodes in, shares ranks and certificates, and tells all how the job ends.

It runs in threads of the launcher of node 0: one that accepts, and one for each node. Node 0 itself joins like every other.
"""

import json
import logging
import secrets
import threading
import time
from contextlib import ExitStack, closing, suppress
from typing import Any

from ..environment import reserve_port
from ..errors import NodeError
from .assignment import Assignment, NodeFacts, Placement
from .connection import NodeConnection
from .inquiry import facts as own_facts
from .inquiry import inquires
from .listener import NODE_HANDSHAKE_SECONDS, NodeListener
from .outcome import VERDICT_SECONDS, Outcome, Outcomes

logger = logging.getLogger("telegrad.launcher")
CREDENTIAL_SECONDS = 60.0
HOST_END_SECONDS = 5.0
BROKEN = (
    OSError,
    NodeError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
)  # a launcher is gone, or talks nonsense


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
        listener: lets the nodes in.

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
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._secret = secrets.token_hex(32)
        self._authority = Authority(f"job-{secrets.token_hex(8)}.telegrad")
        self._changed = threading.Condition()
        self._assignment = Assignment(facts, join_seconds)
        self._placements: list[Placement] | None = None
        self._failure = ""
        self._outcomes: Outcomes | None = None
        self._failed_at: float | None = None
        self._connections: dict[int, NodeConnection] = {}  # of nodes, by their place
        self._resources = ExitStack()
        self.listener = NodeListener(listen_host or host, port, token, self._authority, self._serve_node)
        self._resources.callback(self.listener.close, HOST_END_SECONDS)
        self._reserved = self._resources.enter_context(closing(reserve_port(listen_host or host)))

    def close(self) -> None:
        """End: wait until the nodes have heard the verdict, at most some seconds, and free the port."""
        self.listener.close(HOST_END_SECONDS)
        for connection in list(self._connections.values()):
            connection.close()
        self._resources.close()

    def _serve_node(self, connection: NodeConnection, told: bytes) -> None:
        try:
            if inquires(told):
                connection.send(own_facts())
                return
            facts, place = self._join(told, connection)
            placement = self._wait_for_placement(place)
        except (NodeError, ValueError, TypeError, OSError) as error:
            with suppress(OSError):
                connection.send({"refused": str(error)})
            return
        try:
            connection.send({"placement": placement.as_message()})
            self._hand_out_certificates(connection, placement)
        except BROKEN as error:
            self._ended(place, _gone(facts, error))
            return
        self._watch(connection, facts, place)

    def _join(self, told: bytes, connection: NodeConnection) -> tuple[NodeFacts, int]:
        try:
            facts = NodeFacts.from_message(json.loads(told))
            with self._changed:
                place = self._assignment.join(facts, time.monotonic())
                self._connections[place] = connection
                self._changed.notify_all()
        except NodeError as error:
            logger.warning("a node is refused, which has been told: %s", error)
            raise
        return facts, place

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
                "secret": self._secret,
                "authority": self._authority.certificate.decode(),
                "certificates": certificates,
            }
        )

    def _watch(self, connection: NodeConnection, facts: NodeFacts, place: int) -> None:
        try:
            outcome = Outcome.from_message(connection.receive()["outcome"])
        except BROKEN as error:
            outcome = _gone(facts, error)
        self._ended(place, outcome)
        verdict = self._wait_for_verdict()
        with suppress(OSError):
            connection.send({"verdict": verdict})
            connection.receive(time.monotonic() + NODE_HANDSHAKE_SECONDS)  # until it hangs up

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
        if found is None or self._placements is None:
            return {}
        # Nodes have their numbers by --node-rank, and their places here by their coming.
        return {"node": self._placements[found[0]].node, **found[1].as_message()}


def _gone(facts: NodeFacts, error: Exception) -> Outcome:
    text = f"the launcher at {facts.host} is gone, or cut off ({error})"
    return Outcome(1, text, gone=True)
