"""Times of the notices about a long wait: the first after 5 s, the others every 30 s."""

from __future__ import annotations

FIRST_SECONDS = 5.0
NEXT_SECONDS = 30.0


class Notices:
    """Times of the notices about one wait, which began at ``now``."""

    def __init__(self, now: float) -> None:
        self._next = now + FIRST_SECONDS

    def due(self, now: float) -> bool:
        """Return whether a notice is due; if so, set the time of the next one."""
        if now < self._next:
            return False
        self._next = now + NEXT_SECONDS
        return True

    def pause(self, now: float) -> float:
        """Return the seconds until the next one."""
        return max(self._next - now, 0.0)
