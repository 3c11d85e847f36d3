"""Threads of one agent: for user functions, for callbacks, for transfers of large data, and for coroutines."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.futures import Future, thread_role
from .coroutines import Coroutines
from .ioloop import RefusesToBlock
from .pool import Executor, ThreadPool

if TYPE_CHECKING:
    from .timers import Timers

CALLBACK_THREADS = 4
TRANSFER_THREADS = 16  # each may wait for a peer that reads slowly
THREADS_END_SECONDS = 2.0


class AgentThreads:
    """Threads of one agent. No other threads run user code.

    Args:
        name: the worker's name, for the names of threads.
        size: how many user functions run at a time.
        executor: runs user functions and callbacks; ``None`` makes thread pools.
        loop: runs coroutines; ``None`` makes a thread with an event loop. A loop that is given is not stopped.
        context: copied for each call of user code: in it the agent is the current one.
        timers: the agent's timers.

    Attributes:
        new_context: returns such a copy, prepared.
    """

    new_context: Callable[[], contextvars.Context]

    def __init__(
        self,
        name: str,
        size: int,
        executor: Executor | None,
        loop: asyncio.AbstractEventLoop | None,
        context: contextvars.Context,
        timers: Timers,
    ) -> None:
        self._context = context
        self.new_context = context.copy
        self._prepared: list[Callable[[], None]] = []
        self.size = size
        self.functions = executor or ThreadPool(size, f"telegrad-{name}", call_later=timers.after)
        self._callbacks = executor or ThreadPool(CALLBACK_THREADS, f"telegrad-{name}-callbacks")
        self._transfers = executor or ThreadPool(TRANSFER_THREADS, f"telegrad-{name}-transfers")
        self._coroutines = Coroutines(f"telegrad-{name}-coroutines", loop)

    def prepare_contexts(self, prepare: Callable[[], None]) -> None:
        """Call a function in each new context, until ``unprepare_contexts``."""
        self._prepared.append(prepare)
        self.new_context = self._prepared_context

    def unprepare_contexts(self, prepare: Callable[[], None]) -> None:
        """Call a function in new contexts no longer."""
        self._prepared.remove(prepare)
        if not self._prepared:
            self.new_context = self._context.copy

    def _prepared_context(self) -> contextvars.Context:
        context = self._context.copy()
        for prepare in self._prepared:
            context.run(prepare)
        return context

    def run_later(self, task: Callable[[], None]) -> None:
        """Run a task that may call user code (callbacks, destructors, unpickling) in a thread for callbacks."""
        try:
            self._callbacks.submit(task)
        except RpcError:
            task()  # the agent closes and has no thread left, but a thread may wait for the task

    def run_transfer(self, task: Callable[[], None]) -> None:
        """Run a task that copies or sends much data, and may wait for room, in a thread for such tasks: no user code."""
        try:
            self._transfers.submit(task)
        except RpcError:
            task()  # as in ``run_later``

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any], context: contextvars.Context) -> Future[Any]:
        """Run a user's coroutine on the agent's event loop; the future holds its outcome."""
        return self._coroutines.run(coroutine, context)

    def is_current(self) -> bool:
        """Return whether this thread is one of these, or an event loop's thread, which must not block."""
        blocker: object = thread_role.blocker
        return isinstance(blocker, RefusesToBlock) or blocker in (self.functions, self._callbacks, self._transfers)

    def callbacks(self) -> int:
        """Return how many callbacks run or wait."""
        return self._callbacks.busy()

    def counts(self) -> dict[str, Any]:
        """Return the numbers of threads, for ``debug_info``; nothing if the executor was given."""
        return {"threads": self.functions.counts()} if isinstance(self.functions, ThreadPool) else {}

    def close(self) -> list[str]:
        """End the threads; return which functions of the user's still run after a while."""
        pools = (self._coroutines, self.functions, self._callbacks, self._transfers)
        return [name for pool in pools for name in pool.close(THREADS_END_SECONDS)]
