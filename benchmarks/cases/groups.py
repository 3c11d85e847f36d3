"""Cases of process groups: ``all_reduce``, and steps of data parallel training and of a pipeline of one stage a worker.

All workers take part; rank 0 measures. PyTorch's group is gloo's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..libraries import UnsupportedError, api_here
from .base import Case, Figures, Turn

SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "64 MiB": 1 << 26}
MOST_STEPS = 2_000
BATCH, WIDTH, LAYERS = 32, 512, 4
MICROBATCHES = 8

_steps: dict[str, Callable[[], Any]] = {}  # of this worker, by case


def measure_together(name: str, make: Callable[..., Callable[[], Any]], *args: Any) -> Callable[[Turn], Figures]:
    """Return a measurement of a step that all workers take at the same time.

    Args:
        name: of the step.
        make: called with ``args`` on every worker; returns its step.
        args: for ``make``.
    """

    def measure(turn: Turn) -> Figures:
        if turn.library.api().groups is None:
            raise UnsupportedError("it has no process groups")
        if make is not make_all_reduce and turn.library.api().optimizer is None:
            raise UnsupportedError("it has nothing to train")
        if "ready" not in turn.kept:
            path = str(Path(tempfile.mkdtemp(prefix="bench")) / "group")
            everywhere(turn, lambda rank: (prepare, name, make, args, rank, turn.workers, path))
            turn.kept["ready"] = True
        (once,) = everywhere(turn, lambda rank: (repeat, name, 2))
        steps = min(max(int(turn.seconds / once), 1), MOST_STEPS)
        (seconds,) = everywhere(turn, lambda rank: (repeat, name, steps))
        return {"p50": seconds, "samples": steps}

    return measure


def everywhere(turn: Turn, call: Callable[[int], tuple[Any, ...]]) -> list[Any]:
    """Run a function on all workers at the same time; return what it returned here.

    Args:
        turn: whose workers.
        call: returns function and arguments for a rank.
    """
    waits = [turn.library.start_call(rank, *call(rank)) for rank in range(1, turn.workers)]
    function, *args = call(0)
    result = function(*args)
    for wait in waits:
        wait()
    return [result]


def prepare(
    name: str, make: Callable[..., Callable[[], Any]], args: tuple[Any, ...], rank: int, world: int, path: str
) -> None:
    """Join the group, unless this worker has, and make its step.

    Args:
        name: of the step.
        make: makes it.
        args: for ``make``.
        rank: this worker's.
        world: number of workers.
        path: where they find one another.
    """
    groups = api_here().groups
    if not groups.is_initialized():
        groups.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    _steps[name] = make(*args)


def repeat(name: str, steps: int) -> float:
    """Take steps; return the seconds of one."""
    step = _steps[name]
    api_here().groups.barrier()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps


def make_all_reduce(size: int) -> Callable[[], Any]:
    """Return an ``all_reduce`` of ``size`` bytes of float32."""
    api = api_here()
    tensor = api.lib.zeros(size // 4)
    return lambda: api.groups.all_reduce(tensor)


def make_data_parallel() -> Callable[[], Any]:
    """Return a step of a network with a million parameters: forward, backward, and SGD."""
    api = api_here()
    nn = api.lib.nn
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = api.lib.optim.SGD(model.parameters(), lr=0.01)
    inputs = api.lib.ones(BATCH, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        (model(inputs) ** 2).mean().backward()
        optimizer.step()

    return step


def make_pipeline() -> Callable[[], Any]:
    """Return a step of a pipeline, one stage a worker, in the order 1F1B: forward and backward of eight micro-batches."""
    api = api_here()
    assert api.pipeline is not None
    rows = api.lib.ones(MICROBATCHES * BATCH, WIDTH)
    return api.pipeline(make_stage, MICROBATCHES, rows, rows * 0.5)


def make_stage(rank: int) -> Any:
    """Return a stage of a pipeline, of half a million parameters."""
    nn = api_here().lib.nn
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())


def _cases() -> list[Case]:
    found = []
    for workers in (2, 4):
        for text, size in SIZES.items():
            name = f"all_reduce of {text}, {workers} ranks"
            found.append(Case(name, measure_together(name, make_all_reduce, size), workers=workers))
        name = f"data parallel step, {workers} ranks"
        found.append(Case(name, measure_together(name, make_data_parallel), workers=workers))
        name = f"pipeline step, {workers} stages"
        found.append(Case(name, measure_together(name, make_pipeline), workers=workers))
    return found


CASES = tuple(_cases())
