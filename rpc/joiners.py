"""Joiners that have a challenge and have not answered it: few, for a short time, each answer taken once.

A pure state machine; time is given. When there are too many, the oldest of the address that has the most is refused: an honest
joiner answers within milliseconds, so a host that is slow, or opens many at once, displaces its own. Their number is what
protects this worker, and not their time: on a machine with a hundred busy processes an honest one may be given the processor
only every few seconds, so it has as long as workers have to come together.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
HANDSHAKE_SECONDS = 60.0
MOST = 1024  # in all
MOST_PER_ADDRESS = 512  # at least the workers of one host that start at the same time
LATE = f"it did not answer the challenge within {HANDSHAKE_SECONDS:g} s"
CROWDED = "too many joiners had not answered their challenge; the oldest made room"


class Joiners(Generic[T]):
    """Handshakes under way at the acceptor, by the nonce of their challenge."""

    def __init__(self, most: int = MOST, most_per_address: int = MOST_PER_ADDRESS) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._waiting: dict[str, dict[bytes, tuple[float, T]]] = {}  # by address, the oldest first

    def add(self, nonce: bytes, address: str, handshake: T, now: float) -> list[tuple[str, str]]:
        """Add a joiner that was given a challenge. Return the addresses that are refused for it or were too late, and why.

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
        """Return the handshake that a joiner answers, once; ``None`` if there is none, or no longer.

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
