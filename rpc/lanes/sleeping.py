"""Sleep of a thread until a socket can be read, or another thread wakes it."""

from __future__ import annotations

import math
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ...core.futures import block, opens, shield


class Sleeper:
    """Lets one thread at a time sleep in ``poll`` on a socket and an eventfd. The eventfd is made when it is first needed.

    Args:
        descriptor: descriptor of the socket.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._asleep = 0  # 2 if a signal handler sleeps here while its thread does
        self._alarm = -1
        self._spare: list[select.poll] = []  # a poll object that is not in use

    def sleep(self, needless: Callable[[], bool], until: float) -> bool:
        """Sleep until the socket can be read, ``wake`` is called, or the time is up; return False if the time is up.

        Args:
            needless: returns whether there is no need to sleep. It is asked when ``wake`` has begun to have an effect.
            until: end of the time, in monotonic seconds.
        """
        poll = self._spare.pop() if self._spare else self._prepare()
        self._asleep += 1
        try:
            return needless() or block(partial(self._wait, poll), until)
        finally:
            self._asleep -= 1
            self._spare = [poll]
            if self._asleep:  # a signal handler slept here, and may have taken the alarm for its thread's own sleep
                self.wake()

    def release(self) -> None:
        """Wake the thread. A future that completes calls this (``Future.add_waiter``)."""
        self.wake()

    def wake(self) -> None:
        """Wake the thread, if one sleeps. Any thread."""
        with self._lock:
            if self._asleep and self._alarm >= 0:
                os.eventfd_write(self._alarm, 1)

    def close(self) -> None:
        """Free the eventfd. From here on no thread may sleep."""
        with self._lock:
            if self._alarm >= 0:
                os.close(self._alarm)
                self._alarm = -1

    def _prepare(self) -> select.poll:
        with self._lock:
            if self._alarm < 0:
                self._alarm = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        poll.register(self._alarm, select.POLLIN)
        return poll

    @opens
    def _wait(self, poll: select.poll, seconds: float) -> bool:
        if shield.noted:
            shield.deliver()
        ready = poll.poll(None if seconds < 0 else math.ceil(min(seconds, 1e6) * 1000))
        for descriptor, _ in ready:
            if descriptor == self._alarm:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._alarm)
        return bool(ready)
