"""Clocks of other workers: how far each is ahead of this one's, estimated from calls as in NTP (RFC 5905, section 8)."""

from __future__ import annotations


class Clocks:
    """Offsets of the clocks of other workers, in nanoseconds. The call with the least time on the way decides."""

    def __init__(self) -> None:
        self._best: dict[int, tuple[int, int]] = {}  # by rank: time on the way, offset

    def offset(self, rank: int, sent: int, began: int, ended: int, arrived: int) -> int:
        """Return what to add to times of a worker to have them on this worker's clock.

        Workers of one machine have one clock. If the callee had the call within the time that the caller waited for it, by
        their own clocks, then these are taken to be one: they differ by less than the way takes.

        Args:
            rank: the worker.
            sent: when a call left, by this worker's clock.
            began: when the callee had it, by that worker's clock.
            ended: when the callee answered, by that worker's clock.
            arrived: when the answer arrived, by this worker's clock.
        """
        if sent <= began and ended <= arrived:
            return 0
        on_the_way = (arrived - sent) - (ended - began)
        offset = ((sent - began) + (arrived - ended)) // 2
        self._best[rank] = min(self._best.get(rank, (on_the_way, offset)), (on_the_way, offset))
        best = self._best[rank][1]
        # What happened in the call is inside of it, whatever the clocks' drift since the best call.
        return max(sent - began, min(best, arrived - ended))
