"""Readiness of the sockets of one lane: an ``epoll`` object of its own, which the event loop watches, and what it is told.

With it any thread may change the events for which a socket is watched. That takes one system call, and does not wake the
loop. With the loop's own registrations neither is possible.
"""

from __future__ import annotations

import asyncio
import select
import threading
from select import EPOLLIN, EPOLLOUT
from typing import Protocol

MOST_EVENTS = 64


class Watched(Protocol):
    """Owner of a socket."""

    def ready(self, events: int) -> None:
        """Read or write: ``events`` (``select.EPOLLIN``, ``EPOLLOUT``, …) says for what the socket is ready. On the loop."""
        ...


class Poller:
    """Watches sockets, and tells their owners on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._owners: dict[int, Watched] = {}
        self.watch = self._epoll.modify  # (descriptor, events); any thread

    def add(self, descriptor: int, owner: Watched, events: int) -> None:
        """Watch a socket. On the loop.

        Args:
            descriptor: descriptor of the socket.
            owner: is told when the socket is ready.
            events: the events to watch for.
        """
        if not self._owners:
            self._loop.add_reader(self._epoll.fileno(), self._tell)
        self._owners[descriptor] = owner
        self._epoll.register(descriptor, events)

    def remove(self, descriptor: int) -> None:
        """Stop watching a socket, which is to be closed."""
        if self._owners.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Stop watching. On the loop's thread."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _tell(self) -> None:
        for descriptor, events in self._epoll.poll(0, MOST_EVENTS):
            if (owner := self._owners.get(descriptor)) is not None:
                owner.ready(events)


class SocketWatch:
    """Watch of one stream socket, for input and for room. Any thread changes it; made on the loop's thread.

    Args:
        poller: watches the socket.
        descriptor: descriptor of the socket.
        owner: is told when the socket is ready.
    """

    def __init__(self, poller: Poller, descriptor: int, owner: Watched) -> None:
        self._poller = poller
        self._descriptor = descriptor
        self._lock = threading.Lock()  # guards what follows
        self._events = EPOLLIN  # what to watch for
        self._told: int | None = EPOLLIN  # what the poller was told; None when it has forgotten this socket
        self._ended = False
        self._closed = False
        poller.add(descriptor, owner, EPOLLIN)

    def input(self, wanted: bool) -> None:
        """Watch for something to read, or no longer."""
        with self._lock:
            self._change(*((EPOLLIN, 0) if wanted else (0, EPOLLIN)))

    def room(self, wanted: bool) -> None:
        """Watch for room to write, or no longer."""
        with self._lock:
            self._change(*((EPOLLOUT, 0) if wanted else (0, EPOLLOUT)))

    def end(self) -> bool:
        """Watch for nothing to read from here on; return False if it has ended before."""
        with self._lock:
            if self._ended:
                return False
            self._ended = True
            self._change(0, EPOLLIN)
            return True

    def close(self) -> None:
        """Watch for nothing."""
        with self._lock:
            self._change(0, EPOLLIN | EPOLLOUT)
            self._closed = True

    def _change(self, more: int, less: int) -> None:
        # lock held
        if self._closed or (self._told is None and not more & EPOLLOUT):
            return
        if self._told is None:
            raise BrokenPipeError("the peer has ended the stream")
        events = (self._events | more) & ~less
        if self._ended:
            events &= ~EPOLLIN  # a thread may leave the reading late
        self._events = events
        if self._ended and not events:
            # Also if it was not watched: the poller would keep the owner, and its epoll would report the hang-up for ever.
            self._poller.remove(self._descriptor)
            self._told = None
        elif events != self._told:
            self._poller.watch(self._descriptor, events)
            self._told = events
