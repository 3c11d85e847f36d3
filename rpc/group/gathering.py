"""Small collective waits over RPC: ``_all_gather``, ``_barrier`` and ``_wait_all`` (PyTorch's names, underscores included).

The first worker of a group is its leader. Each member's objects wait there in a queue, and a round takes the first object of
every queue. An object also leaves its queue when its sender withdraws it after a time-out, or when its deadline has passed at
the leader. A withdrawal may overtake its object. Both have the object's ticket, and only the first to arrive counts. When a
member is lost, all queues of the group are emptied. The leader logs which members a round has waited for too long. The objects
of a complete round go back as ``gathered.py`` says.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from ...base.errors import RpcError, RpcTimeoutError
from ...base.words import abridged
from ...core.futures import Future, complete_once, wait_all
from ..current import current_agent
from ..functions.calling import async_execution, call_function, resolve_timeout
from ..options import UNSET_RPC_TIMEOUT
from ..threads.notices import FIRST_SECONDS, LongWaits
from .gathered import ComingObjects, Gathered, comes_over_tree, opened
from .rounds import Contribution, Group, Rounds

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.caller import Caller
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..losses.losses import Losses
    from ..threads.timers import Timers

logger = logging.getLogger("telegrad.rpc")
WITHDRAW_SECONDS = 5.0
WITHDRAWAL_LATE_SECONDS = 0.5  # after its time-out, until a leader drops an object without one
NOTICE_SECONDS = FIRST_SECONDS
TICKET_BITS = 32
GATHERING_NAMES = 8  # of workers in a notice
T = TypeVar("T")
collected: ContextVar[list[Future[Any]] | None] = ContextVar("telegrad_wait_all", default=None)


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
        self.coming = ComingObjects(caller, timers)
        self._timers = timers
        self._notices = LongWaits(timers, NOTICE_SECONDS, self._waiting, self._tell)
        losses.on_lost.append(self._lost)

    def ticket(self, group: Group) -> int:
        """Return the next number for an object of this worker. Its upper bits are the worker's number."""
        with self._lock:
            first = self._peers.me.number << TICKET_BITS
            return next(self._tickets.setdefault(group, itertools.count(first)))

    def offer(self, group: Group, name: str, ticket: int, value: Any, seconds: float) -> Future[Gathered]:
        """Take a member's object; the future holds the objects of all members.

        Args:
            group: names of the members; empty for all workers.
            name: the member that offers.
            ticket: number of the member's offer, counting up.
            value: its object.
            seconds: time-out of the gathering; 0 for none.
        """
        offer = Contribution(ticket, value, self._timers.now(), seconds)
        if (sender := self._peers.at(ticket >> TICKET_BITS)).gone:  # another worker may have its name by now
            complete_once(offer.done, error=sender.lost_error())
            return offer.done
        full = self._step(group, lambda rounds: rounds.offer(name, offer))
        if full is None:
            _give_up(offer)
            return offer.done
        if full:
            gathered = Gathered(group, full)
            for each in full.values():
                complete_once(each.done, gathered)
        else:
            self._notices.begin()
        for member in self._gone_members(group):
            self._end(group, member)
        # A withdrawal, which comes first, may not arrive: its sender may have died.
        limit = seconds and seconds + WITHDRAWAL_LATE_SECONDS
        waiting = self._caller.waits.with_deadline(offer.done, limit, f"a gathering of worker {name!r}")
        waiting.add_done_callback(lambda done: done.exception() and self.withdraw(group, name, ticket))
        return waiting

    def withdraw(self, group: Group, name: str, ticket: int) -> list[str]:
        """Remove the object of a member that gave up, and return the names of the others for which it waited.

        Args:
            group: names of the members.
            name: the member that gave up.
            ticket: number of its offer.

        Returns:
            no names if the others have it already, or if it has not arrived; then it will be dropped when it does.
        """
        missing = self._step(group, Rounds.missing)
        offer = self._step(group, lambda rounds: rounds.withdraw(name, ticket))
        if offer is None:
            return []
        _give_up(offer)
        return [each for each in missing if each != name]

    def open(self) -> list[tuple[list[str], list[Future[Gathered]]]]:
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
        self.coming.lost(peer)

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
def _offer(group: Group, name: str, ticket: int, value: Any, seconds: float) -> Future[Any]:
    agent = current_agent()
    complete = agent.part(Gathering).offer(group, name, ticket, value, seconds)
    return complete.then(lambda done: done.value().answer(agent, name, _deliver, _fail))


@async_execution
def _arrive(group: Group, name: str, ticket: int, value: Any, seconds: float) -> Future[None]:
    return current_agent().part(Gathering).offer(group, name, ticket, value, seconds).then(_forget)


def _forget(objects: Future[Gathered]) -> None:
    objects.value()  # or its error


def _deliver(group: Group, tickets: dict[str, int], objects: dict[str, Any]) -> None:
    agent = current_agent()
    agent.part(Gathering).coming.arrived((group, tickets[agent.name]), objects)


def _fail(group: Group, ticket: int, error: BaseException) -> None:
    current_agent().part(Gathering).coming.arrived((group, ticket), None, error)


def _withdraw(group: Group, name: str, ticket: int) -> list[str]:
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
    result: dict[str, Any] = OwnOffer(current_agent(), _offer, obj, worker_names, timeout).wait()
    return result


async def _all_gather_async(
    obj: Any, worker_names: Iterable[str] | None = None, timeout: float = UNSET_RPC_TIMEOUT
) -> dict[str, Any]:
    """Do what ``_all_gather`` does, for ``await``. If it is cancelled, its object is withdrawn.

    Args:
        obj, worker_names, timeout: as for ``_all_gather``.
    """
    result: dict[str, Any] = await OwnOffer(current_agent(), _offer, obj, worker_names, timeout).ended()
    return result


class OwnOffer:
    """Object of this worker in one gathering, and those of all.

    Args:
        agent: this worker's.
        function: what the group's leader runs: ``_offer`` or ``_arrive``.
        obj: the object.
        worker_names: the group; ``None`` for all workers.
        timeout: seconds, as in ``rpc_async``.
    """

    def __init__(
        self,
        agent: Agent,
        function: Callable[..., Any],
        obj: Any,
        worker_names: Iterable[str] | None,
        timeout: float,
    ) -> None:
        self._agent = agent
        self._group, self._leader = _group(agent, worker_names)
        self._seconds = seconds = resolve_timeout(agent, timeout)
        gathering = agent.part(Gathering)
        self._ticket = gathering.ticket(self._group)
        self._coming = gathering.coming.expect((self._group, self._ticket), self._leader, seconds)
        arguments = (self._group, agent.name, self._ticket, obj, seconds)
        try:
            self._answer = call_function(agent, self._leader, function, arguments, None, seconds)
        except BaseException:
            self._coming.forget()
            raise

    def wait(self) -> Any:
        """Return the objects. After a time-out, withdraw the object at the leader before the error is raised."""
        try:
            answer = self._answer.wait()
            return self._coming.in_time().wait() if comes_over_tree(answer) else opened(self._agent, answer)
        except (RpcTimeoutError, KeyboardInterrupt) as error:
            missing: list[str] = []
            with contextlib.suppress(RpcError):
                missing = self._withdraw().wait()
            if missing and isinstance(error, RpcTimeoutError):
                raise self._late(missing) from None
            raise
        finally:
            self._coming.forget()

    async def ended(self) -> Any:
        """Return the objects, as ``wait`` does; a cancellation withdraws the object too."""
        try:
            answer = await self._answer
            return await self._coming.in_time() if comes_over_tree(answer) else opened(self._agent, answer)
        except (RpcTimeoutError, asyncio.CancelledError) as error:
            missing: list[str] = []
            with contextlib.suppress(RpcError):
                missing = await self._withdraw()
            if missing and isinstance(error, RpcTimeoutError):
                raise self._late(missing) from None
            raise
        finally:
            self._coming.forget()

    def _late(self, missing: list[str]) -> RpcTimeoutError:
        names = abridged([*map(repr, missing)], GATHERING_NAMES)
        return RpcTimeoutError(
            f"a call of _barrier or _all_gather did not end within {self._seconds:g} s: {names} had not called it, or had "
            f"given up; give it longer with timeout=, or GrpcRpcBackendOptions(rpc_timeout=)"
        )

    def _withdraw(self) -> Future[list[str]]:
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
    OwnOffer(current_agent(), _arrive, None, worker_names, UNSET_RPC_TIMEOUT).wait()


async def _barrier_async(worker_names: Iterable[str] | None = None) -> None:
    """Do what ``_barrier`` does, for ``await``."""
    await OwnOffer(current_agent(), _arrive, None, worker_names, UNSET_RPC_TIMEOUT).ended()


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
