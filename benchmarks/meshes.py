"""Benchmark of meshes: ``python -m telegrad.benchmarks.meshes``.

One call on a mesh beside as many ``rpc_async`` and ``wait_all``: a function that does nothing, and one with an array. The two
ways take turns; times are medians: of the clock, and of the processor in the caller's process. Ratios are of turns.

With ``--beside`` the function that does nothing is called with Monarch and Ray as well, on as many actors on this machine, if
``make peers`` or ``--peer`` has their environments. They run one after another, each with processes of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from telegrad import rpc
from telegrad.futures import wait_all
from telegrad.launcher import local_cluster

from .environments import find_peers

MOST_SECONDS = 300.0  # of one call
PEERS = ("monarch", "ray")
PEER_SECONDS = 600.0


class Cost(NamedTuple):
    """Cost of one turn in seconds: by the clock, and of the processor in this process."""

    wall: float
    processor: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.meshes", description=__doc__)
    parser.add_argument("--workers", type=int, default=32, help="number of workers (default %(default)s)")
    parser.add_argument("--kib", type=int, default=1024, help="size of the array (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=21, help="turns of each way (default %(default)s)")
    parser.add_argument("--beside", action="store_true", help="call a function with Monarch and Ray as well")
    parser.add_argument(
        "--peer", action="append", default=[], help="NAME=PYTHON: an interpreter that has monarch or ray"
    )
    options = parser.parse_args(arguments)
    array = np.ones(options.kib << 10, np.uint8)
    with local_cluster(options.workers):
        mesh = rpc.mesh([f"worker{rank}" for rank in range(options.workers)])
        for title, args in (("no argument", ()), (f"{options.kib} KiB", (array,))):
            _compare(f"{options.workers} workers, {title}", mesh, args, options.rounds)
        if options.beside or options.peer:
            print(f"{options.workers} workers, no argument, beside others")
            _print_peers(find_peers(options.peer), mesh, options.rounds)
    return 0


def _print_peers(pythons: dict[str, str], mesh: rpc.Mesh, rounds: int) -> None:
    """Run the function that does nothing with each peer, half of ours before it and half after, and print both medians."""
    for name in PEERS:
        if name not in pythons:
            print(f"  {name:10} is not installed: make peers, or --peer {name}=PYTHON")
            continue
        ours = [_cost(lambda: _together(mesh, ())).wall for _ in range(rounds)]
        script = Path(__file__).parent / "compare" / f"mesh_{name}.py"
        command = [pythons[name], str(script), str(len(mesh)), str(rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=PEER_SECONDS)
        ours += [_cost(lambda: _together(mesh, ())).wall for _ in range(rounds)]
        found = next(line for line in done.stdout.splitlines() if line.startswith(b"{"))
        theirs, median = json.loads(found)["seconds"], statistics.median(ours)
        print(f"  {name:10} {theirs * 1e3:9.2f} ms   mesh {median * 1e3:9.2f} ms   ratio {median / theirs:5.2f}")


def _compare(title: str, mesh: rpc.Mesh, args: tuple[Any, ...], rounds: int) -> None:
    """Time both ways in turns, and print what they cost."""
    pairs = []
    for number in range(rounds + 2):
        pair = _cost(lambda: _one_by_one(mesh, args)), _cost(lambda: _together(mesh, args))
        if number >= 2:  # the first ones make connections
            pairs.append(pair)
    print(title)
    for name, of in (("time", 0), ("processor", 1)):
        apart, together = (statistics.median(pair[way][of] for pair in pairs) for way in (0, 1))
        ratio = statistics.median(pair[1][of] / pair[0][of] for pair in pairs)
        print(f"  {name:10} rpc_async {apart * 1e3:9.2f} ms   mesh {together * 1e3:9.2f} ms   ratio {ratio:5.2f}")


def _cost(way: Callable[[], object]) -> Cost:
    began, used = time.perf_counter(), time.process_time()
    way()
    return Cost(time.perf_counter() - began, time.process_time() - used)


def _together(mesh: rpc.Mesh, args: tuple[Any, ...]) -> None:
    mesh.call(_nothing, args, timeout=MOST_SECONDS).values()


def _one_by_one(mesh: rpc.Mesh, args: tuple[Any, ...]) -> None:
    wait_all([rpc.rpc_async(worker, _nothing, args, timeout=MOST_SECONDS) for worker in mesh])


def _nothing(*args: Any) -> None:
    """Do nothing."""


if __name__ == "__main__":
    sys.exit(main())
