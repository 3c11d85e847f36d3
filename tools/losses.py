"""``python -m telegrad.tools.losses``: what the loss of workers costs in jobs of more and more workers, in the simulator.

Real agents on one thread come to a barrier, and some are killed at the same moment, or one is stopped. It is measured until
all others know. ``workers`` events of a kind are one for each worker, so the numbers of a row should not grow with the job.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..testing.simulator.events import State
from ..testing.simulator.simulation import Simulation, on_this_thread
from .scale import call_and_gather, job

SIZES = (10, 30, 100, 300, 1000)
KEEPALIVE = 10.0  # simulated seconds, as in the default options
LIMIT_SECONDS = 300.0  # simulated


@dataclass(frozen=True)
class LossCost:
    """Cost of the loss of some workers.

    Attributes:
        workers: size of the job.
        gone: how many were lost.
        seconds: simulated, until all others knew.
        spent: by all workers together: seconds of CPU time, or lines of Python.
        messages: control messages that arrived, without their acknowledgements.
        dials: connections that were begun.
        events: events of all kinds.
    """

    workers: int
    gone: int
    seconds: float
    spent: float
    messages: int
    dials: int
    events: int


def killed(simulation: Simulation, ranks: Sequence[int]) -> None:
    """Kill workers: from then on connections to them are refused."""
    for rank in ranks:
        worker = simulation.workers[rank]
        worker.state = State.DEAD
        simulation.network.kill(worker)


def stopped(simulation: Simulation, ranks: Sequence[int]) -> None:
    """Stop workers: from then on they are silent, as on a host without power."""
    for rank in ranks:
        worker = simulation.workers[rank]
        worker.state = State.STOPPED
        simulation.network.silence(worker)


def lose(
    workers: int,
    ranks: Sequence[int],
    how: Callable[[Simulation, Sequence[int]], None] = killed,
    meter: Callable[[], float] = time.process_time,
) -> LossCost:
    """Return what it costs that workers of a job are lost.

    Args:
        workers: size of the job.
        ranks: of the workers that are lost at the same moment.
        how: ``killed`` or ``stopped``.
        meter: returns what was spent so far; CPU time unless it is given.

    Raises:
        RuntimeError: a worker did not hear of it within five simulated minutes, or another one was lost.
    """
    simulation = job(workers, KEEPALIVE)
    with on_this_thread(lambda record: None):  # a loss is logged
        simulation.start()
        call_and_gather(simulation)
        try:
            return _measured(simulation, ranks, how, meter)
        finally:
            simulation.end()


def _measured(
    simulation: Simulation,
    ranks: Sequence[int],
    how: Callable[[Simulation, Sequence[int]], None],
    meter: Callable[[], float],
) -> LossCost:
    others = [worker for worker in simulation.workers if worker.rank not in ranks]
    left = {(worker.rank, rank) for worker in others for rank in ranks}
    for worker in others:
        worker.agent.losses.on_lost.append(lambda peer, rank=worker.rank: left.remove((rank, peer.number)))  # type: ignore[misc]
    gc.collect()
    queue = simulation.queue
    queue.kinds.clear()
    executed, began, spent = queue.executed, queue.now, meter()
    how(simulation, ranks)
    while left and queue.now < began + LIMIT_SECONDS and queue.step():
        pass
    spent = meter() - spent
    if left or any(worker.agent.closed for worker in others):
        raise RuntimeError(f"{len(left)} losses were not heard of, or a worker closed that should stay")
    kinds = queue.kinds
    seconds, events = queue.now - began, queue.executed - executed
    return LossCost(len(simulation.workers), len(ranks), seconds, spent, kinds["control"], kinds["dial"], events)


def scenarios(workers: int) -> dict[str, Callable[[], LossCost]]:
    """Return the losses that the command measures, by name."""
    several = sorted({0, 1, 2, workers // 3, workers // 2, workers - 1})
    return {
        "one killed": lambda: lose(workers, [workers // 2]),
        "rank 0 killed": lambda: lose(workers, [0]),
        f"{len(several)} killed": lambda: lose(workers, several),
        "one silent": lambda: lose(workers, [workers // 2], stopped),
        "rank 0 silent": lambda: lose(workers, [0], stopped),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure losses in jobs of some sizes, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.losses", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, help=f"numbers of workers, at least 10; {SIZES} if none is given")
    sizes = parser.parse_args(arguments).sizes or SIZES
    print(
        f"{'workers':>7}  {'lost':14}", *(f"{name:>9}" for name in ("messages", "dials", "events", "CPU s", "known s"))
    )
    lose(10, [5])  # what is loaded and made once is no cost of a loss
    for size in sizes:
        for name, measure in scenarios(size).items():
            cost = measure()
            counts = " ".join(f"{count:9}" for count in (cost.messages, cost.dials, cost.events))
            print(f"{size:7}  {name:14} {counts} {cost.spent:9.3f} {cost.seconds:9.3f}", flush=True)


if __name__ == "__main__":
    main()
