"""Policy of reading a stream: how long a thread spins before it sleeps, and when the loop watches the socket again.

Spinning pays if frames come within that moment, and if no other thread needs the core. A thread that soon reads again need
not give the socket back to the loop. Both are learned from how the latest turns of reading went. ``reading.py`` does what is
decided here; this file reads no clock and no socket.
"""

from __future__ import annotations

SPIN_SECONDS = 0.3e-3  # for an answer: as long as it takes to wake a sleeping process
REQUEST_SPIN_SECONDS = 0.15e-3  # for the next request: a caller that calls at once mostly does so earlier
COPIED_PER_SECOND = 4e9  # bytes; a peer's copying of a large frame's arrays, and its answer's, is waited for as well
COPY_SECONDS = 0.5e-3  # but not longer
SOON_SECONDS = 2 * SPIN_SECONDS  # a frame that comes so soon, although both ends sleep, would have come while spinning
CONFIDENCE = 8  # so many useless spins in a row end the spinning
LONG_SECONDS = 2 * SPIN_SECONDS  # if a yield takes so long, others need the core, and may keep it for milliseconds
DISTRUST = 8  # short sleeps until it is tried again; after each long yield that follows soon four times as many
MOST_DISTRUST = 200
DOZE_SECONDS = 0.05  # that a thread which has served a request sleeps at its session before the loop watches it

OFTEN_SECONDS = 1e-3  # between two turns of reading, of calls that follow one another: echoes of 1 MiB, say
QUICK_SECONDS = 0.5e-3  # a request that takes longer is not waited for by those that come after it
STEADY = 4  # turns in a row that follow one another closely, before the loop is woken to look now and then
AWAY_SECONDS = 1e-3  # after the last turn, until the loop takes the socket back
READING_LOOK_SECONDS = 4e-3  # between two looks of the loop, at most
LEAVING_SECONDS = 0.2e-3  # that the loop waits for the turn of a thread that leaves
READS_IN_A_ROW = 16  # by the loop, before it does its other work
MANY_FOLLOWERS = 4  # threads that wait for the one that reads: fewer write themselves


class SpinPolicy:
    """Decisions about reading one stream. Times are given, in monotonic seconds. The thread with the turn calls this.

    Attributes:
        confidence: a thread spins while this is above 0; at most ``CONFIDENCE``. It grows with each turn whose frame comes
            while the thread spins, or soon after a thread gave up spinning.
        loop_read: when the loop first found something to read since the latest turn; 0 if it has not.
    """

    __slots__ = (
        "_calm", "_copying", "_distrust", "_gave_up", "_left", "_looked", "_progress", "_quick", "_slept", "_spins",
        "confidence", "loop_read",
    )  # fmt: skip

    def __init__(self) -> None:
        self.confidence = CONFIDENCE
        self.loop_read = 0.0
        self._copying = 0.0  # seconds that the peer needs to copy what it was sent last
        self._distrust = DISTRUST  # after the next long yield
        self._gave_up = 0.0  # when a thread last ended its spinning
        self._spins = self._slept = False  # the thread with the turn does; it has slept in this turn
        self._left = 0.0  # when a thread last left
        self._quick = False  # what was served last took a moment only
        self._calm = 0  # turns in a row that followed one another closely, and whose requests were quick
        self._looked = 0.0  # when the loop last did, and the progress that it saw
        self._progress = 0

    # -- spinning

    def allow_for(self, size: int) -> None:
        """Let the next thread that waits spin for longer: the peer copies ``size`` bytes first. Any thread."""
        self._copying = min(size / COPIED_PER_SECOND, COPY_SECONDS)

    def begin(self, now: float, serves: bool) -> float:
        """Begin a turn; return for how many seconds the thread spins, 0 if it is to sleep at once.

        Args:
            now: the time.
            serves: it waits for the next request, not for an answer; it spins for so long after each request.
        """
        if self.loop_read:
            if self.confidence < CONFIDENCE and self.loop_read - self._gave_up < SOON_SECONDS:
                self.confidence += 1
            self.loop_read = 0.0
        if serves:
            self._quick = now - self._left < QUICK_SECONDS
        copying, self._copying = self._copying, 0.0
        self._slept = False
        self._spins = self.confidence > 0
        return (REQUEST_SPIN_SECONDS if serves else SPIN_SECONDS) + copying if self._spins else 0.0

    def nothing_came(self, now: float, last_yield: float) -> None:
        """Note that nothing came for so long: the thread sleeps.

        Args:
            now: the time.
            last_yield: seconds that the last yield took; infinitely negative if the thread did not yield.
        """
        if self._slept and not self._spins and now - self._gave_up < SOON_SECONDS:
            self.confidence += 1  # the former sleep of this turn was short
        self._slept, self._gave_up = True, now
        if last_yield > LONG_SECONDS:
            self.confidence = 1 - self._distrust
            self._distrust = min(4 * self._distrust, MOST_DISTRUST)
        elif self.confidence > 0:
            self.confidence -= 1

    # -- the watch of the socket

    def end(self, now: float, found: bool, serves: bool, followed: bool, looked_after: bool) -> bool:
        """End a turn; return whether the loop need not watch the socket, because it looks now and then.

        Args:
            now: the time.
            found: what the thread waited for came.
            serves: it waited for a request, not for an answer.
            followed: other threads wait to read.
            looked_after: the loop looks now and then already.
        """
        often, self._left = followed or now - self._left < OFTEN_SECONDS, now
        spun, slept, self._spins, self._slept = self._spins, self._slept, False, False
        if not found:
            return False
        if self.confidence < CONFIDENCE and spun and (serves or not slept):
            self.confidence += 1
            if self.confidence == CONFIDENCE:
                self._distrust = DISTRUST  # the next long yield ends the spinning for a moment only
        elif slept and not spun and now - self._gave_up < SOON_SECONDS:
            self.confidence += 1
        self._calm = self._calm + 1 if often and (self._quick or not serves) else 0
        return self._calm >= (1 if looked_after else STEADY)

    def looks_again(self, now: float, asleep: bool) -> bool:
        """Return whether the loop, which has found a thread with the turn, is to look again.

        Args:
            now: the time.
            asleep: the thread sleeps. It gives the socket back itself; but if turns have ended since the last look, more will.
        """
        before, self._looked = self._looked, now
        return not asleep or self._left > before

    def keeps(self, now: float, progress: int) -> bool:
        """Return whether the loop, which has found no thread with the turn, still does not watch the socket.

        Args:
            now: the time.
            progress: how much of what was read has been used so far: if that goes on, there is no need to read more.
        """
        before, self._progress, self._looked = self._progress, progress, now
        return now - self._left < AWAY_SECONDS or progress != before

    def paused(self, progress: int) -> None:
        """Note that the loop does not watch for a moment, because more comes together then."""
        self._progress = progress
