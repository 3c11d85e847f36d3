"""``StepQueue``: optimizer steps of one worker, one at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from ..core.futures import Future
from ..rpc.extend import Agent


class StepQueue:
    """Queue that runs the optimizer steps of one agent one at a time. It is not a lock: a step that waits holds no thread."""

    def __init__(self, agent: Agent) -> None:
        self._steps: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._running = False
        self._lock = threading.Lock()
        self._agent = agent

    def submit(self, step: Callable[[], None]) -> Future[None]:
        """Run ``step`` after those before it, in this thread or in one that runs steps already; returns its future.

        It runs with the context variables (agent, profiler) of this call, whoever's thread runs it.
        """
        done: Future[None] = Future()
        self._steps.append((partial(copy_context().run, step), done))
        while not done.done() and (job := self._next_step()) is not None:
            self._run(*job)
        if self._steps and not self._running:
            # Others came meanwhile, and more may come for ever: return first, so that the caller of this step gets its answer.
            self._agent.threads.run_later(self._run_rest)
        return done

    def _run_rest(self) -> None:
        while (job := self._next_step()) is not None:
            self._run(*job)

    def _next_step(self) -> tuple[Callable[[], None], Future[None]] | None:
        with self._lock:
            if self._running or not self._steps:
                return None
            self._running = True
            return self._steps.popleft()

    def _run(self, step: Callable[[], None], done: Future[None]) -> None:
        error: BaseException | None = None
        try:
            step()
        except BaseException as problem:
            error = problem
        finally:
            self._running = False
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
