"""Joiners that were sent a challenge and have not answered it yet: their number and time are limited, and each answers once.

A pure state machine; the time is given to it. When there are too many joiners, the oldest one of the address that has the most
is refused. An honest joiner answers within milliseconds, so a host that opens many connections displaces only its own. The
limit of their number protects this worker; the limit of time is long. On a machine with a hundred busy processes an honest
joiner may get the processor only every few seconds, so it has as long as workers have for the rendezvous.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
HANDSHAKE_SECONDS = 60.0
MOST_JOINERS = 1024  # in all
MOST_PER_ADDRESS = 512  # must not be less than the workers of one host that start at the same time
LATE = f"it did not answer the challenge within {HANDSHAKE_SECONDS:g} s"
CROWDED = "too many joiners had not answered their challenge; the oldest made room"


class Joiners(Generic[T]):
    """Handshakes under way at the acceptor, by the nonce of their challenge."""

    def __init__(self, most: int = MOST_JOINERS, most_per_address: int = MOST_PER_ADDRESS) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._waiting: dict[str, dict[bytes, tuple[float, T]]] = {}  # by address, the oldest first

    def add(self, nonce: bytes, address: str, handshake: T, now: float) -> list[tuple[str, str]]:
        """Add a joiner that was sent a challenge. Return the addresses of joiners that were dropped, and why.

        Args:
            nonce: random number of the challenge.
            address: where the joiner comes from.
            handshake: this end of its handshake.
            now: monotonic seconds.
        """
        turned_away = self._drop_late(now)
        own = self._waiting.setdefault(address, {})
        own[nonce] = (now + HANDSHAKE_SECONDS, handshake)
        if len(own) > self._most_per_address:
            turned_away.append(self._drop_oldest(address, CROWDED))
        elif len(self) > self._most:
            turned_away.append(self._drop_oldest(max(self._waiting, key=lambda at: len(self._waiting[at])), CROWDED))
        return turned_away

    def take(self, nonce: bytes, address: str, now: float) -> T | None:
        """Remove and return the handshake that a joiner answers; ``None`` if there is none or its time is up.

        Args:
            nonce: random number of the challenge that it answers.
            address: where it comes from.
            now: monotonic seconds.
        """
        if nonce not in self._waiting.get(address, ()):
            return None
        until, handshake = self._pop(address, nonce)
        return handshake if now < until else None

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _drop_late(self, now: float) -> list[tuple[str, str]]:
        dropped = []
        for address, own in list(self._waiting.items()):
            while own and next(iter(own.values()))[0] <= now:
                dropped.append(self._drop_oldest(address, LATE))
        return dropped

    def _drop_oldest(self, address: str, reason: str) -> tuple[str, str]:
        self._pop(address, next(iter(self._waiting[address])))
        return address, reason

    def _pop(self, address: str, nonce: bytes) -> tuple[float, T]:
        own = self._waiting[address]
        entry = own.pop(nonce)
        if not own:
            del self._waiting[address]
        return entry
