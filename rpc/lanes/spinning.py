"""Spinning: whether a thread that reads a stream looks for the next frame again and again for a moment, before it sleeps.

It pays if frames come within that moment, and if no other thread needs the core. Both are learned from how the latest waits
went. ``reading.py`` does the spinning itself.
"""

from __future__ import annotations

SPIN_SECONDS = 0.3e-3  # for an answer: as long as it takes to wake a sleeping process
REQUEST_SPIN_SECONDS = 0.15e-3  # for the next request: who calls at once mostly does so earlier
COPIED_PER_SECOND = 4e9  # bytes; a peer's copying of a large frame's arrays, and its answer's, is waited for as well
COPY_SECONDS = 0.5e-3  # but not longer
SOON_SECONDS = 2 * SPIN_SECONDS  # what comes so soon, although both ends sleep, would have come while spinning
CONFIDENCE = 8  # so many vain spins in a row end the spinning
LONG_SECONDS = 2 * SPIN_SECONDS  # if a yield takes so long, others need the core, and may keep it for milliseconds
DISTRUST = 8  # short sleeps until it is tried again; after each long yield that follows soon four times as many
MOST_DISTRUST = 200


class Spinning:
    """Confidence in spinning at one stream. Changed by the thread that reads.

    Attributes:
        confidence: a thread spins while this is above 0; at most ``CONFIDENCE``. It grows with each frame that comes while a
            thread spins, or soon after a thread gave up spinning.
        copying: seconds that the peer needs to copy what it was sent last.
        gave_up: when a thread last ended its spinning, in monotonic seconds.
    """

    __slots__ = ("_distrust", "confidence", "copying", "gave_up")

    def __init__(self) -> None:
        self.confidence = CONFIDENCE
        self.copying = 0.0
        self._distrust = DISTRUST  # after the next long yield
        self.gave_up = 0.0

    def allow_for(self, size: int) -> None:
        """Let the next thread that waits spin for longer: the peer copies ``size`` bytes first. Any thread."""
        self.copying = min(size / COPIED_PER_SECOND, COPY_SECONDS)

    def was_vain(self, now: float, last_yield: float) -> None:
        """Note that nothing came.

        Args:
            now: in monotonic seconds.
            last_yield: seconds that the last yield took; infinitely negative if the thread did not yield.
        """
        self.gave_up = now
        if last_yield > LONG_SECONDS:
            self.confidence = -self._distrust
            self._distrust = min(4 * self._distrust, MOST_DISTRUST)
        elif self.confidence > 0:
            self.confidence -= 1

    def trust(self) -> None:
        """Note that spinning paid until the confidence was the full one: the next long yield ends it for a moment only."""
        self._distrust = DISTRUST
