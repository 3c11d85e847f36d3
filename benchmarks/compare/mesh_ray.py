"""A no-op on many workers with Ray: run by an interpreter that has ``ray`` (``../meshes.py``).

It prints the median seconds of a call on all of them, as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

os.environ.setdefault("RAY_raylet_start_wait_time_s", "240")  # before Ray is imported

import ray

MEMORY_BYTES = 80 << 20  # of the object store: the least


@ray.remote(num_cpus=0)
class Worker:
    """Actor that does nothing."""

    def nothing(self) -> None:
        """Do nothing."""


def main(workers: int, rounds: int) -> None:
    """Start the actors, measure, and print the figure."""
    ray.init(log_to_driver=False, include_dashboard=False, num_cpus=workers, object_store_memory=MEMORY_BYTES)
    actors = [Worker.remote() for _ in range(workers)]
    ray.get([actor.nothing.remote() for actor in actors])  # they have started
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        ray.get([actor.nothing.remote() for actor in actors])
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"seconds": statistics.median(seconds)}), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
