"""Turns of reading a stream: the loop reads, or a thread that waits for what the stream will bring (leader/follower).

A hand-over between threads costs more than all the rest of a small call, because the thread that is woken sleeps on a halted
core. So a thread that waits for an answer becomes the stream's reader, if no thread is: it takes every frame that comes, those
of others too, until its own answer is there, and gives reading back to the loop. For how long it reads without blocking, with
``sched_yield`` between, so that it keeps neither core nor GIL from others, before it sleeps, ``SpinPolicy`` decides.

The thread that holds ``_turn`` reads. Otherwise the loop watches the socket, and changes to that are made with the turn held.
While calls follow one another closely, a thread that has its answer, or a request to serve, does not give the
socket back at once: it will read again in a moment, and the loop's thread would only contend for the interpreter. ``look``,
which the loop then calls now and then, gives it back when no thread has read for a moment.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence, Sized
from os import sched_yield
from select import EPOLLIN, EPOLLOUT
from time import monotonic
from typing import Any, Protocol

from ...core.futures import Future, Waiter, block, raised_by_handler, thread_role
from ..threads.ioloop import READER, RefusesToBlock
from ..threads.pool import MANY_REQUESTS
from ..threads.timers import Ticker
from . import spinning
from .sleeping import Sleeper

NEVER = float("inf")
NOTHING_CAME = -1  # instead of a number of frames
CROWD = 64  # calls under way; if there are more, frames may wait to be written together


class Readable(Protocol):
    """Stream that is read in turns.

    Attributes:
        progress: returns how many of the frames that were delivered have been used so far.
        under_way: calls of the agent, and requests that have not begun.
    """

    progress: Callable[[], int]
    under_way: tuple[Sized, Sized]

    @property
    def unsent(self) -> Sized:
        """Return the frames that wait to be written; ``flush_waiting`` is not called if there are none."""

    def deliver(self, frame: Any) -> None:
        """Take a frame that was read."""

    def watch_input(self, wanted: bool) -> None:
        """Have the loop call ``by_loop`` when there is something to read, or no longer."""

    def end(self, error: Exception | None) -> None:
        """Hear, once, why there is nothing more to read: an error, or ``None`` at the peer's end."""

    def flush_waiting(self) -> None:
        """Write what waits to be written, before a thread waits for what is to be read."""

    def flush_room(self) -> None:
        """Write what the socket has room for. On the loop."""


class SharedReading:
    """Reading of one stream, in whatever thread (``base.Reading``).

    Args:
        stream: the stream.
        descriptor: descriptor of its socket.
        read: reads once, without waiting (``StreamReader.read``).
        loop: watches the socket while no thread reads.

    Attributes:
        policy: decides how long to spin and when to give the socket back; used with the turn held.
        followers: threads that wait for the one that reads; to be looked at only.
    """

    def __init__(
        self, stream: Readable, descriptor: int, read: Callable[[], Sequence[Any]], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.policy = spinning.SpinPolicy()
        self._stream = stream
        self._read = read
        self._deliver = stream.deliver
        self._unsent = stream.unsent
        self._calls, self._requests = stream.under_way
        self._looker = Ticker(loop, self.look, spinning.READING_LOOK_SECONDS)
        self._watched = True  # by the loop; changed with the turn held
        self._turn = threading.RLock()  # re-entrant: a signal handler may read while its thread sleeps with the turn
        self._led = False  # a thread reads that looks after those that wait when it leaves
        self._asleep = False  # it sleeps with the turn
        self._ended = False
        self._sleeper = Sleeper(descriptor)
        self.followers: deque[Waiter] = deque()
        self._closing: list[Callable[[], object]] = []

    def by_loop(self, events: int = EPOLLIN) -> None:
        """Read what there is, unless another thread reads, and write what there is room for (``Poller``).

        Args:
            events: for what the socket is ready.
        """
        if events & ~EPOLLOUT:
            # A thread that leaves has the loop watch just before it releases the turn: the loop would be told again and again.
            if self._turn.acquire(timeout=spinning.LEAVING_SECONDS):
                try:
                    if not self.policy.loop_read:
                        self.policy.loop_read = monotonic()
                    for _ in range(spinning.READS_IN_A_ROW):
                        # One frame, as an answer is, mostly was all: the poller tells again if more has come meanwhile.
                        if self._read_once() in (NOTHING_CAME, 1):
                            break
                finally:
                    self._turn.release()  # ``_give_up_turn``, without a call
                    if self._closing:
                        self._close()
            if len(self._calls) > CROWD or len(self._requests) > MANY_REQUESTS:  # ``crowded``, without a call
                self.pause()
        if events & EPOLLOUT:
            self._stream.flush_room()

    def crowded(self) -> bool:
        """Return whether so many messages are under way that they come together, and may wait a moment to leave together."""
        return len(self._calls) > CROWD or len(self._requests) > MANY_REQUESTS

    def look(self) -> bool:
        """Give the socket back to the loop if no thread has read for a moment; return whether to look again. On the loop."""
        policy = self.policy
        if not self._turn.acquire(blocking=False):
            return policy.looks_again(monotonic(), self._asleep)
        try:
            if self._watched or self._ended:
                return False
            if policy.keeps(monotonic(), self._stream.progress()):
                return True
            self._let_loop_watch(True)
            return False
        finally:
            self._give_up_turn()

    def _give_up_turn(self) -> None:
        """Let others have the turn, and finish a closing that came meanwhile."""
        self._turn.release()
        if self._closing:
            self._close()

    def _let_loop_watch(self, wanted: bool) -> None:
        # turn held
        if wanted is not self._watched:
            self._stream.watch_input(wanted)
            self._watched = wanted

    def pause(self) -> None:
        """Have the loop not watch until it looks, because more comes together then. On the loop."""
        if self._looker.start() and self._turn.acquire(blocking=False):
            try:
                self.policy.paused(self._stream.progress())
                self._let_loop_watch(False)
            finally:
                self._give_up_turn()

    def writes_soon(self) -> bool:
        """Return whether many threads wait, and one of them reads: it writes what waits before each read. Any thread.

        While others want the interpreter, each system call costs a turn of waiting for it, so one writes for all.
        """
        return self._led and not self._asleep and len(self.followers) >= spinning.MANY_FOLLOWERS

    def drive(self, future: Future[Any], until: float) -> None:
        """Wait for a future as the reader, or for the thread that is (``core.futures.Driver``)."""
        if isinstance(thread_role.blocker, RefusesToBlock):
            return
        if self._unsent and not self.writes_soon():
            self._stream.flush_waiting()
        if not self._lead(future.done, until, future):
            self._follow(future, until)

    def glance(self) -> None:
        """Read once, without waiting, unless another thread reads: for a thread that sends much and does not wait yet."""
        if not isinstance(thread_role.blocker, RefusesToBlock):
            self._lead(_never, 0.0, None)

    def linger(self, enough: Callable[[], object]) -> None:
        """Read for a moment, and then sleep at the socket, until there is enough to do: it comes without a hand-over."""
        if self._unsent:
            self._stream.flush_waiting()
        self._lead(enough, monotonic() + spinning.DOZE_SECONDS, None)

    def close(self, then: Callable[[], object]) -> None:
        """Read no more, and call ``then``, once no thread does."""
        self._ended = True
        self._closing.append(then)
        self._sleeper.wake()
        self._close()

    def _close(self) -> None:
        """Finish closing, unless a thread reads, which does it when it leaves."""
        if self._turn.acquire(blocking=False):
            try:
                self._sleeper.close()
                while self._closing:
                    self._closing.pop()()
            finally:
                self._turn.release()

    # -- the thread that reads

    def _lead(self, done: Callable[[], object], until: float, awaited: Future[Any] | None) -> bool:
        """Read until it is done, the time is up or the stream ends; return False if another thread reads.

        Args:
            done: asked after each read.
            until: in monotonic seconds. Before that it sleeps if nothing comes. 0 to read once.
            awaited: the future that completes; ``None`` if there is none.
        """
        turn, role = self._turn, thread_role
        if not turn.acquire(blocking=False):
            return False
        blocker, found = role.blocker, False
        role.blocker, role.awaited, self._led = READER, awaited, True
        try:
            if self._watched:
                self._let_loop_watch(False)
            if until:
                found = self._read_until(done, until, awaited, blocker)
            else:
                self._read_once()
                found = True
        finally:
            left = False
            try:
                looker = self._looker
                keeps = self.policy.end(monotonic(), found, awaited is None, bool(self.followers), looker.ticking)
                if not (keeps or (found and self.crowded())) or not (looker.ticking or looker.start()):
                    self._let_loop_watch(not self._ended)
                left = True
            finally:
                role.blocker, role.awaited, self._led = blocker, None, False
                turn.release()
                if not left:  # a signal handler has raised something, and no thread may watch the socket
                    self._stream.end(ConnectionResetError("the thread that read the socket was interrupted"))
            if self._closing or self.followers or self._unsent or role.task is not None:
                self._after_turn()
        return True

    def _after_turn(self) -> None:
        """Do what had to wait until this thread has left: closing, what completes its future, and others' reading."""
        if self._unsent:
            self._stream.flush_waiting()  # others have left it to this thread
        if self._closing:
            self._close()
        if (task := thread_role.task) is not None:
            thread_role.task = None
            task()
        if self.followers:
            self._pass_on()

    def _read_until(self, done: Callable[[], object], until: float, awaited: Future[Any] | None, blocker: Any) -> bool:
        """Do the reading of ``_lead``; return False if the time is up."""
        role, policy, serves = thread_role, self.policy, awaited is None
        now = begun = monotonic()
        spin_seconds = policy.begin(now, serves)
        yielded = NEVER  # when this thread last did, and nothing else since
        if spin_seconds:  # nothing is there yet: a read that finds nothing costs more, and the peer may need this core
            yielded = now
            sched_yield()
        while not (done() or self._ended):
            if self._unsent:
                self._stream.flush_waiting()
            if self._read_once() != NOTHING_CAME:
                if role.task is not None:
                    return True
                yielded = NEVER
                if serves and spin_seconds:  # what came was done at once, as with some requests
                    begun = monotonic()
                continue
            now = monotonic()
            if now - begun < spin_seconds:
                yielded = now
                sched_yield()
                continue
            policy.nothing_came(now, now - yielded)
            if now >= until or not self._sleep(done, awaited, until, blocker):
                return False
            yielded = NEVER
        return True

    def _read_once(self) -> int:
        """Read once and deliver; return the number of frames, ``NOTHING_CAME`` if nothing came, or nothing more will come."""
        try:
            frames = self._read()
            for frame in frames:
                self._deliver(frame)
            return len(frames)
        except BlockingIOError:
            return NOTHING_CAME
        except BaseException as error:
            self._ended = True
            if not isinstance(error, Exception) or raised_by_handler(
                error
            ):  # it is unknown which frames were delivered
                self._stream.end(ConnectionResetError("the thread that read the socket was interrupted"))
                raise
            self._stream.end(None if isinstance(error, EOFError) else error)
            return NOTHING_CAME

    def _sleep(self, done: Callable[[], object], awaited: Future[Any] | None, until: float, blocker: Any) -> bool:
        """Sleep until there is something to read, or it is done in another way; return False if the time is up."""
        role, sleeper = thread_role, self._sleeper
        if awaited is not None and not awaited.add_waiter(sleeper):
            return True
        try:
            role.blocker = blocker  # a pool lets another thread run meanwhile
            self._asleep = True
            if self._unsent:
                self._stream.flush_waiting()
            woken = sleeper.sleep(lambda: bool(done()) or self._ended, until)
        finally:
            self._asleep = False
            role.blocker = READER
            if awaited is not None:
                awaited.remove_waiter(sleeper)
        return woken or awaited is not None

    # -- threads that wait for it

    def _follow(self, future: Future[Any], until: float) -> None:
        waiter = Waiter()
        try:
            if not future.add_waiter(waiter):
                return
            while not (future.done() or self._ended):
                if waiter not in self.followers:  # it is new, or was to read, and another thread came first
                    self.followers.append(waiter)
                if self._lead(future.done, until, future) or not block(waiter.sleep, until):
                    return
        finally:
            future.remove_waiter(waiter)
            try:
                self.followers.remove(waiter)
            except ValueError:  # it was to read next
                self._pass_on()

    def _pass_on(self) -> None:
        """Let the next thread that waits read, if there is one, unless another reads, which does this when it leaves."""
        try:
            if not self._led:
                self.followers.popleft().release()
        except IndexError:
            pass


def _never() -> bool:
    return False
