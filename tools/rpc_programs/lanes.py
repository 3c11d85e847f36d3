"""Programs on every lane: on real processes, and on agents in this one."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from ...agents import init_rpc
from ...launcher import spawn
from ...rpc import rpc_sync, shutdown
from ...rpc.extend import GrpcRpcBackendOptions, current_agent
from ...testing.cluster import in_process_cluster
from .model import results_in_one_process
from .program import make_program
from .run import results_across

LANES: dict[str, list[str] | None] = {
    "inproc": None,
    "unix": ["unix", "grpc"],
    "tcp": ["tcp", "grpc"],
    "grpc": ["grpc"],
}
SETTLE_SECONDS = 20.0
Problems = dict[str, list[str]]  # by seed


def check(lane: str, seeds: range, workers: int) -> Problems:
    """Run the programs of some seeds over one lane, and return what was wrong with which.

    Args:
        lane: a key of ``LANES``.
        seeds: the seeds.
        workers: number of workers: processes that this function starts and ends, or agents in this process.
    """
    if lane == "inproc":
        with in_process_cluster(*(f"w{rank}" for rank in range(workers))) as agents, agents[0].use():
            return _check_here(seeds, workers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        spawn(_work, (lane, workers, seeds.start, seeds.stop, str(path)), workers)
        problems: Problems = json.loads(path.read_text())
    return problems


def _work(rank: int, lane: str, workers: int, first: int, end: int, path: str) -> None:
    init_rpc(f"w{rank}", rpc_backend_options=GrpcRpcBackendOptions(lanes=LANES[lane]))
    if rank == 0:
        Path(path).write_text(json.dumps(_check_here(range(first, end), workers)))
    shutdown()


def _check_here(seeds: range, workers: int) -> Problems:
    problems = {f"seed {seed}": each for seed in seeds if (each := _one(seed, workers))}
    if left := references_left(workers):
        problems["in the end"] = left
    return problems


def _one(seed: int, workers: int) -> list[str]:
    program = make_program(seed, workers, blocking=True)
    try:
        return differences(results_in_one_process(program), asyncio.run(results_across(program)), program)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def differences(expected: list[int], found: list[int], program: Any) -> list[str]:
    """Return how results differ; nothing if they do not.

    Args:
        expected: results in one process.
        found: results across workers.
        program: whose steps these are.
    """
    return [
        f"step {number} ({step}) gave {there}, and in one process {here}"
        for number, (step, here, there) in enumerate(zip(program.steps, expected, found, strict=True))
        if here != there
    ]


def references_left(workers: int) -> list[str]:
    """Return what is left at each worker of references and generators, after some time to settle."""
    until = time.monotonic() + SETTLE_SECONDS
    while left := [each for rank in range(workers) if (each := rpc_sync(rank, held_here))]:
        if time.monotonic() > until:
            return left
        time.sleep(0.01)
    return []


def held_here() -> str:
    """Return in words what this worker holds of references and generators; empty for nothing."""
    info = current_agent().debug_info()
    held = {name: count for name, count in {**info["references"], "generators": info["generators"]}.items() if count}
    return f"{info['worker']} holds {held}" if held else ""
