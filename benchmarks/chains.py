"""Benchmark of promises: ``python -m telegrad.benchmarks.chains``.

Dependent calls on simulated links, whose round trip is 20 ms: one call at a time, and as a chain that is sent at once. And a
diamond of values on three owners: the bytes that reach the caller. If ``make peers`` has made an environment of Cap'n Proto,
its chain as well, in real time and over links with that delay.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from telegrad.rpc import rpc_async
from telegrad.rref import RRef, remote, value
from telegrad.testing.simulator import FaultPlan, Simulation, Worker, Workload

from .environments import find_peers

ROUND_TRIP_SECONDS = 0.02
PEER_SECONDS = 60.0


class Number:
    """Object with a method that returns another one."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def next(self) -> Number:
        """Return the next number."""
        return Number(self.number + 1)


def following(number: Number) -> Number:
    """Return the next number."""
    return number.next()


def total(*arrays: Any) -> Any:
    """Return the sum of arrays."""
    return np.sum(arrays, axis=0)


class Chains(Workload):
    """Workload of worker 0, which calls the others.

    Args:
        length: calls that depend on one another.
        size: of an array, in bytes.

    Attributes:
        seconds: simulated seconds of each way.
        received: bytes that reached worker 0 meanwhile.
    """

    def __init__(self, length: int, size: int) -> None:
        super().__init__()
        self.length, self.size = length, size
        self.seconds: dict[str, float] = {}
        self.received: dict[str, int] = {}
        self._bytes = 0
        self._over = False

    def count(self, simulation: Simulation) -> None:
        """Count the bytes that reach worker 0, and let each frame take half of a round trip."""
        network, carry = simulation.network, simulation.network.carry

        def counting(target: Any, frame: bytearray) -> None:
            self._bytes += len(frame) if target.process.rank == 0 else 0
            carry(target, frame)

        network.latency = lambda: ROUND_TRIP_SECONDS / 2  # type: ignore[method-assign]
        network.carry = counting  # type: ignore[method-assign]

    async def main(self, worker: Worker) -> None:
        if worker.rank or self._over:
            return
        for rank in (1, 2, 3):
            await rpc_async(rank, Number)  # it connects
        ways: dict[str, Callable[[], Awaitable[Any]]] = {
            "one call at a time": self._one_at_a_time,
            "chain of methods": self._methods,
            "chain of functions": self._functions,
            "diamond": self._diamond,
            "diamond, fetched": self._fetched,
        }
        for name, way in ways.items():
            began, before = worker.simulation.queue.now, self._bytes
            await way()
            self.seconds[name] = worker.simulation.queue.now - began
            self.received[name] = self._bytes - before
        self._over = True

    async def _one_at_a_time(self) -> None:
        number = Number()
        for _ in range(self.length):
            number = await rpc_async(1, following, (number,))
        assert number.number == self.length

    async def _methods(self) -> None:
        number: RRef[Any] = remote(1, Number)
        for _ in range(self.length - 1):
            number = number.remote().next()
        assert (await number.to_here_async()).number == self.length - 1

    async def _functions(self) -> None:
        number: RRef[Any] = remote(1, Number)
        for _ in range(self.length - 1):
            number = remote(1, following, (value(number),))
        assert (await number.to_here_async()).number == self.length - 1

    async def _diamond(self) -> None:
        first = remote(1, np.ones, (self.size // 8,))
        left, right = (remote(rank, np.negative, (value(first),)) for rank in (2, 3))
        assert await rpc_async(1, len, (value(remote(1, total, (value(left), value(right)))),)) == self.size // 8

    async def _fetched(self) -> None:
        first = await rpc_async(1, np.ones, (self.size // 8,))
        left, right = rpc_async(2, np.negative, (first,)), rpc_async(3, np.negative, (first,))
        assert len(await rpc_async(1, total, (await left, await right))) == self.size // 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.chains", description=__doc__)
    parser.add_argument("--length", type=int, default=10, help="dependent calls (default %(default)s)")
    parser.add_argument("--mib", type=int, default=1, help="size of an array of the diamond (default %(default)s)")
    options = parser.parse_args(arguments)
    workload = Chains(options.length, options.mib << 20)
    simulation = Simulation(0, agents=4, events=5000, workload=workload, plan=FaultPlan())
    workload.count(simulation)
    result = simulation.run()
    for name, seconds in workload.seconds.items():
        trips = seconds / ROUND_TRIP_SECONDS
        print(f"{name:20} {trips:6.2f} round trips  {workload.received[name]:12,} bytes to the caller")
    if python := find_peers([]).get("capnp"):
        _print_capnp(python, options.length)
    print("\n".join(result.violations), end="")
    return 1 if result.violations or not workload.seconds else 0


def _print_capnp(python: str, length: int) -> None:
    """Run the same calls with Cap'n Proto, and print the round trips."""
    command = [python, str(Path(__file__).with_name("capnp_chain.py")), str(length), str(ROUND_TRIP_SECONDS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=PEER_SECONDS)
    for name, trips in json.loads(done.stdout).items():
        print(f"Cap'n Proto, {name}: {trips:.2f} round trips")


if __name__ == "__main__":
    sys.exit(main())
