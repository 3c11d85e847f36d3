"""Clock of one agent: actions that run later on the thread of an event loop, and take no time of the thread that adds them.

* ``soon``: within a millisecond. The loop is woken once for all of a busy time.
* ``unhurried``: the same for what no thread waits for. In a busy time it is done more and more rarely, because each wake-up
  of the loop's thread takes the interpreter from the thread that calls.
* ``at``, ``after``: at a time, unless the timer is cancelled before.
* ``alarm``: at the earliest of several times.
* ``together``: items that are handled together, as ``soon`` or as ``unhurried``.
* ``Ticker``: again and again, in growing intervals, until there is nothing more to do; ``every``: in equal ones.

The loop's own timers are not used, because nearly every timer is the deadline of a call and is cancelled within a
millisecond. With a heap that does not wake the loop's thread. The loop is woken only for a timer that is earlier than all
others. What runs on the loop's thread, and waits there for a moment, uses the loop's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from ...core.futures import ProgramClock, program_clock

logger = logging.getLogger("telegrad.rpc")
NEVER = float("inf")
FEW_TIMERS = 1000  # cancelled ones beside them are swept out when there are more
IN_A_ROW = 100  # timers that run before the loop does its other work
TICK_SECONDS = 1e-3  # between two runs of the actions of ``soon``
UNHURRIED_SECONDS = 16e-3  # at most, between two runs of those of ``unhurried``
Action = Callable[..., object]
T = TypeVar("T")


class Timer:
    """Action that runs at ``when``, unless it is cancelled before.

    Args:
        when: in the seconds of the agent's clock.
        action: what runs.
        args: its arguments.
    """

    __slots__ = ("_action", "_args", "when")

    def __init__(self, when: float, action: Action, args: tuple[Any, ...]) -> None:
        self.when = when
        self._action: Action | None = action
        self._args = args

    @property
    def pending(self) -> bool:
        """Return whether it has neither run nor been cancelled."""
        return self._action is not None

    def cancel(self) -> None:
        """Do not run the action, and drop the reference to it. Does nothing if it has run."""
        self._action, self._args = None, ()

    def run(self) -> None:
        """Run the action, once; an exception is logged."""
        (action, args), (self._action, self._args) = (self._action, self._args), (None, ())
        if action is not None:
            run_logged(action, *args)


class Timers:
    """Timers of one agent. For any thread; no lock is held, so that a finalizer or a signal handler may add a timer, too.

    Args:
        now: monotonic seconds.

    Attributes:
        program: clock of the time-outs of calls; it stands still while a debugger holds a worker.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.program = program_clock if now is time.monotonic else ProgramClock(now)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._added: deque[tuple[float, int, Timer]] = deque()  # by any thread; the loop puts them into its heap
        self._heap: list[tuple[float, int, Timer]] = []  # used on the loop's thread only
        self._numbers = itertools.count()
        self._most_added = self._sweep_at = FEW_TIMERS
        self._wake_at = NEVER  # when the loop looks at them next
        self._soon, self._unhurried = _Waiting(TICK_SECONDS), _Waiting(UNHURRIED_SECONDS)
        self._over = False  # an action that was kept from here on would keep the agent, and what the action is about
        self._next_look: asyncio.TimerHandle | None = None  # used on the loop's thread only
        # An empty context: the loop must not keep objects to which a caller's context variables refer.
        self._context = contextvars.Context()

    def at(self, when: float, action: Action, *args: Any) -> Timer:
        """Run ``action(*args)`` at ``when``. The action must be quick, and no user code.

        Args:
            when: in the seconds of the agent's clock; ``inf`` is never.
            action: runs on the loop's thread, where it must not block.
            args: its arguments.

        Returns:
            A handle with ``cancel()``.
        """
        timer = Timer(when, action, args)
        if not self._over:
            self._added.append((when, next(self._numbers), timer))
            if when < self._wake_at:
                self._wake_at = when
                self._wake()
            elif len(self._added) > self._most_added:
                self._most_added *= 2
                self._wake()
        return timer

    def after(self, seconds: float, action: Action, *args: Any) -> Timer:
        """Run ``action(*args)`` after so many seconds; see ``at``."""
        return self.at(self.now() + seconds, action, *args)

    def soon(self, action: Callable[[], object]) -> None:
        """Run ``action`` on the loop's thread within a millisecond.

        The loop is woken only if it has found no such actions in the last millisecond. So in a busy time it is not woken.
        """
        if not self._over:
            self._soon.add(action)

    def unhurried(self, action: Callable[[], object]) -> None:
        """Run ``action``, for which no thread waits, on the loop's thread: within 16 ms, or 1 ms if little goes on."""
        if not self._over:
            self._unhurried.add(action)

    def alarm(self, action: Callable[[], object]) -> Alarm:
        """Return an alarm, to be set, that runs ``action`` on the loop's thread."""
        return Alarm(self, action)

    def together(self, handle: Callable[[list[T]], object], hurried: bool = False) -> Batch[T]:
        """Return a batch, to be filled, whose items ``handle`` takes: as ``soon`` if ``hurried``, else as ``unhurried``."""
        return Batch(self.soon if hurried else self.unhurried, handle)

    def run_waiting(self) -> bool:
        """Run the actions of ``soon`` and ``unhurried`` that wait, in this thread; return whether there were any."""
        return self._soon.run() | self._unhurried.run()

    # -- the loop

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run timers on ``loop`` from here on."""
        self._loop = loop
        self._wake()
        self._soon.start(loop)
        self._unhurried.start(loop)

    def close(self) -> None:
        """Run no more timers."""
        self._over = True
        self._wake()  # the loop looks no more
        self.abandon()

    def abandon(self) -> None:
        """Forget the loop, in a forked child: its thread is the parent's."""
        self._over = True
        self._loop = None
        self._heap, self._added = [], deque()
        self._soon.abandon()
        self._unhurried.abandon()

    def _wake(self) -> None:
        if (loop := self._loop) is None:
            return
        try:
            loop.call_soon_threadsafe(self._run, context=self._context)
        except RuntimeError:
            pass  # the loop is closed, and the agent with it

    def _run(self) -> None:
        """Run the timers that are due, and come back for the next one."""
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None
        if self._over:
            return
        self._push_added()
        now = self.now()
        for _ in range(IN_A_ROW):
            if not (heap := self._heap) or heap[0][0] > now:  # ``close`` replaces it
                break
            heapq.heappop(heap)[2].run()
        self._push_added()
        self._wake_at = self._next_time()
        while self._added:  # by threads that saw the time before
            self._push_added()
            self._wake_at = self._next_time()
        if self._wake_at < NEVER and (loop := self._loop) is not None:
            self._next_look = loop.call_later(max(self._wake_at - self.now(), 0.0), self._run, context=self._context)

    def _push_added(self) -> None:
        added = self._added
        while added:
            heapq.heappush(self._heap, added.popleft())
        if len(self._heap) > self._sweep_at:
            self._heap = [entry for entry in self._heap if entry[2].pending]
            heapq.heapify(self._heap)
            self._sweep_at = max(FEW_TIMERS, 2 * len(self._heap))
        self._most_added = FEW_TIMERS

    def _next_time(self) -> float:
        heap = self._heap
        while heap and not heap[0][2].pending:
            heapq.heappop(heap)
        return heap[0][0] if heap else NEVER


class Ticker:
    """Calls ``action`` on a loop's thread again and again from ``start`` on, until it returns False.

    Each call wakes the loop's thread. In a process that computes, this takes as long as a small remote call.

    Args:
        loop: the event loop.
        action: returns whether to call it again.
        longest: most seconds between two calls. The interval doubles after each call.
        first: seconds until the first call; a millisecond if it is not given.

    Attributes:
        ticking: it was started and has not ended; ``start`` does nothing then.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        action: Callable[[], bool],
        longest: float = TICK_SECONDS,
        first: float | None = None,
    ) -> None:
        self._loop = loop
        self._action = action
        self._longest = longest
        self._first = first
        self.ticking = False
        self._context = contextvars.Context()  # empty: see ``Timers``

    def start(self) -> bool:
        """Let the action be called, for the first time in a moment; return False if the loop is closed. Any thread."""
        if not self.ticking:
            self.ticking = True
            try:
                self._loop.call_soon_threadsafe(self._later, context=self._context)
            except RuntimeError:
                return False
        return True

    def _later(self, seconds: float = 0.0) -> None:
        seconds = seconds or self._first or TICK_SECONDS
        self._loop.call_later(seconds, self._tick, min(2 * seconds, self._longest), context=self._context)

    def _tick(self, next_seconds: float) -> None:
        if self._action():
            self._later(next_seconds)
            return
        self.ticking = False
        if self._action():  # another thread called ``start`` just before, when it was still ticking
            self.start()


def every(seconds: float, action: Callable[[], bool], loop: asyncio.AbstractEventLoop) -> Ticker:
    """Return a ticker with equal intervals.

    Args:
        seconds: between two calls, and before the first.
        action: returns whether to call it again.
        loop: the event loop.
    """
    return Ticker(loop, action, seconds, seconds)


class _Waiting:
    """Actions that wait for the next tick.

    Args:
        longest: most seconds between two ticks.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._actions: SimpleQueue[Action] = SimpleQueue()
        self._ticker: Ticker | None = None  # made with the loop

    def add(self, action: Action) -> None:
        self._actions.put(action)
        if (ticker := self._ticker) is not None and not ticker.ticking:
            ticker.start()

    def run(self) -> bool:
        """Run the actions that wait, in this thread; return whether there were any."""
        found = False
        while True:
            try:
                action = self._actions.get_nowait()
            except Empty:
                return found
            found = True
            run_logged(action)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tick on ``loop`` from here on."""
        self._ticker = Ticker(loop, self.run, self._longest)
        self._ticker.start()

    def abandon(self) -> None:
        """Forget the loop and the actions."""
        self._ticker = None
        self._actions = SimpleQueue()


class Batch(Generic[T]):
    """Items that are handled together, on the loop's thread.

    Args:
        later: lets a function run on the loop's thread, later (``Timers.soon`` or ``Timers.unhurried``).
        handle: takes the items. It must be quick, and no user code.

    Attributes:
        items: those that wait; read only.
    """

    __slots__ = ("_handle", "_later", "_waiting", "items")

    def __init__(self, later: Callable[[Callable[[], object]], None], handle: Callable[[list[T]], object]) -> None:
        self._later = later
        self._handle = handle
        self.items: deque[T] = deque()
        self._waiting = False

    def add(self, item: T) -> None:
        """Add an item. Takes no lock: a finalizer may call this."""
        self.items.append(item)
        if not self._waiting:
            self._waiting = True
            self._later(self.flush)

    def flush(self) -> None:
        """Handle the items that wait, in this thread."""
        self._waiting = False  # first: an item that is added from here on is handled below, or causes another flush
        items: list[T] = []
        with contextlib.suppress(IndexError):
            items.extend(iter(self.items.popleft, self))  # until there are none: another thread may flush too
        if items:
            self._handle(items)


class Alarm:
    """Action that runs once, at the earliest of the times that were set. After that it runs again only if it is set again.

    Attributes:
        when: the time at which it runs, ``inf`` if none is set. Setting a later time changes nothing.
    """

    def __init__(self, timers: Timers, action: Callable[[], object]) -> None:
        self._timers = timers
        self._action = action
        self._timer: Timer | None = None
        self._lock = threading.Lock()
        self.when = NEVER

    def set(self, when: float) -> None:
        """Run the action at ``when``, or at the earlier time that is set."""
        with self._lock:
            if when >= self.when:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._timers.at(when, self._ring)
            self.when = when

    def _ring(self) -> None:
        with self._lock:
            timer = self._timer  # not the one that rings, if another thread has set another meanwhile
            self.when = timer.when if timer is not None and timer.pending else NEVER
        self._action()


def run_logged(action: Action, *args: Any) -> None:
    """Run ``action(*args)``; an exception is logged."""
    try:
        action(*args)
    except Exception:
        logger.exception("an action of an agent failed")
