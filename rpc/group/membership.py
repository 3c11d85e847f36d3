"""Membership, as user code sees it: callbacks for workers that are lost or join, waits by name, requests to leave."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.errors import AgentClosedError, ArgumentTypeError, ArgumentValueError, RpcTimeoutError, UnknownWorkerError
from ...base.job_credentials import asked_to_leave
from ...core.futures import Future, complete_once
from ..current import current_agent
from ..links.worker_info import WorkerInfo, check_name
from ..options import UNSET_RPC_TIMEOUT, check_timeout
from ..threads.due_work import DueWork
from .vacancies import Vacancies

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer
    from ..threads.timers import Timer

logger = logging.getLogger("telegrad.rpc")
OnLost = Callable[[WorkerInfo, str], object]
OnJoined = Callable[[WorkerInfo], object]


class _Awaited(NamedTuple):
    """Names that a thread waits for, and what it waits on."""

    names: tuple[str, ...]
    found: Future[list[WorkerInfo]]
    timer: Timer | None


class MembershipEvents:
    """Part of an agent that tells user code of workers that are lost or join.

    Callbacks run one after the other, in the order of the events, in a thread for callbacks.

    Args:
        agent: the agent.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._lost: list[tuple[WorkerInfo, str]] = []
        self._on_lost: dict[int, OnLost] = {}
        self._on_joined: dict[int, OnJoined] = {}
        self._number = 0  # of the latest callback
        self._awaited: dict[Future[list[WorkerInfo]], _Awaited] = {}
        self._due = DueWork()
        agent.losses.on_told.append(self._told)
        agent.losses.on_joined.append(self._joined)
        agent.losses.on_lost.append(lambda peer: self._look())
        agent.part(Vacancies).on_given_up.append(lambda peer: self._look())
        agent.on_close.append(self._close)

    # -- callbacks

    def on_lost(self, callback: OnLost) -> Callable[[], None]:
        """Call ``callback(worker, reason)`` for each worker that is lost, or was; return a function that ends this."""
        with self._lock:
            number = self._add(self._on_lost, callback)
            self._due.add(*(partial(self._call, self._on_lost, number, *lost) for lost in self._lost))
        self._run_due()
        return lambda: self._remove(self._on_lost, number)

    def on_joined(self, callback: OnJoined) -> Callable[[], None]:
        """Call ``callback(worker)`` for each worker that joins; return a function that ends this."""
        with self._lock:
            number = self._add(self._on_joined, callback)
        return lambda: self._remove(self._on_joined, number)

    def _add(self, callbacks: dict[int, Any], callback: Callable[..., object]) -> int:
        # lock held
        self._number += 1
        callbacks[self._number] = callback
        return self._number

    def _remove(self, callbacks: dict[int, Any], number: int) -> None:
        with self._lock:
            callbacks.pop(number, None)

    def _told(self, peer: Peer, reason: str) -> None:
        with self._lock:
            self._lost.append((peer.info, reason))
            self._due.add(*(partial(self._call, self._on_lost, number, peer.info, reason) for number in self._on_lost))
        self._run_due()

    def _joined(self, peer: Peer) -> None:
        with self._lock:
            self._due.add(*(partial(self._call, self._on_joined, number, peer.info) for number in self._on_joined))
        self._run_due()
        self._look()

    def _run_due(self) -> None:
        self._agent.threads.run_later(self._due.run)

    def _call(self, callbacks: dict[int, Any], number: int, *arguments: Any) -> None:
        callback = callbacks.get(number)
        if callback is None or self._agent.closed:
            return
        try:
            self._agent.new_context().run(callback, *arguments)
        except BaseException:  # also SystemExit: the next callback is called
            logger.exception("a callback of worker %r for workers that are lost or join raised", self._agent.name)

    # -- waiting

    def present(self, names: Iterable[str], seconds: float) -> Future[list[WorkerInfo]]:
        """Return a future of the workers of these names, once all of them are in the job.

        Args:
            names: of the workers.
            seconds: until the future fails; 0 for never.
        """
        wanted, found = tuple(names), Future[list[WorkerInfo]]()
        with self._lock:  # also while the timer is made: it may be due at once, and then has to find the wait
            timer = self._agent.timers.after(seconds, self._give_up, found, seconds) if seconds else None
            self._awaited[found] = _Awaited(wanted, found, timer)
        self._look()
        if self._agent.closed:
            self._close()
        return found

    def _look(self) -> None:
        """Complete the waits whose workers are all present, or of which one can never be."""
        with self._lock:
            awaited = list(self._awaited.values())
        for each in awaited:
            try:
                workers = [self._find(name) for name in each.names]
            except Exception as error:
                self._end(each.found, error=error)
                continue
            present = [worker for worker in workers if worker is not None]
            if len(present) == len(workers):
                self._end(each.found, present)

    def _find(self, name: str) -> WorkerInfo | None:
        """Return the live worker of a name; ``None`` if one may still join.

        Raises:
            UnknownWorkerError: the job has no such worker, and no worker can join it.
            WorkerLostError: that worker is gone, and no worker can join, or its launcher does not start it again.
        """
        state = self._agent.state
        try:
            peer = self._agent.peers.find(name)
        except UnknownWorkerError:
            if state.dynamic and not state.places:
                return None
            raise
        if peer.gone and state.dynamic and peer.info.id not in self._agent.part(Vacancies).given_up:
            return None
        peer.check_present()
        return peer.info

    def _give_up(self, found: Future[list[WorkerInfo]], seconds: float) -> None:
        with self._lock:
            awaited = self._awaited.get(found)
        if awaited is not None:
            missing = ", ".join(repr(name) for name in awaited.names if not self._is_present(name))
            self._end(found, error=RpcTimeoutError(f"worker {missing} did not join within {seconds:g} s"))

    def _is_present(self, name: str) -> bool:
        try:
            return self._find(name) is not None
        except UnknownWorkerError:
            return False

    def _end(
        self, found: Future[list[WorkerInfo]], workers: list[WorkerInfo] | None = None, error: Exception | None = None
    ) -> None:
        with self._lock:
            awaited = self._awaited.pop(found, None)
        if awaited is not None:
            if awaited.timer is not None:
                awaited.timer.cancel()
            complete_once(found, workers, error=error)

    def _close(self) -> None:
        with self._lock:
            awaited = list(self._awaited)
        for found in awaited:
            self._end(found, error=AgentClosedError(f"worker {self._agent.name!r} has ended, so it waits for no other"))


def on_worker_lost(callback: OnLost) -> Callable[[], None]:
    """Call a function for each worker that is lost, one after the other, in the order in which this worker loses them.

    Calls to the worker fail already when it runs. It is called also for each worker that was lost before, but not for those
    that say goodbye: they leave by ``shutdown``. What it raises is logged.

    Args:
        callback: gets the worker's ``WorkerInfo`` and the reason, in words. It runs in a thread for callbacks, may call other
            workers, and delays the next such callback.

    Returns:
        A function without arguments that ends this.

    Raises:
        ArgumentTypeError: the callback cannot be called.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import cluster
        >>> with cluster(2):
        ...     remove = rpc.on_worker_lost(lambda worker, reason: print(worker.name, reason))
        ...     remove()
    """
    return current_agent().part(MembershipEvents).on_lost(_callable("on_worker_lost", callback))


def on_worker_joined(callback: OnJoined) -> Callable[[], None]:
    """Call a function for each worker that joins a dynamic group from now on.

    Args:
        callback: gets the worker's ``WorkerInfo``; as for ``on_worker_lost``.

    Returns:
        A function without arguments that ends this.

    Raises:
        ArgumentTypeError: the callback cannot be called.
    """
    return current_agent().part(MembershipEvents).on_joined(_callable("on_worker_joined", callback))


def wait_for_workers(names: str | Iterable[str], timeout: float = UNSET_RPC_TIMEOUT) -> list[WorkerInfo]:
    """Wait until the workers of these names are in the job, and return them in that order.

    In a job of a fixed size all workers are there from the beginning. In a dynamic group a worker that has left or was lost is
    waited for until another joins with its name.

    Args:
        names: one name, or several.
        timeout: seconds; the default is the agent's ``rpc_timeout``, 0 is for ever.

    Raises:
        RpcTimeoutError: some have not joined in time; the message names them.
        UnknownWorkerError: the job has a fixed size, and no such worker.
        WorkerLostError: the job has a fixed size, and that worker is gone and is not replaced.
        ArgumentTypeError: the names are neither a text nor a collection of such.
        ArgumentKindError: a name is no text.
        ArgumentValueError: no worker can have that name, there is none, or the timeout is negative.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import cluster
        >>> with cluster(["server", "trainer"]):
        ...     print(rpc.wait_for_workers(["trainer", "server"]))
        [WorkerInfo(name='trainer', id=1), WorkerInfo(name='server', id=0)]
    """
    return _wait_for_workers(names, timeout).wait()


def wait_for_workers_async(names: str | Iterable[str], timeout: float = UNSET_RPC_TIMEOUT) -> Future[list[WorkerInfo]]:
    """Return the future of ``wait_for_workers``, for ``await``.

    Args:
        names, timeout: as for ``wait_for_workers``.
    """
    return _wait_for_workers(names, timeout)


def _wait_for_workers(names: str | Iterable[str], timeout: float) -> Future[list[WorkerInfo]]:
    agent = current_agent()
    wanted = _list_of(names)
    if not wanted:
        raise ArgumentValueError("wait_for_workers waits for at least one worker; you gave no name")
    for name in wanted:
        check_name(name)
    seconds = agent.rpc_timeout if timeout == UNSET_RPC_TIMEOUT else check_timeout("timeout", timeout)
    return agent.part(MembershipEvents).present(wanted, seconds)


def _list_of(names: str | Iterable[str]) -> list[str]:
    if isinstance(names, str):
        return [names]
    if not isinstance(names, Iterable):
        raise ArgumentTypeError(f"wait_for_workers takes a worker's name, or several in a list; you gave {names!r}")
    return [*names]


def _callable(function: str, callback: Any) -> Any:
    if not callable(callback):
        raise ArgumentTypeError(f"{function} calls a function; you gave {callback!r}")
    return callback


def leave_requested() -> bool:
    """Return whether this worker is asked to leave its job, by ``telegrad leave`` or ``telegrad scale``.

    A program asks between two steps, and then ends: with ``shutdown`` and the exit code 0. ``collective.ElasticTraining`` asks
    at each step. Only the launcher of ``telegrad run --elastic`` asks workers to leave.
    """
    return asked_to_leave()
