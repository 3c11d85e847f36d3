"""Process engine: starts the worker processes of a job, watches them, and carries out what the job's supervisor decides.

One thread, one loop. Exits are seen through pidfds in an epoll set, whose ready list keeps the order in which they happened.
"""

import os
import selectors
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import ExitStack, closing
from functools import partial

from ..credentials import CredentialFolders
from ..environment import reserve_port
from ..events import Begin, Event, Exited, Restarting, Signal, Start, Wake
from ..restarts.history import PastRestart
from ..restarts.workers import WorkerRestarts
from ..supervisor import JobPhase, Supervisor
from ..worker_files import EventsFile, ReportFile

ENGINE_LOOK_SECONDS = 1.0
"""Time after which the engine looks for reports if nothing else wakes it: a worker that failed may not end."""


class Engine(ABC):
    """Engine of one job. A subclass says how a worker's process is started, signalled and reaped.

    Args:
        size: how many workers there are.
        grace: seconds between asking workers to end and killing them.
        credentials: folders for the workers' credentials; None makes some, with a new secret.
        restarts: of single workers while the job runs; None for none.
        reports: file of the workers' reports, which outlives this engine; None makes one.

    Attributes:
        last_events: by rank, of workers that have ended: what they noted last, in words.
    """

    def __init__(
        self,
        size: int,
        grace: float,
        credentials: CredentialFolders | None = None,
        restarts: WorkerRestarts | None = None,
        reports: ReportFile | None = None,
    ) -> None:
        self.supervisor = Supervisor(size, grace, restarts)
        self.resources = ExitStack()
        self.reports = reports or self.resources.enter_context(closing(ReportFile()))
        self.events_file = self.resources.enter_context(closing(EventsFile(size)))
        self.last_events: dict[int, tuple[str, ...]] = {}
        self.port: int = self.resources.enter_context(closing(reserve_port())).getsockname()[1]
        self.credentials = self.resources.enter_context(closing(credentials or CredentialFolders()))
        self.selector = self.resources.enter_context(selectors.DefaultSelector())
        self._pidfds: set[int] = set()
        self._events: deque[Event] = deque()
        self._refresh_at: float | None = None
        self.resources.callback(self._close_pidfds)

    @abstractmethod
    def start(self, rank: int) -> int | None:
        """Start the worker's process and return its id; None if it could not be started and ``Exited`` was posted."""

    @abstractmethod
    def signal(self, rank: int, signum: int) -> None:
        """Send the worker's process a signal, unless it has been reaped."""

    @abstractmethod
    def reap(self, rank: int) -> int:
        """Return the exit code of the worker's process, which has ended; minus the number, for a signal."""

    def tell_restart(self, restart: PastRestart) -> None:
        """Tell the user of a restart that was decided."""
        raise NotImplementedError("this engine restarts no workers")

    def refresh(self) -> float | None:
        """Do what is due by the clock, in every turn of the loop; return when to be called next, at the latest."""
        return None

    def begin(self) -> None:
        """Start the job's processes."""
        self.handle(Begin())

    def run(self, until: float | None = None) -> bool:
        """Handle events until the job is over, or until the time ``until`` if no worker has failed by then.

        Returns:
            True if the job is over.
        """
        while not self.finished:
            self._wait(until)
            if not self._events and self._running and until is not None and time.monotonic() >= until:
                return False
            while self._events and not self.finished:
                self.handle(self._events.popleft())
        return True

    @property
    def finished(self) -> bool:
        """Return whether the job is over."""
        return self.supervisor.phase is JobPhase.FINISHED

    def post(self, event: Event) -> None:
        """Have an event handled in the next turn of the loop."""
        self._events.append(event)

    def handle(self, event: Event) -> None:
        """Hand an event to the supervisor and carry out its instructions."""
        if isinstance(event, Exited):
            self.last_events[event.rank] = self.events_file.told(event.rank, time.monotonic())
        for instruction in self.supervisor.handle(event, time.monotonic()):
            match instruction:
                case Start(rank):
                    self._start(rank)
                case Signal(rank, signum):
                    self.signal(rank, signum)
                case Restarting(restart):
                    self.tell_restart(restart)

    def close(self) -> None:
        """Free the port, the files and the watches; processes go on."""
        self.resources.close()

    @property
    def _running(self) -> bool:
        return self.supervisor.phase is JobPhase.RUNNING

    def _wait(self, until: float | None) -> None:
        ready = self.selector.select(self._timeout(until))
        for report in self.reports.read():  # first: whatever else is ready may be a consequence
            self.handle(report)
        for key, _ in ready:
            key.data()
        self._refresh_at = self.refresh()
        wake_at = self.supervisor.wake_at
        if wake_at is not None and time.monotonic() >= wake_at:
            self.post(Wake())

    def _timeout(self, until: float | None) -> float:
        if self._events:
            return 0.0
        times = (self.supervisor.wake_at, self._refresh_at, until if self._running else None)
        left = [at - time.monotonic() for at in times if at is not None]
        return max(0.0, min([*left, ENGINE_LOOK_SECONDS]))

    def _start(self, rank: int) -> None:
        pid = self.start(rank)
        if pid is None:
            return
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended, and multiprocessing reaped it in another thread
            self.post(Exited(rank, self.reap(rank)))
            return
        self._pidfds.add(pidfd)
        self.selector.register(pidfd, selectors.EVENT_READ, partial(self._exited, rank, pidfd))

    def _exited(self, rank: int, pidfd: int) -> None:
        self.selector.unregister(pidfd)
        self._pidfds.remove(pidfd)
        os.close(pidfd)
        self.post(Exited(rank, self.reap(rank)))

    def _close_pidfds(self) -> None:
        while self._pidfds:
            os.close(self._pidfds.pop())
