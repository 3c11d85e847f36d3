"""Place of this process in a job that has been started: for scripts that start their workers themselves if nobody else has."""

from __future__ import annotations

import os

from ..base import mpi


def launched() -> tuple[int, int] | None:
    """Return rank and world size of this process; None if neither ``telegrad run`` nor ``mpiexec`` started it.

    Raises:
        ImportError: ``mpiexec`` started it, and mpi4py is not installed.
    """
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if mpi.started_by_mpi():
        world = mpi.load().COMM_WORLD
        return world.rank, world.size
    return None
