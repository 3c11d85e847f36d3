"""Local SGD (T. Lin et al., 2018): processes learn alone, and take the mean of their networks every few steps.

    telegrad run -n 2 examples/local_sgd.py
    mpiexec -n 2 python examples/local_sgd.py     over MPI: pip install 'telegrad[mpi]'
    python examples/local_sgd.py                  the first, without the launcher

Beside it, the same training with a mean of the gradients at every step. Local SGD sends a message every eighth step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
import telegrad as tg
from telegrad import collective as dist
from telegrad import nn
from telegrad.collective.optim import PeriodicModelAverager, PostLocalSGDOptimizer
from telegrad.examples import digits
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start

BATCH, PERIOD, WARM_UP = 32, 8, 40
Model = nn.Module


def network(seed: int) -> Model:
    """Return a network from images (N, 64) to scores (N, 10)."""
    tg.manual_seed(seed)
    return nn.Sequential(nn.Linear(digits.PIXELS, 128), nn.ReLU(), nn.Linear(128, digits.CLASSES))


def train(options: Options, local: bool) -> tuple[Model, list[float]]:
    """Train on this process's digits, and return the network and the losses.

    Args:
        options: the options on the command line.
        local: learn alone after the first 40 steps, and take the mean of the networks every eighth.
    """
    model = nn.parallel.DistributedDataParallel(network(options.seed))
    optimizer: tg.optim.Optimizer = tg.optim.SGD(model.parameters(), lr=options.lr)
    if local:
        state = nn.parallel.comm_hooks.PostLocalSGDState(None, None, WARM_UP)
        model.register_comm_hook(state, nn.parallel.comm_hooks.post_localSGD_hook)
        optimizer = PostLocalSGDOptimizer(optimizer, PeriodicModelAverager(PERIOD, WARM_UP))
    data, rank = digits.load(), dist.get_rank()
    images = data.train_x[rank :: dist.get_world_size()].reshape(-1, digits.PIXELS)
    labels = data.train_y[rank :: dist.get_world_size()]
    random, losses = np.random.default_rng([options.seed, rank]), []
    for _ in range(options.steps):
        rows = random.integers(0, len(labels), BATCH)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tg.tensor(images[rows])), tg.tensor(labels[rows]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    PeriodicModelAverager(1).average_parameters(model.parameters())
    return model.module, losses


def accuracy(model: Model) -> float:
    """Return the share of held-out digits that are right."""
    data = digits.load()
    with tg.no_grad():
        found = model(tg.tensor(data.test_x.reshape(-1, digits.PIXELS))).argmax(1)
    return float(np.mean(found.numpy() == data.test_y))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one process under the launcher or mpiexec; without them, start all."""
    start(work, 2, (parse("local_sgd", "Learn alone, and take means of networks.", 400, 0.2, arguments),))


def work(rank: int, world_size: int, options: Options) -> None:
    """Train twice in one process; the first one prints and draws how well."""
    dist.init_process_group()
    lines = {}
    for name, local in (("mean of gradients", False), (f"local SGD, period {PERIOD}", True)):
        dist.barrier()
        began = time.perf_counter()
        model, losses = train(options, local)
        seconds, lines[name] = time.perf_counter() - began, losses
        if rank == 0:
            print(f"{name}: {options.steps} steps of {world_size} processes took {seconds:.1f} s")
            print(f"accuracy on the held-out fifth: {accuracy(model):.2%}")
    if rank == 0:
        title = "Local SGD beside a mean of the gradients at every step"
        curves(options.out / "training.png", title, lines, "step", "cross-entropy of the first process")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
