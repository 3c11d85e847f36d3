"""Readiness of the sockets of one lane: an ``epoll`` object of its own, which the event loop watches.

With it any thread may change the events for which a socket is watched. That takes one system call, and does not wake the
loop. With the loop's own registrations neither is possible.
"""

from __future__ import annotations

import asyncio
import select
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
