"""Rounds of a gathering: a pure state machine, at the leader of a group."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from ...core.futures import Future
from ..links.intervals import IntervalSet

Group = tuple[str, ...]  # names of its members; empty for all workers, so that messages do not grow with their number


class Contribution:
    """Object of one member, and the future of the objects of all members.

    Args:
        ticket: number of the offer.
        value: the object.
        since: when it was offered, in the agent's seconds.
        seconds: time-out of its member; 0 for none.
    """

    __slots__ = ("done", "seconds", "since", "ticket", "value")

    def __init__(self, ticket: int, value: Any, since: float = 0.0, seconds: float = 0.0) -> None:
        self.ticket = ticket
        self.value = value
        self.since = since
        self.seconds = seconds
        self.done: Future[Any] = Future()


class Rounds:
    """Offers to one group: a state machine, at the group's leader."""

    def __init__(self, members: Iterable[str]) -> None:
        self._queues: dict[str, deque[Contribution]] = {name: deque() for name in members}
        self._used = {name: IntervalSet() for name in self._queues}  # tickets of offers and withdrawals
        self._present = 0  # members that have an offer here

    def offer(self, name: str, offer: Contribution) -> dict[str, Contribution] | None:
        """Add an offer. Return the round that it completes, else ``{}``; ``None`` if its withdrawal has arrived before it."""
        if not self._used[name].add(offer.ticket):
            return None
        self._queues[name].append(offer)
        self._present += len(self._queues[name]) == 1
        if self._present < len(self._queues):
            return {}
        full = {member: queue.popleft() for member, queue in self._queues.items()}
        self._count()
        return full

    def withdraw(self, name: str, ticket: int) -> Contribution | None:
        """Remove an offer whose sender gave up, and return it; ``None`` if it has not arrived yet or its round is complete."""
        self._used[name].add(ticket)
        offer = next((each for each in self._queues[name] if each.ticket == ticket), None)
        if offer is not None:
            self._queues[name].remove(offer)
            self._count()
        return offer

    def end(self) -> list[Contribution]:
        """Remove and return the offers that wait: a member is lost, so no more rounds can be complete."""
        waiting = [offer for queue in self._queues.values() for offer in queue]
        for queue in self._queues.values():
            queue.clear()
        self._count()
        return waiting

    def oldest(self) -> Contribution | None:
        """Return the offer that has waited longest."""
        return min((queue[0] for queue in self._queues.values() if queue), key=lambda offer: offer.since, default=None)

    def missing(self) -> list[str]:
        """Return the names of the members without an offer."""
        return [name for name, queue in self._queues.items() if not queue]

    def waiting(self) -> list[Future[Any]]:
        """Return the future of the first offer of each member that has one."""
        return [queue[0].done for queue in self._queues.values() if queue]

    def __bool__(self) -> bool:
        return self._present > 0

    def __contains__(self, name: str) -> bool:
        return name in self._queues

    def _count(self) -> None:
        self._present = sum(map(bool, self._queues.values()))
