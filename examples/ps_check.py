"""Check that distributed gradients equal those of one process: ``parameter_server.py --check``.

For each of 50 random batches the trainers take the same step as in sync training, each on its part of the batch. Then
the gradients that they and the server applied are compared with those of the whole model in one process. All is float64, so
that a difference is a mistake and not rounding.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import telegrad as tg
from telegrad.examples import digits
from telegrad.examples.ps_model import Head, Model, loss_of
from telegrad.examples.ps_options import Options
from telegrad.examples.ps_server import ParameterServer
from telegrad.examples.ps_trainer import Trainer
from telegrad.examples.tidy import show_all_tidy

BATCHES = 50
TOLERANCE = 1e-9


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the server exits with 1 if the gradients differ."""
    options = replace(options, mode="sync", double=True, trainers=world_size - 1)
    names = ["server", *(f"trainer{index}" for index in range(options.trainers))]
    tg.rpc.init_rpc(names[rank], rank=rank, world_size=world_size)
    agree = True
    if rank == 0:
        agree = judge(compare_all(options), options)
        show_all_tidy(names[1:], options.quiet)
    tg.rpc.shutdown()
    if not agree:
        sys.exit(1)


def judge(difference: float, options: Options) -> bool:
    """Print the result, and return whether the difference is small enough; NaN is not."""
    agree = difference <= TOLERANCE
    sign = "<=" if agree else "NOT <="
    print(f"{BATCHES} batches, {options.trainers} trainers with {options.batch_size} digits each, float64")
    print(f"largest difference between distributed and single-process gradients: {difference:.2e} {sign} {TOLERANCE:g}")
    print("the gradients agree" if agree else "THE GRADIENTS DIFFER", flush=True)
    return agree


def compare_all(options: Options) -> float:
    """Return the largest difference over all batches, or NaN if a gradient has one."""
    server = ParameterServer(options)
    handle = tg.RRef(server)
    names = [f"trainer{index}" for index in range(options.trainers)]
    trainers = [tg.rpc.remote(name, Trainer, args=(handle, options, i)) for i, name in enumerate(names)]
    generator = np.random.default_rng(options.seed)
    # np.max keeps a NaN; max() may lose it.
    return float(np.max([compare(server, trainers, options, generator) for _ in range(BATCHES)]))


def compare(
    server: ParameterServer, trainers: list[tg.RRef], options: Options, generator: np.random.Generator
) -> float:
    """Return the largest difference for one batch. The expected gradients come first: the step changes the parameters."""
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
    """Return the gradients of the same model on the whole batch, in this process: the front's and the head's."""
    head = Head().double()
    head.load_state_dict(head_state)
    model = Model(server.front, head)
    loss = loss_of(model(tg.tensor(levels)), tg.tensor(labels))
    found = tg.autograd.grad(loss, [*server.parameters, *head.parameters()])
    count = len(server.parameters)
    return list(found[:count]), list(found[count:])


def largest(expected: list[tg.Tensor], found: list[tg.Tensor | None]) -> float:
    """Return the largest difference between two lists of gradients."""
    assert len(expected) == len(found)
    pairs = zip(expected, found)
    return float(np.max([np.abs(one.numpy() - other.numpy()).max() for one, other in pairs if other is not None]))
