"""Random expressions split over real processes."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...agents import init_rpc
from ...autograd_dist import backward, backward_async
from ...core.extend import Tensor
from ...core.futures import wait_all
from ...launcher import spawn
from ...rpc import rpc_async, shutdown
from ...rpc.extend import GrpcRpcBackendOptions, current_agent
from .compare import differences, gradients_across
from .leaves import Leaves
from .libraries import library_at, use_library
from .plan import make_plan

MODES = ("smart", "fast")
Problems = dict[str, list[str]]  # by seed and mode


def check(
    seeds: range, workers: int, library: str = "telegrad", lanes: list[str] | None = None
) -> tuple[int, Problems]:
    """Run the expressions of some seeds, in both modes, on processes that this function starts and ends.

    In mixed expressions the first worker's library changes from seed to seed.

    Args:
        seeds: the seeds.
        workers: number of processes.
        library: library of the tensors.
        lanes: the lanes that the workers may use; ``None`` for the usual ones.

    Returns:
        How many expressions ran, and what was wrong with which.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        spawn(_work, (seeds.start, seeds.stop, str(path), library, lanes), workers)
        count, problems = json.loads(path.read_text())
    return count, problems


def _work(rank: int, first: int, end: int, path: str, library: str, lanes: list[str] | None) -> None:
    if library != "telegrad":
        import torch  # noqa: F401  # before the first call, whose time-out would count it
    if library == "mixed":
        _widen_jax()
    init_rpc(f"w{rank}", rpc_backend_options=GrpcRpcBackendOptions(lanes=lanes))
    current_agent().add_part(Leaves(library, library == "mixed"))
    if rank == 0:
        outcomes = list(_outcomes(range(first, end), int(os.environ["WORLD_SIZE"]), library))
        wrong = {name: problems for name, problems in outcomes if problems}
        Path(path).write_text(json.dumps((len(outcomes), wrong)))
    shutdown()


def _widen_jax() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)


def _outcomes(seeds: range, workers: int, library: str) -> Iterator[tuple[str, list[str]]]:
    for seed in seeds:
        if library == "mixed":
            wait_all([rpc_async(rank, use_library, (library_at(library, seed + rank),)) for rank in range(workers)])
        for mode in MODES:
            plan = make_plan(seed, workers, mode, blocking=True, library=library)
            try:
                found = asyncio.run(gradients_across(plan, _blocking if seed % 2 else _awaiting))
                problems = differences(plan, found)
            except Exception as error:
                problems = [f"{type(error).__name__}: {error}"]
            yield f"seed {seed}, {mode}", problems


async def _blocking(context_id: int, roots: list[Tensor], retain: bool, mode: Any) -> None:
    backward(context_id, roots, retain, mode=mode)


async def _awaiting(context_id: int, roots: list[Tensor], retain: bool, mode: Any) -> None:
    await backward_async(context_id, roots, retain, mode=mode)
