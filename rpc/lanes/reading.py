"""Turns of reading a stream: the loop reads, or a thread that waits for what the stream will bring (leader/follower).

A hand-over between threads costs more than all the rest of a small call, because the thread that is woken sleeps on a halted
core. So a thread that waits for an answer becomes the stream's reader, if nobody is: it takes every frame that comes, those of
others too, until its own answer is there, and gives reading back to the loop. It reads without blocking for ``SPIN_SECONDS``,
with ``sched_yield`` between, so that it keeps neither core nor GIL from others; only then it sleeps (``spinning.py``).

The thread that holds ``_turn`` reads. Otherwise the loop watches the socket, and changes to that are made with the turn held.
While calls follow one another closely, a thread that has its answer, or a request to serve, does not give the
socket back at once: it will read again in a moment, and the loop's thread would only contend for the interpreter. ``look``,
which the loop then calls now and then, gives it back when nobody has read for a moment.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence, Sized
from os import sched_yield
from typing import Any

from ...core.futures import Future, Waiter, block, raised_by_handler, thread_role
from .ioloop import READER, RefusesToBlock
from .sleeping import Sleeper
from .spinning import CONFIDENCE, REQUEST_SPIN_SECONDS, SOON_SECONDS, SPIN_SECONDS, Spinning

READS_IN_A_ROW = 16  # by the loop, before it does its other work
OFTEN_SECONDS = 1e-3  # between two turns of reading, of calls that follow one another: echoes of 1 MiB, say
AWAY_SECONDS = 1e-3  # after its turn, until the loop takes the socket back
LEAVING_SECONDS = 0.2e-3  # that the loop waits for the turn of a thread that leaves
DOZE_SECONDS = 0.05  # that a thread which has served a request sleeps at its connection before the loop watches it
QUICK_SECONDS = 0.5e-3  # a request that takes longer is not waited for by those that come after it
MANY = 4  # threads that wait for the one that reads: fewer write themselves
NEVER = float("inf")


class SharedReading:
    """Reading of one stream, in whatever thread (``base.Reading``).

    Args:
        descriptor: of the socket.
        read: reads once, without waiting (``StreamReader.read``).
        deliver: gets each frame.
        watch: told whether the loop is to call ``by_loop`` when there is something to read.
        end: told, once, why there is nothing more to read: an error, or ``None`` at the peer's end.
        flush: writes what waits to be written, before a thread waits for what is to be read.
        unsent: what waits to be written; looked at before ``flush`` is called.
        keep: asked when a thread leaves: True if the loop need not watch meanwhile, because it will ``look``. Gets whether
            threads read often, and whether what they serve is quick; ``None`` if this one has waited for an answer.

    Attributes:
        spinning: whether a thread that reads spins; changed with the turn held.
    """

    def __init__(
        self,
        descriptor: int,
        read: Callable[[], Sequence[Any]],
        deliver: Callable[[Any], None],
        watch: Callable[[bool], None],
        end: Callable[[Exception | None], None],
        flush: Callable[[], None],
        unsent: Sized,
        keep: Callable[[bool, bool | None], bool] = lambda often, quick: False,
    ) -> None:
        self._read = read
        self._deliver = deliver
        self._watch = watch
        self._end = end
        self._flush = flush
        self._unsent = unsent
        self._keep = keep
        self._watched: bool | None = True  # by the loop; changed with the turn held
        self._left = 0.0  # when a thread last left, in monotonic seconds
        self._looked = 0.0  # when the loop last did, and the progress that it saw
        self._progress = 0
        self._quick = False  # what was served last took a moment only
        self._asleep = False  # a thread sleeps with the turn
        self._led = False  # a thread reads that looks after those that wait when it leaves
        self._turn = threading.RLock()  # knows its owner, also when the acquiring of it was interrupted
        self._busy = False  # between the beginning of a read and the end of its deliveries
        self._ended = False
        self._sleeper = Sleeper(descriptor)
        self._followers: deque[Waiter] = deque()
        self._closing: list[Callable[[], object]] = []
        self.spinning = Spinning()

    def by_loop(self) -> None:
        """Read what there is, unless another thread reads."""
        # A thread that leaves has the loop watch just before it releases the turn: the loop would be told again and again.
        if not self._turn.acquire(timeout=LEAVING_SECONDS):
            return
        try:
            spinning = self.spinning
            if spinning.confidence < CONFIDENCE and time.monotonic() - spinning.gave_up < SOON_SECONDS:
                spinning.confidence += 1
            for _ in range(READS_IN_A_ROW):
                if not self._read_once():
                    break
        finally:
            self._give_up_turn()

    def look(self, progress: int = 0) -> bool:
        """Give the socket back to the loop if no thread has read for a moment; return whether to look again. On the loop.

        Args:
            progress: how much of what was read has been used so far: if that goes on, there is no need to read more.
        """
        before, self._looked = self._looked, time.monotonic()
        if not self._turn.acquire(blocking=False):
            return not self._asleep or self._left > before  # the thread that reads gives it back when it leaves
        try:
            if self._watched or self._ended:
                return False
            if self._looked - self._left < AWAY_SECONDS or self._progress != progress:
                self._progress = progress
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
            self._watched = None  # an interrupted change is made again
            self._watch(wanted)
            self._watched = wanted

    def pause(self, progress: int = 0) -> None:
        """Have the loop not watch until it looks, because more comes together then. On the loop.

        Args:
            progress: as for ``look``.
        """
        if self._turn.acquire(blocking=False):
            try:
                self._progress = progress
                self._let_loop_watch(False)
            finally:
                self._give_up_turn()

    def writes_soon(self) -> bool:
        """Return whether many threads wait, and one of them reads: it writes what waits before each read. Any thread.

        While others want the interpreter, each system call costs a turn of waiting for it, so one writes for all.
        """
        return self._led and not self._asleep and len(self._followers) >= MANY

    def drive(self, future: Future[Any], until: float) -> None:
        """Wait for a future as the reader, or for the thread that is (``core.futures.Driver``)."""
        if isinstance(thread_role.blocker, RefusesToBlock):
            return
        if self._unsent and not self.writes_soon():
            self._flush()
        if not self._lead(future.done, until, future):
            self._follow(future, until)

    def glance(self) -> None:
        """Read once, without waiting, unless another thread reads: for a thread that sends much and does not wait yet."""
        if not isinstance(thread_role.blocker, RefusesToBlock):
            self._lead(_never, 0.0, None)

    def linger(self, enough: Callable[[], object]) -> None:
        """Read for a moment, and then sleep at the socket, until there is enough to do: it comes without a hand-over."""
        if self._unsent:
            self._flush()
        now = time.monotonic()
        self._quick = now - self._left < QUICK_SECONDS
        self._lead(enough, now + DOZE_SECONDS, None)

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
        blocker, found, held = role.blocker, not until, False
        try:
            try:
                held = turn.acquire(blocking=False)
                if not held:
                    return False
                role.blocker, role.awaited, self._led = READER, awaited, True
                if self._watched is not False:
                    self._let_loop_watch(False)
                if until:
                    found = self._read_until(done, until, awaited, blocker)
                else:
                    self._read_once()
                self._leave(found, awaited is None)
            except BaseException:
                held = held or turn._is_owned()  # type: ignore[attr-defined]
                if held:
                    self._interrupted()
                raise
            finally:
                # Nothing is called before the release: a signal handler could run there, and raise.
                role.blocker, role.awaited = blocker, None
                if held:
                    self._led = False
                    turn.release()
            if self._closing or self._followers or self._unsent or role.task is not None:
                self._after_turn()
        except BaseException:
            self._after_turn()  # also if this was interrupted
            raise
        return True

    def _after_turn(self) -> None:
        """Do what had to wait until this thread has left: closing, what completes its future, and others' reading."""
        if self._unsent:
            self._flush()  # others have left it to this thread
        if self._closing:
            self._close()
        if (task := thread_role.task) is not None:
            thread_role.task = None
            task()
        if self._followers:
            self._pass_on()

    def _leave(self, found: bool, serves: bool) -> None:
        # turn held
        now = time.monotonic()
        often, self._left = bool(self._followers) or now - self._left < OFTEN_SECONDS, now
        if not (found and self._keep(often, self._quick if serves else None)):
            self._let_loop_watch(not self._ended)

    def _read_until(self, done: Callable[[], object], until: float, awaited: Future[Any] | None, blocker: Any) -> bool:
        """Do the reading of ``_lead``; return False if it ends in vain."""
        now = time.monotonic()
        role, spinning = thread_role, self.spinning
        spins = spinning.confidence > 0
        spin_for = REQUEST_SPIN_SECONDS if awaited is None else SPIN_SECONDS
        spin_until = now + spin_for + spinning.copying if spins else now
        spinning.copying = 0.0
        yielded = now if spins else NEVER  # when this thread last did, and nothing else since
        if spins:  # nothing is there yet: a read in vain costs more, and the peer may need this core
            sched_yield()
        while not (done() or self._ended):
            if self._unsent:
                self._flush()
            if self._read_once():
                if role.task is not None:
                    return True
                yielded = NEVER
                if awaited is None and spins:  # what came was done at once, as with some requests
                    now = time.monotonic()
                    spin_until = now + spin_for
                continue
            now = time.monotonic()
            if now < spin_until:
                yielded = now
                sched_yield()
                continue
            spinning.was_vain(now, now - yielded)
            if now >= until or not self._sleep(done, awaited, until, blocker):
                return False
            yielded = NEVER
            if not spins and time.monotonic() - now < SOON_SECONDS:
                spinning.confidence += 1  # not by a method: a small call that sleeps comes here at both ends
        if spinning.confidence < CONFIDENCE and now < spin_until:
            spinning.confidence += 1
            if spinning.confidence == CONFIDENCE:
                spinning.trust()
        return True

    def _read_once(self) -> bool:
        """Read once and deliver; return False if there was nothing, or there will be nothing more."""
        self._busy = True
        try:
            frames = self._read()
        except BlockingIOError:
            self._busy = False
            return False
        except Exception as error:
            if raised_by_handler(error):
                raise
            self._busy = False
            self._ended = True
            self._end(None if isinstance(error, EOFError) else error)
            return False
        for frame in frames:
            self._deliver(frame)
        self._busy = False
        return True

    def _sleep(self, done: Callable[[], object], awaited: Future[Any] | None, until: float, blocker: Any) -> bool:
        """Sleep until there is something to read, or it is done in another way; return False if it was in vain."""
        role, sleeper = thread_role, self._sleeper
        if awaited is not None and not awaited.add_waiter(sleeper):
            return True
        try:
            role.blocker = blocker  # a pool lets another thread run meanwhile
            self._asleep = True
            if self._unsent:
                self._flush()
            woken = sleeper.sleep(lambda: bool(done()) or self._ended, until)
        finally:
            self._asleep = False
            role.blocker = READER
            if awaited is not None:
                awaited.remove_waiter(sleeper)
        return woken or awaited is not None

    def _interrupted(self) -> None:
        """Ctrl-C, say. If it came while frames were read, nobody knows which were, and the connection is given up."""
        # turn held
        if self._busy:
            self._ended = True
            self._end(ConnectionResetError("the thread that read the socket was interrupted"))
        self._let_loop_watch(not self._ended)

    # -- threads that wait for it

    def _follow(self, future: Future[Any], until: float) -> None:
        waiter = Waiter()
        try:
            if not future.add_waiter(waiter):
                return
            while not (future.done() or self._ended):
                if waiter not in self._followers:  # it is new, or was to read, and another thread came first
                    self._followers.append(waiter)
                if self._lead(future.done, until, future) or not block(waiter.sleep, until):
                    return
        finally:
            future.remove_waiter(waiter)
            try:
                self._followers.remove(waiter)
            except ValueError:  # it was to read next
                self._pass_on()

    def _pass_on(self) -> None:
        """Let the next thread that waits read, if there is one, unless another reads, which does this when it leaves."""
        try:
            if not self._led:
                self._followers.popleft().release()
        except IndexError:
            pass


def _never() -> bool:
    return False
