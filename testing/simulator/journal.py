"""Journal of calls, as callers and callees saw them; it checks that each ran at most once, and ended in time and by name."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.futures import Future
from ...rpc import rpc_async
from .worker import current_worker

if TYPE_CHECKING:
    from .simulation import Simulation
    from .worker import Worker

SLACK_SECONDS = 5.0
NAME = re.compile(r"'w\d+'|'number \d+'|the backward of context")  # a backward waits for no worker in particular
# Words of errors that no fault explains: a value was freed although a reference existed, or this package failed.
NEVER = ("any more; keep a reference", "can be opened once", "already completed", "KeyError", "AssertionError")


class PlannedError(Exception):
    """Error of functions that are to fail."""


class Entry:
    """Entry of one call."""

    __slots__ = ("caller", "ended", "number", "runs", "started", "timeout", "to")

    def __init__(self, number: int, caller: Worker, to: int, started: float, timeout: float) -> None:
        self.number = number
        self.caller = caller
        self.to = to
        self.started = started
        self.timeout = timeout
        self.runs = 0
        self.ended = False


class Journal:
    """Journal of a simulation's calls."""

    def __init__(self, counts: Counter[str]) -> None:
        self._entries: list[Entry] = []
        self._counts = counts

    def begin(self, worker: Worker, to: int, timeout: float) -> Entry:
        """Record that a call starts."""
        entry = Entry(len(self._entries), worker, to, worker.simulation.queue.now, timeout or worker.agent.rpc_timeout)
        self._entries.append(entry)
        self._counts["calls"] += 1
        return entry

    def check(self) -> Iterator[str]:
        """Yield the calls of living workers that never ended."""
        for entry in self._entries:
            if not entry.ended and entry.caller.alive:
                yield f"call {entry.number} of {entry.caller.name} to w{entry.to} never ended"

    def ran(self, number: int) -> None:
        """Record that the callee runs it."""
        entry = self._entries[number]
        entry.runs += 1
        if entry.runs > 1:
            current_worker().simulation.violation(f"call {number} to w{entry.to} ran {entry.runs} times")

    def end(self, worker: Worker, entry: Entry, error: BaseException | None, planned: bool) -> None:
        """Record that it was answered, or failed."""
        simulation = worker.simulation
        entry.ended = True
        late = simulation.queue.now - entry.started - entry.timeout
        if late > simulation.plan.longest + SLACK_SECONDS:
            simulation.violation(f"call {entry.number} of {worker.name} ended {late:.1f} s after its time-out")
        if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
            self._counts["given up"] += 1  # its own caller had given up, or its process has ended
        elif error is None or (planned and isinstance(error, PlannedError)):
            self._counts["answered"] += 1
            if entry.runs != 1:
                simulation.violation(f"call {entry.number} was answered and ran {entry.runs} times")
        else:
            self._counts[type(error).__name__] += 1
            check_error(simulation, f"call {entry.number} of {worker.name} to w{entry.to}", error)


def check_error(simulation: Simulation, what: str, error: BaseException) -> None:
    """Check an error: under faults a call may fail, but with the package's errors, which name a worker."""
    text = str(error)
    if not isinstance(error, RpcError) or not NAME.search(text) or any(words in text for words in NEVER):
        simulation.violation(f"{what} failed with {type(error).__name__}: {text}")


async def call(
    worker: Worker, journal: Journal, to: int, function: Callable[..., Any], *args: Any, timeout: float = -1.0
) -> Any:
    """Call ``function(number of the call, *args)`` and keep the journal; raise what the call raised."""
    entry = journal.begin(worker, to, max(timeout, 0.0))
    error: BaseException | None = None
    try:
        future: Future[Any] = rpc_async(to, function, (entry.number, *args), timeout=timeout)
        return await future
    except BaseException as problem:
        error = problem
        raise
    finally:
        journal.end(worker, entry, error, planned=True)
        del error
