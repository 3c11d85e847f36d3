"""Places of lost workers that stay vacant: a launcher that starts no worker there again says so in a file of the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...base.job_credentials import ranks_given_up

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer

VACANCY_LOOK_SECONDS = 0.5


class Vacancies:
    """Part of an agent that reads, while a place is vacant, whether its launcher has given it up.

    Args:
        agent: the agent.

    Attributes:
        given_up: ranks of these places.
        on_given_up: called with the lost worker of each.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._looks = False  # a look is due
        self.given_up: set[int] = set()
        self.on_given_up: list[Callable[[Peer], object]] = []
        agent.losses.on_lost.append(lambda peer: self._look_soon())
        agent.losses.on_joined.append(lambda peer: self.given_up.discard(peer.info.id))
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._looks and self._vacant():
            self._looks = True
            self._agent.timers.after(VACANCY_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looks = False
        ranks = ranks_given_up()
        for peer in self._vacant():
            if peer.info.id in ranks:
                self.given_up.add(peer.info.id)
                for action in self.on_given_up:
                    action(peer)
        self._look_soon()

    def _vacant(self) -> list[Peer]:
        """Return the lost workers whose places may be taken again."""
        agent = self._agent
        if agent.closed or not agent.state.places:
            return []
        gone = (peer for peer in agent.peers if peer.gone and peer.info.id not in self.given_up)
        return [peer for peer in gone if agent.peers.find(peer.info.id) is peer]
