"""Workload of the workers of a simulation. Write one for a protocol of your own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .simulation import Simulation
    from .worker import Worker


class Workload:
    """User code of a simulation. Functions that run remotely find their worker with ``current_worker()``.

    ``counts`` is shown in the table of results. If functions that run remotely may block, ``blocks`` is true.
    """

    blocks = False

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    async def main(self, worker: Worker) -> None:
        """Run one worker: work while ``worker.simulation.busy``, then release all that it holds."""
        raise NotImplementedError

    def check(self, simulation: Simulation) -> Iterator[str]:
        """Yield problems, when everything has settled."""
        return iter(())
