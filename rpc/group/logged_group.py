"""Group in a file: every member admits newcomers, and none has to stay. The driver of one member.

A member that is asked to admit a newcomer reads the file, and takes all into account whose lines are there. The one of the
lowest number stays connected to each worker, so that a death is noticed, and writes into the file which members are lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...base.errors import RendezvousError
from ...core.futures import Future, in_thread

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..agent import Agent
    from ..links.peer import Peer
    from ..rendezvous.group_log import GroupLog

logger = logging.getLogger("telegrad.rpc")
LOCK_SECONDS = 10.0  # time to wait for another process that uses the file
CLOSE_LOCK_SECONDS = 1.0


class LoggedGroup:
    """Part of an agent whose group is in a file.

    Args:
        agent: the agent.
        log: the file.
        later: runs a function that reads the file in a thread that may wait, and returns its future.
    """

    def __init__(self, agent: Agent, log: GroupLog, later: Callable[..., Future[None]] = in_thread) -> None:
        self._agent = agent
        self._log = log
        self._later = later
        self._lock = threading.Lock()  # held while the file is read: by threads for that, which no other waits for
        agent.losses.on_lost.append(self._lost)
        agent.on_close.append(self._on_close)
        self._tend_soon()

    async def admit(self, worker: WorkerRecord) -> list[WorkerRecord]:
        """Take a worker that has written its line as a member, and return the records of all that this member knows.

        Runs on the I/O loop. None are returned if this member leaves, or cannot read the file now: the worker asks again.
        """
        await self._later(self._tend)
        if self._agent.closed:
            return []
        self._check_lowest()
        return [peer.record for peer in self._agent.peers if not peer.gone]

    def _lost(self, peer: Peer) -> None:
        self._tend_soon()

    def _tend_soon(self) -> None:
        if self._agent.closed:
            return
        if self._is_lowest():
            self._later(self._tend)
        else:
            self._check_lowest()

    def _is_lowest(self) -> bool:
        return self._agent.number == self._lowest().number

    def _lowest(self) -> Peer:
        live = (peer for peer in map(self._agent.peers.at, self._agent.peers.numbers()) if not peer.gone)
        return min(live, key=lambda peer: peer.number)

    def _check_lowest(self) -> None:
        """Connect to the member of the lowest number: if it died before it was connected to all, no other would notice."""
        if not self._is_lowest():
            self._agent.sessions.dial_missing(self._lowest())

    def _tend(self) -> None:
        """Take the workers that have come into account; at the lowest number, tell the file of losses and watch the others."""
        try:
            with self._lock:
                members = self._log.read(LOCK_SECONDS).records()
                for record in members:
                    self._agent.losses.joined(record)
                if self._is_lowest():
                    # Also those that the file does not name: a worker that needed its place may have written that it is dead.
                    self._watch({record.number for record in members})
        except RendezvousError as error:
            logger.warning("worker %r cannot look after its group: %s", self._agent.name, error)

    def _watch(self, members: set[int]) -> None:
        for peer in self._agent.peers:
            if self._agent.closed:
                return
            if peer.gone:
                if peer.number in members:
                    self._log.leave(peer.number, LOCK_SECONDS)
            elif peer.number != self._agent.number:
                self._agent.sessions.dial_missing(peer)

    def _on_close(self) -> None:
        try:
            self._log.leave(self._agent.number, CLOSE_LOCK_SECONDS)
        except RendezvousError as error:
            logger.warning("worker %r has left, and could not write so: %s", self._agent.name, error)
