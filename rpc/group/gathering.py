"""Small collective waits over RPC: ``_all_gather``, ``_barrier`` and ``_wait_all`` (PyTorch's names, underscores included).

The first worker of a group is its leader. Each member's objects wait there in a queue, and a round takes the first object of
every queue. An object also leaves its queue when its sender withdraws it after a time-out, or when its deadline has passed at
the leader. A withdrawal may overtake its object. Both have the object's ticket, and only the first to arrive counts. When a
member is lost, all queues of the group are emptied. The leader logs which members a round has waited for too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from ...base.errors import RpcError, RpcTimeoutError
from ...base.words import abridged
from ...core.futures import Future, complete_once, wait_all
from ..current import current_agent
from ..functions.calling import async_execution, call_function, resolve_timeout
from ..links.intervals import IntervalSet
from ..options import UNSET_RPC_TIMEOUT
from ..threads.notices import FIRST_SECONDS, LongWaits

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.caller import Caller
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..losses.losses import Losses
    from ..threads.timers import Timers

logger = logging.getLogger("telegrad.rpc")
WITHDRAW_SECONDS = 5.0
NOTICE_SECONDS = FIRST_SECONDS
TICKET_BITS = 32
GATHERING_NAMES = 8  # of workers in a notice
T = TypeVar("T")
Group = tuple[str, ...]  # names of its members; empty for all workers, so that messages do not grow with their number
collected: ContextVar[list[Future[Any]] | None] = ContextVar("telegrad_wait_all", default=None)


class Contribution:
    """Object of one member, and the future of the objects of all members.

    Args:
        ticket: number of the offer.
        value: the object.
        since: when it was offered, in the agent's seconds.
    """

    __slots__ = ("done", "since", "ticket", "value")

    def __init__(self, ticket: int, value: Any, since: float = 0.0) -> None:
        self.ticket = ticket
        self.value = value
        self.since = since
        self.done: Future[dict[str, Any]] = Future()


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

    def waiting(self) -> list[Future[dict[str, Any]]]:
        """Return the future of the first offer of each member that has one."""
        return [queue[0].done for queue in self._queues.values() if queue]

    def __bool__(self) -> bool:
        return self._present > 0

    def __contains__(self, name: str) -> bool:
        return name in self._queues

    def _count(self) -> None:
        self._present = sum(map(bool, self._queues.values()))


class Gathering:
    """Part of one agent in gatherings: the groups that it leads, and its own calls.

    Args:
        peers: the workers of the job.
        caller: for deadlines.
        losses: when a member is lost, its groups end.
        timers: tell when a round has waited long.
    """

    def __init__(self, peers: Peers, caller: Caller, losses: Losses, timers: Timers) -> None:
        self._peers = peers
        self._caller = caller
        self._lock = threading.Lock()
        self._rounds: dict[Group, Rounds] = {}
        self._tickets: dict[Group, Iterator[int]] = {}  # for this worker's own calls
        self._timers = timers
        self._notices = LongWaits(timers, NOTICE_SECONDS, self._waiting, self._tell)
        losses.on_lost.append(self._lost)

    def ticket(self, group: Group) -> int:
        """Return the next number for an object of this worker. Its upper bits are the worker's number."""
        with self._lock:
            first = self._peers.me.number << TICKET_BITS
            return next(self._tickets.setdefault(group, itertools.count(first)))

    def offer(self, group: Group, name: str, ticket: int, value: Any, seconds: float) -> Future[dict[str, Any]]:
        """Take a member's object; the future holds the objects of all members.

        Args:
            group: names of the members; empty for all workers.
            name: the member that offers.
            ticket: number of the member's offer, counting up.
            value: its object.
            seconds: time-out of the gathering; 0 for none.
        """
        offer = Contribution(ticket, value, self._timers.now())
        if (sender := self._peers.at(ticket >> TICKET_BITS)).gone:  # another worker may have its name by now
            complete_once(offer.done, error=sender.lost_error())
            return offer.done
        full = self._step(group, lambda rounds: rounds.offer(name, offer))
        if full is None:
            _give_up(offer)
            return offer.done
        if not full:
            self._notices.begin()
        objects = {member: each.value for member, each in full.items()}
        for each in full.values():
            complete_once(each.done, objects)
        for member in self._gone_members(group):
            self._end(group, member)
        # A withdrawal may not arrive: its sender may have died.
        waiting = self._caller.waits.with_deadline(offer.done, seconds, f"a gathering of worker {name!r}")
        waiting.add_done_callback(lambda done: done.exception() and self.withdraw(group, name, ticket))
        return waiting

    def withdraw(self, group: Group, name: str, ticket: int) -> bool:
        """Remove the object of a member that gave up.

        Args:
            group: names of the members.
            name: the member that gave up.
            ticket: number of its offer.

        Returns:
            False if the others have it already, or if it has not arrived; then it will be dropped when it does.
        """
        offer = self._step(group, lambda rounds: rounds.withdraw(name, ticket))
        if offer is not None:
            _give_up(offer)
        return offer is not None

    def open(self) -> list[tuple[list[str], list[Future[dict[str, Any]]]]]:
        """Return for each round that is not complete which members are missing, and the futures of those that wait."""
        with self._lock:
            return [(rounds.missing(), rounds.waiting()) for rounds in self._rounds.values() if rounds]

    def _waiting(self) -> list[tuple[tuple[Group, float], float]]:
        with self._lock:
            offers = [(group, rounds.oldest()) for group, rounds in self._rounds.items()]
        return [((group, offer.since), offer.since) for group, offer in offers if offer is not None]

    def _tell(self, wait: tuple[Group, float], _: bool) -> None:
        missing = self._step(wait[0], Rounds.missing)
        logger.warning(
            "a call of _barrier or _all_gather waits for %s; others have called it",
            abridged([*map(repr, missing)], GATHERING_NAMES),
        )
        self._caller.on_long_wait(missing)

    def _lost(self, peer: Peer) -> None:
        with self._lock:
            groups = [group for group, rounds in self._rounds.items() if peer.info.name in rounds]
        for group in groups:
            self._end(group, peer)

    def _end(self, group: Group, peer: Peer) -> None:
        with self._lock:
            # In a dynamic group another worker may get its name later, and its tickets begin at 0 again.
            rounds = self._rounds.pop(group, None)
            offers = [] if rounds is None else rounds.end()
        for offer in offers:
            complete_once(offer.done, error=peer.lost_error())

    def _gone_members(self, group: Group) -> list[Peer]:
        members = [self._peers.find(name) for name in group] if group else self._peers.gone()
        return [peer for peer in members if peer.gone]

    def _step(self, group: Group, event: Callable[[Rounds], T]) -> T:
        with self._lock:
            if group not in self._rounds:
                self._rounds[group] = Rounds(group or map(self._peers.name, self._peers.numbers()))
            return event(self._rounds[group])


def _give_up(offer: Contribution) -> None:
    complete_once(offer.done, error=RpcTimeoutError("its sender gave up before all workers had offered an object"))


@async_execution
def _offer(group: Group, name: str, ticket: int, value: Any, seconds: float) -> Future[dict[str, Any]]:
    return current_agent().part(Gathering).offer(group, name, ticket, value, seconds)


@async_execution
def _arrive(group: Group, name: str, ticket: int, value: Any, seconds: float) -> Future[None]:
    return _offer(group, name, ticket, value, seconds).then(_forget)


def _forget(objects: Future[dict[str, Any]]) -> None:
    objects.value()  # or its error


def _withdraw(group: Group, name: str, ticket: int) -> bool:
    return current_agent().part(Gathering).withdraw(group, name, ticket)


def _all_gather(
    obj: Any, worker_names: Iterable[str] | None = None, timeout: float = UNSET_RPC_TIMEOUT
) -> dict[str, Any]:
    """Give an object and return those of all workers of the group, by worker name. Every worker of the group must call it.

    Args:
        obj: anything that can be sent.
        worker_names: the group; ``None`` for all workers.
        timeout: seconds, as in ``rpc_async``. After a time-out the others do not get this object, but that of the next call.

    Raises:
        RpcTimeoutError: some worker did not call it in time.
        WorkerLostError: a worker of the group is lost.
        UnknownWorkerError: there is no worker of one of the names.
        ValueError: this worker is not in the group.
    """
    result: dict[str, Any] = _Part(_offer, obj, worker_names, timeout).wait()
    return result


async def _all_gather_async(
    obj: Any, worker_names: Iterable[str] | None = None, timeout: float = UNSET_RPC_TIMEOUT
) -> dict[str, Any]:
    """Do what ``_all_gather`` does, for ``await``. If it is cancelled, its object is withdrawn.

    Args:
        obj, worker_names, timeout: as for ``_all_gather``.
    """
    result: dict[str, Any] = await _Part(_offer, obj, worker_names, timeout).ended()
    return result


class _Part:
    """Part of this worker in one gathering: the group's leader runs ``_offer`` or ``_arrive``."""

    def __init__(
        self, function: Callable[..., Any], obj: Any, worker_names: Iterable[str] | None, timeout: float
    ) -> None:
        self._agent = agent = current_agent()
        self._group, self._leader = _group(agent, worker_names)
        seconds = resolve_timeout(agent, timeout)
        self._ticket = agent.part(Gathering).ticket(self._group)
        arguments = (self._group, agent.name, self._ticket, obj, seconds)
        self._answer = call_function(agent, self._leader, function, arguments, None, seconds)

    def wait(self) -> Any:
        """Return the answer. After a time-out, withdraw the object at the leader before the error is raised."""
        try:
            return self._answer.wait()
        except (RpcTimeoutError, KeyboardInterrupt):
            with contextlib.suppress(RpcError):
                self._withdraw().wait()
            raise

    async def ended(self) -> Any:
        """Return the answer, as ``wait`` does; a cancellation withdraws the object too."""
        try:
            return await self._answer
        except (RpcTimeoutError, asyncio.CancelledError):
            with contextlib.suppress(RpcError):
                await self._withdraw()
            raise

    def _withdraw(self) -> Future[bool]:
        arguments = (self._group, self._agent.name, self._ticket)
        return call_function(self._agent, self._leader, _withdraw, arguments, None, WITHDRAW_SECONDS)


def _group(agent: Agent, names: Iterable[str] | None) -> tuple[Group, str]:
    """Return a group and its leader: rank 0 for all workers, else, and where others may join, the first member by name."""
    if isinstance(names, str) or not (names is None or isinstance(names, Iterable)):
        raise TypeError(f"worker_names must be a list of names; write worker_names=[{names!r}]")
    if names is None and agent.state.dynamic:
        names = agent.peers.names() if agent.state.places else [info.name for info in agent.peers.live()]
    group = tuple(sorted({agent.peers.find(name).info.name for name in names or ()}))
    if not agent.state.dynamic and len(group) in (0, len(agent.peers)):
        return (), agent.peers.at(0).info.name
    if agent.name not in group:
        raise ValueError(f"worker {agent.name!r} is not among worker_names={list(group)}; only members may gather")
    return group, group[0]


def _barrier(worker_names: Iterable[str] | None = None) -> None:
    """Wait until every worker of the group called this."""
    _Part(_arrive, None, worker_names, UNSET_RPC_TIMEOUT).wait()


async def _barrier_async(worker_names: Iterable[str] | None = None) -> None:
    """Do what ``_barrier`` does, for ``await``."""
    await _Part(_arrive, None, worker_names, UNSET_RPC_TIMEOUT).ended()


@contextmanager
def _wait_all() -> Iterator[None]:
    """Wait, when the block ends, for every ``rpc_async`` made inside it; raises the first error."""
    futures: list[Future[Any]] = []
    token = collected.set(futures)
    try:
        yield
    finally:
        collected.reset(token)
    wait_all(futures)
