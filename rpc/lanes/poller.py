"""Readiness of the sockets of one lane: an ``epoll`` object of its own, inside the event loop's.

Any thread may change what a socket is watched for, which costs one system call and wakes nobody. That is what the loop's own
registrations cannot do.
"""

from __future__ import annotations

import asyncio
import select
from typing import Protocol

MOST_EVENTS = 64


class Watched(Protocol):
    """Owner of a socket."""

    def ready(self, events: int) -> None:
        """Read or write: ``select.EPOLLIN``, ``EPOLLOUT`` and so on say what the socket is ready for. On the loop."""
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
            descriptor: of the socket.
            owner: is told what the socket is ready for.
            events: what to watch for.
        """
        if not self._owners:
            self._loop.add_reader(self._epoll.fileno(), self._tell)
        self._owners[descriptor] = owner
        self._epoll.register(descriptor, events)

    def remove(self, descriptor: int) -> None:
        """Watch a socket no longer. Before it is closed."""
        if self._owners.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Watch nothing any more. On the loop's thread."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _tell(self) -> None:
        for descriptor, events in self._epoll.poll(0, MOST_EVENTS):
            if (owner := self._owners.get(descriptor)) is not None:
                owner.ready(events)
