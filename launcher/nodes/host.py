"""Host of a job on several nodes: lets the nodes in, shares ranks and certificates, and tells all how the job ends.

It runs in threads of the launcher of node 0: one that accepts, and one for each node. Node 0 itself joins like every other.
"""

import json
import logging
import secrets
import threading
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, replace
from typing import Any

from ..environment import reserve_port
from ..errors import NodeError
from ..restarts.rules import NO_RESTARTS, RestartRules
from .assignment import Assignment, NodeFacts, Placement
from .connection import NodeConnection
from .inquiry import facts as own_facts
from .inquiry import inquires
from .listener import NODE_HANDSHAKE_SECONDS, NodeListener
from .outcome import VERDICT_SECONDS, Outcome
from .rounds import NextRound, NodeRounds

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
        rules: of restarts; the nodes have the same.

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
        rules: RestartRules = NO_RESTARTS,
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
        self._rounds: NodeRounds | None = None
        self._answers: dict[int, dict[str, Any]] = {}  # by round: the message that ends it
        self._listen_host = listen_host or host
        self._rules = rules
        self._failed_at: float | None = None
        self._awaits = False  # the user was told that a lost node may come back
        self._connections: dict[int, NodeConnection] = {}  # of nodes, by their place
        self._resources = ExitStack()
        self.listener = NodeListener(listen_host or host, port, token, self._authority, self._serve_node)
        self._resources.callback(self.listener.close, HOST_END_SECONDS)
        self._reserved = self._resources.enter_context(closing(reserve_port(self._listen_host)))

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
            facts, place, number = self._join(told, connection)
            placement = self._wait_for_placement(place) if number is None else self._wait_to_come_back(place, number)
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
        self._watch(connection, facts, place, placement.round)

    def _join(self, told: bytes, connection: NodeConnection) -> tuple[NodeFacts, int, int | None]:
        """Return a node's facts, its place, and the round in which it came back; None if the job has yet to begin."""
        try:
            facts = NodeFacts.from_message(json.loads(told))
            with self._changed:
                place = self._assignment.join(facts, time.monotonic())
                self._connections[place] = connection
                number = None if self._rounds is None else self._rounds.number
                self._changed.notify_all()
        except NodeError as error:
            logger.warning("a node is refused, which has been told: %s", error)
            raise
        return facts, place, number

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

    def _wait_to_come_back(self, place: int, number: int) -> Placement:
        """Return the part of a node that was lost in the round ``number``; it begins with the next one."""
        if "verdict" in (answer := self._wait_for_answer(number)):
            raise NodeError("the job has ended before this node came back")
        assert self._placements is not None, "the job has begun"
        host, port = self._assignment.joined[place].host, answer["again"]["master_port"]
        return replace(self._placements[place], host=host, master_port=port, round=number + 1)

    def _place(self) -> None:
        try:
            number = max(node.round for node in self._assignment.joined)
            placements = self._assignment.placements(self._host, self._reserved.getsockname()[1])
            self._placements = [replace(each, round=number) for each in placements]
            self._rounds = NodeRounds(self._placements, self._rules, time.monotonic(), number)
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

    def _watch(self, connection: NodeConnection, facts: NodeFacts, place: int, number: int) -> None:
        answer = dict[str, Any]()
        while "verdict" not in answer:
            try:
                outcome = Outcome.from_message(connection.receive()["outcome"])
            except BROKEN as error:
                outcome = _gone(facts, error)
            self._ended(place, outcome)
            if outcome.absent:
                return  # it hears nothing; another connection may be of this place now
            answer = self._wait_for_answer(number)
            number += 1
            with suppress(OSError):
                connection.send(answer)
        with suppress(OSError):
            connection.receive(time.monotonic() + NODE_HANDSHAKE_SECONDS)  # until it hangs up

    def _ended(self, place: int, outcome: Outcome) -> None:
        with self._changed:
            number, rounds = 0, self._rounds
            if rounds is None:
                self._failure = self._failure or outcome.cause
            else:
                number = rounds.number
                rounds.outcomes.add(place, outcome)
                if outcome.absent and rounds.may_come_back(place):
                    self._assignment.vacant.append(place)
                if rounds.outcomes.failed and self._failed_at is None:
                    self._failed_at = time.monotonic()
            self._changed.notify_all()
            running = [other for other in self._connections if rounds is None or not rounds.outcomes.has(other)]
        if outcome.exit_code:
            for other in running:
                with suppress(OSError):
                    self._connections[other].send({"end": outcome.cause or "another node has ended", "round": number})

    def _wait_for_answer(self, number: int) -> dict[str, Any]:
        """Return the message that ends a round: the verdict, or that a further one begins."""
        with self._changed:
            assert self._rounds is not None
            while number not in self._answers:
                if self._is_over(self._rounds):
                    self._answers[number] = self._conclude(self._rounds)
                    self._changed.notify_all()
                else:
                    self._changed.wait(0.5)
            return self._answers[number]

    def _is_over(self, rounds: NodeRounds) -> bool:
        """Return whether the round can be concluded: all nodes have ended or had their time, and those lost are back."""
        since = time.monotonic() - (self._failed_at or time.monotonic())
        if rounds.awaits and self._assignment.vacant:
            if not self._awaits:
                self._awaits = True
                logger.warning("a machine is lost: its launcher has %g s to come back (--rdzv-timeout)", self._timeout)
            return since > self._timeout
        if since > VERDICT_SECONDS:
            missing = [place for place in self._connections if not rounds.outcomes.has(place)]
            if not any(map(rounds.may_come_back, missing)):
                return True
            for place in missing:  # it is cut off: its end is seen at once
                self._connections[place].close()
        return rounds.outcomes.complete

    def _conclude(self, rounds: NodeRounds) -> dict[str, Any]:
        further = rounds.conclude(time.monotonic(), manned=not self._assignment.vacant)
        if not isinstance(further, NextRound):
            return {"verdict": further}
        self._failed_at, self._awaits = None, False
        self._reserved.close()
        self._reserved = self._resources.enter_context(closing(reserve_port(self._listen_host)))
        return {"again": asdict(replace(further, master_port=self._reserved.getsockname()[1]))}


def _gone(facts: NodeFacts, error: Exception) -> Outcome:
    text = f"the launcher at {facts.host} is gone, or cut off ({error})"
    return Outcome(1, text, gone=True, absent=True)
