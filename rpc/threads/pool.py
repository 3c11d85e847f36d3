"""Threads that run user functions.

At most ``size`` of them *run* at a time. A thread that blocks in ``Future.wait`` gives its place to another one, and does not
queue to come back. So nested calls of any depth cannot starve each other, up to ``ceiling`` threads in all.

To wake a thread costs more than most tasks, and threads that run at the same time contend for the interpreter. So a new task
waits for a thread that runs already in three cases:

* The thread has begun its task a moment ago.
* The thread *lingers*: it has ended its task, and looks for the next one before it idles.
* Another task came a moment ago.

A look after a moment checks on tasks that wait although there is a place: if the tasks that run take long, as many more
threads run. A thread whose task was short leaves the tasks that wait to another thread, if that has begun tasks meanwhile.
``PoolPolicy`` decides all this, without threads and clock.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic
from typing import Any, Protocol

from ...base.errors import RpcError
from ...core.futures import interruptible, thread_role
from .stuck import place_of

logger = logging.getLogger("telegrad.rpc")
Idle = Callable[[Callable[[], object]], None]  # gets a function that returns whether there is a task
Task = Callable[[], Any]  # may return an ``Idle``
CEILING = 4096
MANY_REQUESTS = 8  # if more have not begun, answers may wait to be written together
RECENT_SECONDS = 100e-6  # since a thread has begun its task, or another task came
BACKLOG_LOOK_SECONDS = 1e-3  # after which it is looked whether the tasks that wait are taken
FEW_TASKS = 4  # tasks take long if fewer than these begin between two looks
QUICK_TASK_SECONDS = BACKLOG_LOOK_SECONDS / FEW_TASKS  # a thread that ran for longer takes the next task itself
MOST_DOZING = 4  # threads that sleep at a session: each keeps a stack, and few sessions have their next request soon


class PoolPolicy:
    """Decisions of one pool. Times are given, in monotonic seconds.

    Args:
        looks: the pool looks at tasks that wait. Otherwise they would wait for as long as the threads that run block, so none
            waits while there is a place.

    Attributes:
        began: when a thread last began a task; set by that thread.
        came: when a task last came.
        tasks: how many tasks have begun until now; counted by the threads.
    """

    __slots__ = ("_looks", "_seen", "began", "came", "tasks")

    def __init__(self, looks: bool) -> None:
        self._looks = looks
        self.began = self.came = 0.0
        self.tasks = self._seen = 0  # until now, and until the last look

    def waits(self, now: float, running: int, lingering: int) -> bool:
        """Take a new task into account; return whether it waits for a thread that runs already, although there is a place.

        Args:
            now: the time.
            running: how many threads run tasks or linger.
            lingering: how many of them linger. No time is noted then: the tasks are theirs.
        """
        if lingering or not self._looks:
            return self._looks
        latest, self.came = self.came, now
        return running > 0 and now - max(latest, self.began) < RECENT_SECONDS

    def yields(self, now: float, number: int, began: float) -> bool:
        """Return whether a thread that has ended a task leaves the tasks that wait to the other threads.

        Args:
            now: the time.
            number: how many tasks had begun when the thread began its last one, that one included.
            began: when it began that task.
        """
        return self._looks and self.tasks > number and now - began < QUICK_TASK_SECONDS

    def is_slow(self, now: float) -> bool:
        """Look at tasks that wait although there is a place; return whether those that run take long."""
        few, self._seen = self.tasks - self._seen < FEW_TASKS, self.tasks
        return few and now - self.began >= RECENT_SECONDS


class Executor(Protocol):
    """Executor of an agent's tasks; a simulator brings one without threads."""

    def submit(self, task: Task) -> None:
        """Run ``task`` soon. Raises ``RpcError`` if it can have no thread."""
        ...

    def busy(self) -> int:
        """Return how many tasks run, block, or wait for a thread."""
        ...

    def close(self, timeout: float) -> list[str]:
        """Take no more tasks and wait for those that were taken; return which functions did not end in time."""
        ...


class Dozing:
    """Way in which a lingering thread of a pool blocks (``core.futures.Blocker``)."""

    def __init__(self, pool: ThreadPool) -> None:
        self.block = pool.doze


class ThreadPool:
    """Threads made when needed, ``size`` running at a time.

    Args:
        size: number of tasks that run at a time.
        name: prefix of the threads' names.
        ceiling: largest number of threads, blocked ones included.
        call_later: calls a function after so many seconds. Without it a task waits only for a thread that lingers.
    """

    def __init__(
        self,
        size: int,
        name: str,
        ceiling: int = CEILING,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self.size = size
        self.name = name
        self.ceiling = ceiling
        self._lock = threading.Lock()
        self._ready: SimpleQueue[Task | None] = SimpleQueue()  # one item for each idle or new thread that is to run
        self._backlog: deque[Task] = deque()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._running = 0  # threads that hold a place
        self._made = 0
        self._closed = False
        self._call_later = call_later
        self._lingering = 0  # threads that linger; they hold their places
        self._dozing = 0  # threads that sleep at the session from which the next task may come; they hold no places
        self._policy = PoolPolicy(looks=call_later is not None)
        self._looking = False  # a timer is set
        self._as_dozing = Dozing(self)

    def submit(self, task: Task) -> None:
        with self._lock:
            if self._closed:
                raise RpcError(f"the thread pool {self.name!r} is closed")
            policy, lingering = self._policy, self._lingering
            if (
                lingering > len(self._backlog)
                or self._running >= self.size
                or policy.waits(monotonic(), self._running, lingering)
            ):
                self._backlog.append(task)
                if len(self._backlog) > self._lingering:
                    self._look_later()
                return
            if not self._idle and len(self._threads) >= self.ceiling:
                raise RpcError(
                    f"all {self.ceiling} threads of {self.name!r} are blocked in nested calls; nest less deeply, or return "
                    f"futures (async_execution) instead of waiting for them"
                )
            self._start(task)

    def doze(self, acquire: Callable[[float], bool], timeout: float) -> bool:
        """Block a lingering thread, with its place given away meanwhile.

        Returns False at once if ``MOST_DOZING`` other threads block so, or the pool is closed.
        """
        with self._lock:
            if self._dozing >= MOST_DOZING or self._closed:
                return False
            self._dozing += 1
            self._lingering -= 1
            self._running -= 1
            self._fill_places()
        try:
            return acquire(timeout)
        finally:
            with self._lock:
                self._dozing -= 1
                self._lingering += 1
                self._running += 1

    def block(self, acquire: Callable[[float], bool], timeout: float) -> bool:
        """Block this thread, with its place given away meanwhile (``core.futures.Blocker``)."""
        with self._lock:
            self._running -= 1
            self._fill_places()
        try:
            return acquire(timeout)
        finally:
            with self._lock:
                self._running += 1

    def close(self, timeout: float) -> list[str]:
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle -= 1
                self._ready.put(None)
            threads = [thread for thread in self._threads if thread is not threading.current_thread()]
        for thread in threads:
            interruptible(thread.join, timeout)
            if thread.is_alive():
                timeout = 0.0
        return [place_of(thread) for thread in threads if thread.is_alive()]

    def counts(self) -> dict[str, int]:
        """For ``debug_info``: how many threads run, are idle or blocked, and how many tasks wait."""
        with self._lock:
            idle = self._idle + self._dozing
            blocked = len(self._threads) - self._running - idle
            return {"running": self._running, "idle": idle, "blocked": blocked, "waiting": len(self._backlog)}

    def busy(self) -> int:
        with self._lock:
            return len(self._threads) - self._idle - self._dozing + len(self._backlog)

    def _look_later(self) -> None:
        # lock held
        if self._looking or self._call_later is None:
            return
        if len(self._backlog) > self._lingering and self._running < self.size:
            self._looking = True
            self._call_later(BACKLOG_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Let more threads run if those that run do not take the tasks that wait."""
        with self._lock:
            self._looking = False
            if self._policy.is_slow(monotonic()):
                self._fill_places(max(self._running, 1))
            self._look_later()

    def _start(self, task: Task) -> None:
        # lock held, and there is a free place
        if not self._idle:
            self._make_thread()
        self._idle -= 1
        self._running += 1
        # A new thread too gets the task from the queue, not as an argument: a Thread object keeps its arguments for as long
        # as it runs. If an idle thread is faster, it takes the task, and the new thread idles.
        self._ready.put(task)

    def _make_thread(self) -> None:
        # lock held
        thread = threading.Thread(target=self._work, name=f"{self.name}-{self._made + 1}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise RpcError(
                f"{self.name!r} has {len(self._threads)} threads and the system gives no more ({error}); nest less deeply"
            ) from error
        self._count_in(thread)

    def _count_in(self, thread: threading.Thread) -> None:
        # lock held
        self._threads.add(thread)
        self._made += 1
        self._idle += 1

    def _fill_places(self, most: int = CEILING) -> None:
        # lock held
        while self._backlog and self._running < self.size and (self._idle or len(self._threads) < self.ceiling):
            if (most := most - 1) < 0:
                return
            try:
                self._start(self._backlog[0])
            except RpcError:
                return  # the system gives no thread: the task stays for the next thread that ends a task
            self._backlog.popleft()

    def _work(self) -> None:
        role, policy = thread_role, self._policy
        role.blocker, role.inside = self, True
        task = self._ready.get() if self._check_in() else None
        while task is not None:
            idle: Idle | None = None
            lingered = False
            policy.began = began = monotonic()
            policy.tasks = number = policy.tasks + 1
            try:
                idle = task()
            except BaseException:
                logger.exception("a task of %s raised", self.name)
            task = None  # the task's objects must not outlive it while the thread idles
            if idle is not None and not self._backlog:
                self._linger(idle)
                idle, lingered = None, True
                number = policy.tasks
            task = self._next(number, began, lingered)
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _check_in(self) -> bool:
        """Count this thread if its starter has not: a signal handler may have raised something inside ``Thread.start``.

        Returns:
            False if the pool was closed before this thread was counted.
        """
        thread = threading.current_thread()
        with self._lock:  # held by the starter until it has counted, or failed
            if thread in self._threads:
                return True
            if self._closed:
                return False
            self._count_in(thread)
            self._fill_places()  # with the task for which it was started, if that waits
        return True

    def _linger(self, idle: Idle) -> None:
        """Run what a thread does before it idles. ``_next`` then counts it as lingering no longer."""
        with self._lock:
            self._lingering += 1
        try:
            thread_role.blocker = self._as_dozing
            idle(self._backlog.__len__)
        except Exception:
            logger.exception("a thread of %s failed while it had no task", self.name)
        finally:
            thread_role.blocker = self

    def _next(self, number: int, began: float, lingered: bool) -> Task | None:
        with self._lock:
            if lingered:
                self._lingering -= 1
                self._policy.came = monotonic()  # for tasks that came meanwhile the time was not noted
            surplus = self._running > self.size
            yields = self._running > 1 and self._policy.yields(monotonic(), number, began)
            if self._backlog and not surplus and not yields:
                task = self._backlog.popleft()
                if self._backlog:
                    self._look_later()
                return task
            self._running -= 1
            if self._backlog:
                self._look_later()
            if surplus or self._closed or self._idle >= self.size:
                return None
            self._idle += 1
        return self._ready.get()
