"""Parts of the examples in which trainers learn with models that other workers own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import telegrad as tg
from telegrad.examples.local_options import Options
from telegrad.examples.tidy import show_all_tidy

T = TypeVar("T")
AGAIN = tg.rpc.RetryPolicy(attempts=1000)  # of calls of a worker that is started again


class Owner:
    """Base class of objects that own a module on some worker, for optimizers on others; it may have checkpoints."""

    module: tg.nn.Module

    def save_in(self, folder: Path, resume: bool) -> None:
        """Let ``save`` save the module in a folder; with ``resume``, first go on from the newest checkpoint there."""
        self.checkpoints = tg.checkpoint.Checkpointer(folder, module=self.module, rng=False)
        self.saved = self.checkpoints.restore() if resume else 0

    def save(self) -> None:
        """Save a checkpoint."""
        self.saved += 1
        self.checkpoints.save(self.saved)

    def parameter_rrefs(self) -> list[tg.RRef]:
        """Return references to the parameters of the module."""
        return [tg.RRef(parameter) for parameter in self.module.parameters()]


def run_with_trainers(
    rank: int, world_size: int, learn: Callable[[Sequence[str], Options], None], options: Options, workers: int
) -> None:
    """Run one worker: the server, which learns, or a trainer, which only serves: the server calls it.

    Args:
        rank: 0 is the server.
        world_size: number of workers.
        learn: called on the server with the names of the trainers and the options.
        options: of the example.
        workers: how many to start, for the advice to who starts too few.
    """
    if world_size < 2:
        raise SystemExit(f"trainers are needed: telegrad run -n {workers} ...")
    names = [f"trainer{index}" for index in range(world_size - 1)]
    tg.rpc.init_rpc(("server", *names)[rank], rank=rank, world_size=world_size)
    if rank == 0:
        learn(names, options)
        show_all_tidy(names, options.quiet)
    tg.rpc.shutdown()


def train_all(
    names: Sequence[str], train: Callable[..., T], *args: Any, retry: tg.rpc.RetryPolicy | None = None
) -> list[T]:
    """Let all trainers train at the same time, and return what each returns.

    Args:
        names: of the trainers.
        train: called on each with its number, the number of all, and ``args``.
        args: further arguments.
        retry: how often a trainer that is started again begins anew; ``train`` is ``idempotent`` then.
    """
    # No time-out: a training may take any time. A trainer that is lost ends its call at once, or begins anew.
    calls = [
        tg.rpc.rpc_async(name, train, (index, len(names), *args), timeout=0, retry=retry)
        for index, name in enumerate(names)
    ]
    return tg.futures.wait_all(calls)
