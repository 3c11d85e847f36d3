"""``StepQueue``: optimizer steps of one worker, one at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from ..base.errors import RpcError
from ..core.futures import Future, run_callbacks
from ..rpc.extend import Agent


class StepQueue:
    """Queue that runs the optimizer steps of one agent, one at a time. It is no lock, so a step that waits holds no thread.

    Attributes:
        optimizers: the optimizers of this worker, by number (``add``). References keep them alive; this table does not.
    """

    def __init__(self, agent: Agent) -> None:
        self._steps: deque[tuple[Callable[[], object], Future[None]]] = deque()
        self._running = False
        self._lock = threading.Lock()
        self._agent = agent
        self._numbers = count(1)
        self.optimizers: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def add(self, optimizer: Any) -> int:
        """Add an optimizer of this worker, and return the number by which requests name it."""
        number = next(self._numbers)
        self.optimizers[number] = optimizer
        return number

    def find(self, number: int) -> Any:
        """Return the optimizer of that number.

        Raises:
            RpcError: there is none any more.
        """
        if (found := self.optimizers.get(number)) is None:
            raise RpcError(f"worker {self._agent.name!r} has no such optimizer any more; keep the DistributedOptimizer")
        return found

    def submit(self, step: Callable[..., object], *args: Any) -> Future[None]:
        """Run ``step(*args)`` after those before it, in this thread or in one that runs steps already; return its future.

        It runs with the context variables (agent, profiler) of this call, in any thread.
        """
        done: Future[None] = Future()
        self._steps.append((partial(copy_context().run, step, *args), done))
        while not done.done() and self._run_next():
            pass
        if self._steps and not self._running:
            # Other steps have come, and more may come all the time. Return first, so that this step's caller gets its answer.
            self._agent.threads.run_later(self._run_rest)
        try:
            return done
        finally:
            del done  # as in ``_run_next``

    def _run_rest(self) -> None:
        while self._run_next():
            pass

    def _next_step(self) -> tuple[Callable[[], object], Future[None]] | None:
        with self._lock:
            if self._running or not self._steps:
                return None
            self._running = True
            return self._steps.popleft()

    def _run_next(self) -> bool:
        """Run the next step; return False if there is none, or another thread runs one."""
        if (job := self._next_step()) is None:
            return False
        step, done = job
        error: BaseException | None = None
        try:
            step()
        except BaseException as problem:
            error = problem
        finally:
            self._running = False
        try:
            if callbacks := done.try_finish(None, error):
                run_callbacks(callbacks)
        finally:
            # The error's traceback refers to this frame: without this, future -> error -> frame -> future is a cycle.
            del job, done, error
        return True
