"""``parameter_server.py --check``: the distributed gradient is the single-process gradient, to rounding.

For each of 50 random batches the trainers make the very step that sync training makes, each on its part of the batch;
then the gradients they and the server applied are compared with those of the whole model in one process.
Everything is float64, so that a difference is a mistake and not rounding.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np
import telegrad as tg
from telegrad.examples import digits
from telegrad.examples.ps_model import Head, Model
from telegrad.examples.ps_options import Options
from telegrad.examples.ps_server import ParameterServer
from telegrad.examples.ps_trainer import Trainer
from telegrad.examples.tidy import show_all_tidy

BATCHES = 50
TOLERANCE = 1e-9
WRONG = 1


def main(options: Options) -> int:
    """Check under the launcher, or start the workers; returns the exit status."""
    options = replace(options, mode="sync", double=True)
    if "RANK" in os.environ:
        return work(int(os.environ["RANK"]), options)
    try:
        tg.launcher.spawn(spawned, args=(options,), nprocs=options.trainers + 1)
    except tg.launcher.ProcessExitedException as failure:
        return failure.exit_code or WRONG
    return 0


def spawned(rank: int, options: Options) -> None:
    """A worker whose exit status tells the outcome."""
    sys.exit(work(rank, options))


def work(rank: int, options: Options) -> int:
    """One worker's life; the server's exit status is the verdict."""
    world_size = int(os.environ["WORLD_SIZE"])
    names = ["server", *(f"trainer{index}" for index in range(world_size - 1))]
    tg.rpc.init_rpc(names[rank], rank=rank, world_size=world_size)
    status = 0
    if rank == 0:
        status = verdict(compare_all(replace(options, trainers=world_size - 1)), options)
        show_all_tidy(names[1:], options.quiet)
    tg.rpc.shutdown()
    return status


def verdict(difference: float, options: Options) -> int:
    """Say how it went; returns the exit status. A difference that is no number is not small."""
    good = difference <= TOLERANCE
    sign = "<=" if good else "NOT <="
    print(f"{BATCHES} batches, {options.batch_size} digits for each trainer, float64")
    print(f"largest difference between distributed and single-process gradients: {difference:.2e} {sign} {TOLERANCE:g}")
    print("the gradients agree" if good else "THE GRADIENTS DIFFER", flush=True)
    return 0 if good else WRONG


def compare_all(options: Options) -> float:
    """The largest difference over all batches, or NaN if a gradient has one."""
    server = ParameterServer(options)
    handle = tg.RRef(server)
    names = [f"trainer{index}" for index in range(options.trainers)]
    trainers = [tg.rpc.remote(name, Trainer, args=(handle, options, i)) for i, name in enumerate(names)]
    generator = np.random.default_rng(options.seed)
    # np.max hands a NaN on; max() may lose it.
    return float(np.max([compare(server, trainers, options, generator) for _ in range(BATCHES)]))


def compare(
    server: ParameterServer, trainers: list[tg.RRef[Trainer]], options: Options, generator: np.random.Generator
) -> float:
    """One batch: the expected gradients first, because the step changes the parameters."""
    images, labels, _, _ = digits.load()
    chosen = generator.choice(len(labels), options.trainers * options.batch_size, replace=False)
    levels, answers = digits.to_levels(images[chosen]), labels[chosen]
    front, head = expected(server, trainers[0].rpc_sync().head_state(), levels, answers)
    parts = zip(trainers, np.split(levels, options.trainers), np.split(answers, options.trainers))
    steps = [
        trainer.rpc_async().sync_step(tg.tensor(some), tg.tensor(theirs), options.lr) for trainer, some, theirs in parts
    ]
    tg.futures.wait_all(steps)
    distances = [largest(front, [parameter.grad for parameter in server.parameters])]
    distances += [largest(head, trainer.rpc_sync().head_gradients()) for trainer in trainers]
    return float(np.max(distances))


def expected(
    server: ParameterServer, head_state: dict[str, tg.Tensor], levels: np.ndarray, labels: np.ndarray
) -> tuple[list[tg.Tensor], list[tg.Tensor]]:
    """The gradients of the same model on the whole batch, in this process: the front's and the head's."""
    head = Head().double()
    head.load_state_dict(head_state)
    model = Model(server.front, head)
    loss = tg.nn.functional.cross_entropy(model(tg.tensor(levels)), tg.tensor(labels))
    found = tg.autograd.grad(loss, [*server.parameters, *head.parameters()])
    count = len(server.parameters)
    return list(found[:count]), list(found[count:])


def largest(expected: list[tg.Tensor], found: list[tg.Tensor | None]) -> float:
    """The largest difference between two lists of gradients."""
    assert len(expected) == len(found)
    pairs = zip(expected, found)
    return float(np.max([np.abs(one.numpy() - other.numpy()).max() for one, other in pairs if other is not None]))
