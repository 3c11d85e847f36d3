"""State of one agent that all its components share: its name and rank, and whether it is open."""

from __future__ import annotations

import os

from ..base.errors import AgentClosedError

SHUT_DOWN = "it has shut down"
"""Reason for the end of a worker that does not come back: its program has called ``shutdown``."""


class AgentState:
    """Name, rank, number and phase of one agent.

    Args:
        name: the worker's name.
        rank: its rank.

    Attributes:
        number: identifies the worker in messages: its rank, unless a dynamic group gave it another number.
        dynamic: other workers may join and leave at any time.
        places: number of ranks, each of which has one worker at a time; 0 unless lost workers of the job are replaced.
        process_id: the process that the agent belongs to.
        leaving: all workers agreed to leave: from here on, disconnects are expected.
        closed: why the agent is closed; empty as long as it is open. In a forked child every agent of the parent is closed.
    """

    __slots__ = ("closed", "dynamic", "leaving", "name", "number", "places", "process_id", "rank")

    def __init__(self, name: str, rank: int) -> None:
        self.name = name
        self.rank = self.number = rank
        self.dynamic = False
        self.places = 0
        self.process_id = os.getpid()
        self.leaving = False
        self.closed = ""

    @property
    def ends_together(self) -> bool:
        """Return whether the workers leave together, when none has work for another; those of an open group leave alone."""
        return self.places > 0 or not self.dynamic

    def check_open(self) -> None:
        """Raise if the agent cannot be used here.

        Raises:
            AgentClosedError: it was closed, or belongs to the process that this one was forked from.
        """
        if not self.closed:
            return
        if self.process_id != os.getpid():
            raise AgentClosedError(
                f"worker {self.name!r} belongs to process {self.process_id}, not to this forked child; start a process "
                f"with the spawn method and call rpc.init_rpc(...) there"
            )
        raise AgentClosedError(f"worker {self.name!r} cannot be used: {self.closed}; call rpc.init_rpc(...) again")
