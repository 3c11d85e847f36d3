"""Limit of the connections to the page's server: those without the token have little time, and are cut off first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 32  # at a time
TOKEN_SECONDS = 5.0  # for a connection to send its first request with the token
Address: TypeAlias = tuple[str, int]  # of the client's end: it means one open connection


class ClientLimit:
    """Connections that are open. Any program of this machine can open some; only the page's user has the token.

    Args:
        most: how many may be open.
    """

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        self._most = most
        self._strangers: dict[Address, Callable[[], object]] = {}  # how to cut each off, the oldest first
        self._users: set[Address] = set()

    def opened(self, client: Address, cut: Callable[[], object]) -> None:
        """Note a new connection. If there are too many, the oldest without the token is cut off; it may be the new one."""
        self._strangers[client] = cut
        if len(self._strangers) + len(self._users) > self._most:
            self.cut(next(iter(self._strangers)))

    def shown(self, client: Address) -> None:
        """Note that a connection has shown the token."""
        if self._strangers.pop(client, None):
            self._users.add(client)

    def cut(self, client: Address) -> None:
        """Cut a connection off, unless it has shown the token."""
        if cut := self._strangers.pop(client, None):
            cut()

    def closed(self, client: Address) -> None:
        """Note that a connection is closed."""
        self._strangers.pop(client, None)
        self._users.discard(client)


class LimitedProtocol(H11Protocol):
    """Connection of uvicorn's that counts for a limit.

    Args:
        limit: the limit.
        rest: what uvicorn gives.
    """

    def __init__(self, limit: ClientLimit, *rest: Any, **named: Any) -> None:
        super().__init__(*rest, **named)
        self._limit = limit
        self._timer: asyncio.TimerHandle | None = None
        self._place: Address = ("", 0)

    def connection_made(self, transport: Any) -> None:
        """Count it, and give it some time."""
        super().connection_made(transport)
        self._place = self.client or self._place
        self._timer = self.loop.call_later(TOKEN_SECONDS, self._limit.cut, self._place)
        self._limit.opened(self._place, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._limit.closed(self._place)
        super().connection_lost(exc)
