"""Messages for which workers got nothing in a backward pass, by the workers' reports; at the root, which of them were asked."""

from __future__ import annotations

from collections.abc import Iterable

from .local_pass import Unfed
from .pass_messages import Reports


class UnfedMessages:
    """Reports of the workers in one pass, as one of them knows them. Its driver's lock guards it.

    Args:
        worker: number of the worker.
    """

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._settled = 0
        self._reports: Reports = {}
        self._asked: set[int] = set()

    def __contains__(self, worker: int) -> bool:
        """Return whether a worker has reported."""
        return worker in self._reports

    def merge(self, reports: Reports) -> None:
        """Take reports from an answer; the latest of each worker counts."""
        for worker, (settled, unfed) in reports.items():
            if worker not in self._reports or self._reports[worker][0] < settled:
                self._reports[worker] = (settled, unfed)

    def settle(self, unfed: list[Unfed]) -> Reports:
        """Note that this worker has become idle, and for which messages nothing had come; return all reports."""
        self._settled += 1
        if unfed or self._worker in self._reports:
            self._reports[self._worker] = (self._settled, unfed)
        return dict(self._reports)

    def fresh(self, unfed: Iterable[int]) -> list[int]:
        """Return the ids of messages whose receivers were not asked before; from here on they were. At the root."""
        found = sorted({*unfed} - self._asked)
        self._asked.update(found)
        return found


def senders(reports: Reports) -> dict[int, tuple[int, Unfed]]:
    """Return by their ids the messages of some reports, each with the number of the worker that has reported it."""
    return {each.message_id: (worker, each) for worker, (_, unfed) in sorted(reports.items()) for each in unfed}
