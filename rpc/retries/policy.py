"""``RetryPolicy``: how often, and after which pauses, a call is sent again."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...base.errors import ArgumentKindError, ArgumentValueError


@dataclass(frozen=True)
class RetryPolicy:
    """Rule for a call whose worker is lost: how often it is sent, and how long the caller waits in between.

    It decides nothing about the whole: a call has one time-out, for all attempts together.

    Attributes:
        attempts: the most times that the call is sent, the first time included.
        wait: seconds to wait before the second attempt, the factor by which each later wait is longer, and the most seconds.
            After that wait, the caller waits until the worker is there again, however long that takes.

    Raises:
        ArgumentKindError: ``attempts`` is no whole number, or ``wait`` not three numbers.
        ArgumentValueError: there is no attempt, a wait is negative, or the factor below 1.

    Example:
        >>> from telegrad.rpc import RetryPolicy
        >>> policy = RetryPolicy(attempts=4, wait=(0.1, 3, 0.5))
        >>> [policy.pause(failed) for failed in (1, 2, 3, 4)]
        [0.1, 0.30000000000000004, 0.5, None]
    """

    attempts: int = 10
    wait: tuple[float, float, float] = (0.1, 2.0, 5.0)

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or isinstance(self.attempts, bool):
            raise ArgumentKindError(f"attempts must be a whole number, at least 1; you gave {self.attempts!r}")
        if self.attempts < 1:
            raise ArgumentValueError(f"attempts must be at least 1; you gave {self.attempts}")
        wrong = f"wait must be (first seconds, factor, most seconds); you gave {self.wait!r}"
        if not isinstance(self.wait, tuple) or len(self.wait) != 3:
            raise ArgumentKindError(wrong)
        if not all(isinstance(each, (int, float)) for each in self.wait):
            raise ArgumentKindError(wrong)
        first, factor, longest = self.wait
        if not (0 <= first < math.inf and 1 <= factor < math.inf and 0 <= longest < math.inf):
            raise ArgumentValueError(f"{wrong}; no wait is negative or endless, and the factor is at least 1")

    def pause(self, failed: int) -> float | None:
        """Return the seconds to wait after so many failed attempts; ``None`` if that was the last.

        Args:
            failed: how many attempts have failed, at least 1.
        """
        if failed >= self.attempts:
            return None
        first, factor, longest = self.wait
        seconds = first
        for _ in range(failed - 1):
            if seconds >= longest or factor == 1:
                break
            seconds *= factor
        return min(seconds, longest)
