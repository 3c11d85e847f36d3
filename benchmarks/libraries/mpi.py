"""MPI alone, by mpi4py on arrays: the limit of process groups on one host.

``mpiexec`` starts all workers. Those above rank 0 run what it sends them, until it leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .base import Api, Library, Place, UnsupportedError

LOOK_S = 0.001


def make(transport: str) -> Mpi:
    """Return the library."""
    return Mpi()


class Mpi(Library):
    """Workers of one MPI job."""

    def __init__(self) -> None:
        import mpi4py
        from mpi4py import MPI

        self._mpi = MPI
        self._world = MPI.COMM_WORLD
        self._api = Api(_Arrays(), _Arrays(), _Arrays(), None, self._groups())
        self.versions = {"mpi4py": mpi4py.__version__, "MPI": MPI.Get_library_version().splitlines()[0].strip()}

    def join(self, rank: int, world: int, place: Place) -> None:
        self._world.Barrier()

    def leave(self) -> None:
        if self._world.rank:
            while (call := self._next()) is not None:
                function, *args = call
                function(*args)
        else:
            for rank in range(1, self._world.size):
                self._world.send(None, rank)

    def _next(self) -> Any:
        """Return what rank 0 sends next. To wait in MPI would keep a core busy while the others are measured."""
        while not self._world.iprobe(source=0):
            time.sleep(LOOK_S)
        return self._world.recv(source=0)

    def call(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        raise UnsupportedError("it has no calls")

    def start_call(self, rank: int, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        if self._world.size == 1:
            raise UnsupportedError("there is one process")
        wait: Callable[[], Any] = self._world.isend((function, *args), rank).wait
        return wait

    def array(self, size: int) -> Any:
        return np.ones(size, dtype=np.uint8)

    def api(self) -> Api:
        return self._api

    def _groups(self) -> Any:
        def all_reduce(array: Any) -> None:
            self._world.Allreduce(self._mpi.IN_PLACE, array)

        return SimpleNamespace(is_initialized=lambda: True, barrier=self._world.Barrier, all_reduce=all_reduce)


class _Arrays:
    """NumPy in the place of a tensor library."""

    def zeros(self, count: int) -> Any:
        return np.zeros(count, np.float32)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError("it has arrays alone")
