"""A no-op on many workers with Monarch: run by an interpreter that has ``torchmonarch`` (``../meshes.py``).

It prints the median seconds of a call on all of them, as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

from monarch.actor import Actor, endpoint, this_host


class Worker(Actor):
    """Actor that does nothing."""

    @endpoint
    def nothing(self) -> None:
        """Do nothing."""


def main(workers: int, rounds: int) -> None:
    """Start the actors, measure, and print the figure."""
    actors = this_host().spawn_procs({"workers": workers}).spawn("worker", Worker)
    actors.nothing.call().get()  # they have started
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        actors.nothing.call().get()
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"seconds": statistics.median(seconds)}), flush=True)
    os._exit(0)  # the processes have no other quick end


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
