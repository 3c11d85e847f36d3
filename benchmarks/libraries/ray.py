"""Ray: every worker but rank 0 is an actor."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .base import Library, Place

ROOT = Path(__file__).resolve().parents[2]
STORE_BYTES = 4 << 30  # of shared memory, for messages of 1 GiB there and back

# Read when Ray is imported.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
import ray  # noqa: E402


def make(transport: str) -> Ray:
    """Return the library."""
    return Ray()


class Worker:
    """Actor that calls functions."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function."""
        return function(*args)


class Ray(Library):
    """Ray, which starts the workers itself."""

    def __init__(self) -> None:
        self.versions = {"ray": ray.__version__}

    def join(self, rank: int, world: int, place: Place) -> None:
        os.environ["PYTHONPATH"] = str(ROOT)  # of the actors: they import the cases
        ray.init(
            num_cpus=world,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=STORE_BYTES,
            _temp_dir=str(place.folder),
        )
        actor = ray.remote(num_cpus=1)(Worker)
        self._workers = {other: actor.remote() for other in range(1, world)}
        ray.get([worker.call.remote(abs, 0) for worker in self._workers.values()])

    def leave(self) -> None:
        ray.shutdown()

    def call(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        return ray.get(self._workers[rank].call.remote(function, *args))

    def start_call(self, rank: int, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        answer = self._workers[rank].call.remote(function, *args)
        return lambda: ray.get(answer)

    def array(self, size: int) -> Any:
        return np.ones(size, dtype=np.uint8)
