"""``Applying``: the callee's side of exactly-once calls. It runs them one at a time, and none while a checkpoint is taken.

A call that cannot run yet takes no thread: it waits until the journal is open, the calls before it have been applied, and no
checkpoint is being taken. The thread that brings a call which can run also runs those that wait behind it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.errors import CheckpointError, RpcError
from ...core.futures import Future, attempt, complete_once, copy_outcome
from ..current import current_agent
from ..functions.calling import EXACTLY_ONCE_MARK, async_execution
from ..running import call_variable
from ..wire.function_names import resolve
from .applied import AppliedCalls, MissingCalls, Repeated, StreamKey, Turn

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer

LONGEST_PAUSE_SECONDS = 60.0  # that a checkpoint waits for the call that runs
NO_FUNCTION = ""  # name of the function of a call that could not be sent: its number is used
running_stream: ContextVar[StreamKey | None] = ContextVar(
    "telegrad_exactly_once", default=None
)  # of the call that runs


class AppliedAnswer(NamedTuple):
    """AppliedAnswer to an exactly-once call.

    Attributes:
        result: of the function.
        problem: why there is no result, though the call was applied before; empty if there is one.
        durable: how many calls of the stream a durable checkpoint has.
    """

    result: Any
    problem: str
    durable: int


class _Arrived:
    """Call that has arrived.

    Args:
        caller: number of the worker that sent it.
        key: its stream.
        number: its number there.
        request: name of the function, arguments, named arguments.
    """

    __slots__ = ("caller", "context", "key", "number", "outcome", "request")

    def __init__(self, caller: int, key: StreamKey, number: int, request: tuple[str, Any, Any]) -> None:
        self.caller = caller
        self.key = key
        self.number = number
        self.request = request
        self.context = copy_context()  # so ``current_call()`` is this call's, whichever thread runs it
        self.outcome: Future[AppliedAnswer] = Future()

    def run(self, worker: str) -> Any:
        """Run the function, and return its result."""
        name, args, kwargs = self.request
        running_stream.set(self.key)
        if name == NO_FUNCTION:
            raise RpcError("its arguments could not be sent")
        function = resolve(name, worker)
        if not getattr(function, EXACTLY_ONCE_MARK, False):
            raise RpcError(f"{name} is not marked with @rpc.exactly_once on worker {worker!r}")
        return function(*args, **kwargs)


class Applying:
    """Exactly-once calls that arrive at one agent.

    Args:
        agent: the agent.

    Attributes:
        calls: those that were applied.
        opened: completes when calls may run.
        on_applied: called after each call.
        on_ask: called when a caller wants a checkpoint to be saved.
    """

    def __init__(self, agent: Agent) -> None:
        self.calls = AppliedCalls()
        self.opened: Future[None] = Future()
        self.on_applied: Callable[[], None] = lambda: None
        self.on_ask: Callable[[], None] = lambda: None
        self._agent = agent
        self._changed = threading.Condition()
        self._paused = False
        self._runs: _Arrived | None = None
        self._waiting: dict[tuple[StreamKey, int], _Arrived] = {}
        self._ready: deque[StreamKey] = deque()
        agent.losses.on_lost.append(self._caller_lost)

    def open(self) -> None:
        """Let calls run from now on, in threads for functions."""
        self._agent.threads.functions.submit(lambda: complete_once(self.opened))

    def _caller_lost(self, peer: Peer) -> None:
        """Drop the waiting calls of a worker that is gone: if it goes on from a checkpoint, it sends them again."""
        with self._changed:
            lost = [place for place, call in self._waiting.items() if call.caller == peer.number]
            dropped = [self._waiting.pop(place) for place in lost]
        for call in dropped:
            complete_once(call.outcome, error=RpcError("its caller is lost"))

    def receive(self, call: _Arrived, oldest: int, results_from: int) -> None:
        """Take a call; its outcome is completed when it is applied.

        Args:
            call: the call.
            oldest, results_from: as for ``AppliedCalls.arrived``.
        """
        with self._changed:
            turn = self.calls.arrived(call.key, call.number, oldest, results_from)
            replaced = self._waiting.pop((call.key, call.number), None)
            if isinstance(turn, Turn):
                self._waiting[call.key, call.number] = call
            if turn is Turn.NOW:
                self._ready.append(call.key)
            durable = self.calls.progress(call.key)[1]
        if isinstance(turn, Repeated):
            complete_once(call.outcome, AppliedAnswer(*turn, durable))
        elif isinstance(turn, MissingCalls):
            complete_once(call.outcome, error=missing_error(self._agent.name, turn))
        if replaced is not None:
            call.outcome.add_done_callback(partial(_copy, replaced.outcome))
        self.run_waiting()

    def run_waiting(self) -> None:
        """Run the calls whose turn it is, one after the other, unless another thread does so."""
        while (call := self._take()) is not None:
            result, error = attempt(call.context.run, call.run, self._agent.name)
            self._applied(call, result, error)
            self.on_applied()

    def _take(self) -> _Arrived | None:
        with self._changed:
            if self._runs is not None or self._paused:
                return None
            while self._ready:
                key = self._ready.popleft()
                call = self._waiting.pop((key, self.calls.progress(key)[0]), None)
                if call is not None:
                    self._runs = call
                    return call
            return None

    def _applied(self, call: _Arrived, result: Any, error: BaseException | None) -> None:
        key, problem = call.key, "" if error is None else f"{type(error).__name__}: {error}"
        with self._changed:
            self.calls.add(key, call.number, result, problem)
            self._runs = None
            again = self._waiting.pop((key, call.number), None)  # it was sent again while it ran
            self._ready.append(key)  # the next one of its stream, if it is here, after those of other streams
            durable = self.calls.progress(key)[1]
            self._changed.notify_all()
        for each in [call] if again is None else [call, again]:
            complete_once(each.outcome, AppliedAnswer(result, "", durable) if error is None else None, error)

    # -- checkpoints

    def pause(self) -> None:
        """Let no call run until ``go_on``; return when none does.

        Raises:
            CheckpointError: this thread runs such a call, or one has run for a minute.
        """
        if running_stream.get() is not None:
            raise CheckpointError(
                "a checkpoint cannot be saved in the middle of an exactly-once call; give the Checkpointer to "
                "rpc.call_journal().open(checkpoints, every=...), which saves between two calls"
            )
        with self._changed:
            if not self._changed.wait_for(lambda: self._runs is None and not self._paused, LONGEST_PAUSE_SECONDS):
                what = self._runs.request[0] if self._runs else "another checkpoint"
                raise CheckpointError(f"no checkpoint was taken: {what} has run for {LONGEST_PAUSE_SECONDS:g} s")
            self._paused = True

    def go_on(self) -> None:
        """Let calls run again."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()
        with contextlib.suppress(RpcError):  # the agent is closed
            self._agent.threads.functions.submit(self.run_waiting)

    def progress(self, key: StreamKey, save: bool) -> tuple[int, int]:
        """Return how many calls of a stream were applied, and how many of them a durable checkpoint has.

        Args:
            key: the stream.
            save: its caller wants a checkpoint to be saved.
        """
        if save:
            self.on_ask()
        with self._changed:
            return self.calls.progress(key)

    def saved(self, state: dict[str, Any]) -> list[tuple[StreamKey, int]]:
        """Note that a checkpoint is durable; return the streams of which it has more calls than the one before."""
        with self._changed:
            return self.calls.saved(state)


def _copy(target: Future[AppliedAnswer], source: Future[AppliedAnswer]) -> None:
    copy_outcome(source, target)


def missing_error(callee: str, missing: MissingCalls) -> CheckpointError:
    """Return the error for calls that no worker has any more.

    Args:
        callee: name of the callee.
        missing: the calls.
    """
    return CheckpointError(
        f"calls {missing.first} to {missing.end - 1} of this worker were in a checkpoint of worker {callee!r}, and are not in "
        "the one that it restored: they are lost. Restore the newer checkpoint, or start the job again from this one"
    )


def stream_of_caller(origin: str, token: str) -> tuple[StreamKey, int]:
    """Return a stream of the worker whose call runs in this thread, and the number of that worker.

    Args:
        origin, token: as in ``StreamKey``.

    Raises:
        RpcError: no other worker has called.
    """
    call = call_variable.get()
    if call is None:
        raise RpcError("this function is called by other workers")
    return StreamKey(call.caller.name, origin, token), call.session.number


@async_execution
def receive(
    origin: str, token: str, number: int, oldest: int, results_from: int, name: str, args: Any, kwargs: Any
) -> Future[AppliedAnswer]:
    """Apply an exactly-once call of another worker, now or later.

    Args:
        origin, token: as in ``StreamKey``.
        number, oldest, results_from: as for ``AppliedCalls.arrived``.
        name, args, kwargs: the function and its arguments.
    """
    applying = current_agent().part(Applying)
    key, sender = stream_of_caller(origin, token)
    call = _Arrived(sender, key, number, (name, args, kwargs))
    if applying.opened.done():
        applying.receive(call, oldest, results_from)
    else:
        applying.opened.add_done_callback(lambda _: applying.receive(call, oldest, results_from))
    return call.outcome


@async_execution
def progress(origin: str, token: str, save: bool) -> Future[tuple[int, int]]:
    """Return how many calls of a stream were applied, and how many of them a durable checkpoint has, once the journal is open.

    Args:
        origin, token: as in ``StreamKey``.
        save: let this worker save a checkpoint soon.
    """
    applying, (key, _) = current_agent().part(Applying), stream_of_caller(origin, token)
    return applying.opened.then(lambda _: applying.progress(key, save))
