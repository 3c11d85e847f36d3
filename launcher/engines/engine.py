"""Process engine: starts the worker processes of a job, watches them, and carries out what the job's supervisor decides.

One thread, one loop. Exits are seen through pidfds in an epoll set, whose ready list keeps the order in which they happened.
"""

import os
import selectors
import time
from abc import ABC, abstractmethod
from collections import deque
from functools import partial

from ..events import Begin, Event, Exited, Restarting, Signal, Start, Wake
from ..restarts.history import PastRestart
from ..supervisor import JobPhase, Supervisor
from ..worker_files import EventsFile, ReportFile

ENGINE_LOOK_SECONDS = 1.0
"""Time after which the engine looks for reports if nothing else wakes it: a worker that failed may not end."""

COULD_NOT_START = 127  # what a shell exits with


class JobWorkers(ABC):
    """Workers of one job, of one kind: how a worker's process is started, signalled and reaped.

    Attributes:
        reports: file of their reports.
        events: memory for their last events.
    """

    reports: ReportFile
    events: EventsFile

    @abstractmethod
    def start(self, rank: int) -> int | None:
        """Start the worker's process and return its id; None if it could not be started."""

    @abstractmethod
    def signal(self, rank: int, signum: int) -> None:
        """Send the worker's process a signal, unless it has been reaped."""

    @abstractmethod
    def reap(self, rank: int) -> Exited:
        """Return the end of the worker's process, which has ended."""

    def restarting(self, restart: PastRestart) -> None:
        """Tell the user of a restart that was decided."""
        raise NotImplementedError("these workers are not restarted")

    def saw(self, event: Event) -> None:
        """Take note of an event, which the supervisor has handled."""
        return

    def refresh(self) -> float | None:
        """Do what is due by the clock, in every turn of the loop; return when to be called next, at the latest."""
        return None


class Engine:
    """Engine of one job. It must be closed.

    Args:
        supervisor: decides what is done.
        workers: do it.
        selector: of the engine's loop, which calls what is registered as data.

    Attributes:
        last_events: by rank, of workers that have ended: what they noted last, in words.
    """

    def __init__(self, supervisor: Supervisor, workers: JobWorkers, selector: selectors.BaseSelector) -> None:
        self.last_events: dict[int, tuple[str, ...]] = {}
        self._supervisor = supervisor
        self._workers = workers
        self._selector = selector
        self._pidfds: set[int] = set()
        self._events: deque[Event] = deque()
        self._refresh_at: float | None = None

    def begin(self) -> None:
        """Start the job's processes."""
        self._handle(Begin())

    def run(self, until: float | None = None) -> bool:
        """Handle events until the job is over, or until the time ``until`` if no worker has failed by then.

        Returns:
            True if the job is over.
        """
        while not self._finished:
            self._wait(until)
            if not self._events and self._running and until is not None and time.monotonic() >= until:
                return False
            while self._events and not self._finished:
                self._handle(self._events.popleft())
        return True

    def post(self, event: Event) -> None:
        """Have an event handled in the next turn of the loop."""
        self._events.append(event)

    def close(self) -> None:
        """Close the watches; processes go on."""
        while self._pidfds:
            os.close(self._pidfds.pop())

    @property
    def _finished(self) -> bool:
        return self._supervisor.phase is JobPhase.FINISHED

    @property
    def _running(self) -> bool:
        return self._supervisor.phase is JobPhase.RUNNING

    def _handle(self, event: Event) -> None:
        """Hand an event to the supervisor and carry out its instructions."""
        if isinstance(event, Exited):
            self.last_events[event.rank] = self._workers.events.told(event.rank, time.monotonic())
        for instruction in self._supervisor.handle(event, time.monotonic()):
            match instruction:
                case Start(rank):
                    self._start(rank)
                case Signal(rank, signum):
                    self._workers.signal(rank, signum)
                case Restarting(restart):
                    self._workers.restarting(restart)
        self._workers.saw(event)

    def _wait(self, until: float | None) -> None:
        ready = self._selector.select(self._timeout(until))
        for report in self._workers.reports.read():  # first: whatever else is ready may be a consequence
            self._handle(report)
        for key, _ in ready:
            key.data()
        self._refresh_at = self._workers.refresh()
        wake_at = self._supervisor.wake_at
        if wake_at is not None and time.monotonic() >= wake_at:
            self.post(Wake())

    def _timeout(self, until: float | None) -> float:
        if self._events:
            return 0.0
        times = (until if self._running else None, self._supervisor.wake_at, self._refresh_at)
        left = [at - time.monotonic() for at in times if at is not None]
        return max(0.0, min([*left, ENGINE_LOOK_SECONDS]))

    def _start(self, rank: int) -> None:
        pid = self._workers.start(rank)
        if pid is None:
            self.post(Exited(rank, COULD_NOT_START))
            return
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended, and multiprocessing reaped it in another thread
            self.post(self._workers.reap(rank))
            return
        self._pidfds.add(pidfd)
        self._selector.register(pidfd, selectors.EVENT_READ, partial(self._exited, rank, pidfd))

    def _exited(self, rank: int, pidfd: int) -> None:
        self._selector.unregister(pidfd)
        self._pidfds.remove(pidfd)
        os.close(pidfd)
        self._events.append(self._workers.reap(rank))
