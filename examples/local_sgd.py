"""Local SGD (T. Lin et al., 2018): processes learn alone, and take the mean of their networks every few steps.

    telegrad run -n 2 examples/local_sgd.py
    mpiexec -n 2 python examples/local_sgd.py     over MPI: pip install mpi4py mpich
    python examples/local_sgd.py                  the first, without the launcher
    telegrad run -n 2 --restart all examples/local_sgd.py --resume     goes on from its checkpoints, whichever process dies

Each process has digits of its own: with two, one has the even ones and the other the odd ones. The same training is done with a
mean of the gradients at every step, and with a mean of the networks at every 8th and every 64th. The picture shows what rare
means save, and what they cost: a process that learns alone forgets the digits that it does not have, until the next mean.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import telegrad as tg
from telegrad import collective as dist
from telegrad import nn
from telegrad.collective.optim import PeriodicModelAverager, PostLocalSGDOptimizer
from telegrad.examples import digits
from telegrad.examples.figures import COLOURS, dress, save_figure
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start

BATCH, WARM_UP, SAVE_EVERY = 32, 40, 50
PERIODS = (1, 8, 64)  # steps from one mean to the next; 1: of gradients
Model = nn.Module


class History(NamedTuple):
    """One training of this process."""

    right: list[float]  # share of held-out digits that this process's network has right, after each step
    apart: list[float]  # distance of its network from the mean of all
    result: float  # share that the mean of all networks has right in the end


def network(seed: int) -> Model:
    """Return a network from images (N, 64) to scores (N, 10)."""
    tg.manual_seed(seed)
    return nn.Sequential(nn.Linear(digits.PIXELS, 128), nn.ReLU(), nn.Linear(128, digits.CLASSES))


def train(options: Options, period: int) -> History:
    """Train on this process's digits.

    Args:
        options: the options on the command line.
        period: steps from one mean of the networks to the next, after the first 40; 1 for means of the gradients.
    """
    model = nn.parallel.DistributedDataParallel(network(options.seed))
    optimizer: tg.optim.Optimizer = tg.optim.SGD(model.parameters(), lr=options.lr)
    if period > 1:
        optimizer = PostLocalSGDOptimizer(optimizer, PeriodicModelAverager(period, WARM_UP))
    data, rank = digits.load(), dist.get_rank()
    mine = data.train_y % dist.get_world_size() == rank
    images, labels = data.train_x[mine].reshape(-1, digits.PIXELS), data.train_y[mine]
    random, history = np.random.default_rng([options.seed, rank]), {"right": list[float](), "apart": list[float]()}
    own: dict[str, Any] = {"model": model.module, "optimizer": optimizer, "random": random, "history": history}
    with tg.checkpoint.Checkpointer(options.out / f"period{period}", own=[*own], **own) as checkpoints:
        begun = checkpoints.restore() if options.resume else 0
        if period > 1:
            state = nn.parallel.comm_hooks.PostLocalSGDState(None, None, WARM_UP - begun)
            model.register_comm_hook(state, nn.parallel.comm_hooks.post_localSGD_hook)
        for step in range(begun + 1, options.steps + 1):
            rows = random.integers(0, len(labels), BATCH)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(tg.tensor(images[rows])), tg.tensor(labels[rows]))
            loss.backward()
            optimizer.step()
            history["right"].append(accuracy(model.module))
            history["apart"].append(distance(model.module))
            if step % SAVE_EVERY == 0:
                checkpoints.save(step)
    PeriodicModelAverager(1).average_parameters(model.parameters())
    return History(history["right"], history["apart"], accuracy(model.module))


def accuracy(model: Model) -> float:
    """Return the share of held-out digits that are right."""
    data = digits.load()
    with tg.no_grad():
        found = model(tg.tensor(data.test_x.reshape(-1, digits.PIXELS))).argmax(1)
    return float(np.mean(found.numpy() == data.test_y))


def distance(model: Model) -> float:
    """Return how far this process's parameters are from the mean of all."""
    mine = tg.cat([parameter.detach().flatten() for parameter in model.parameters()])
    mean = mine.clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    return float((mine - mean).norm())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one process under the launcher or mpiexec; without them, start all."""
    start(work, 2, (parse("local_sgd", "Learn alone, and take means of networks.", 400, 0.2, arguments, resumes=True),))


def work(rank: int, world_size: int, options: Options) -> None:
    """Train with each period in one process; the first one prints and draws how well."""
    dist.init_process_group()
    histories = {}
    for period in PERIODS:
        histories[period] = train(options, period)
        if rank == 0:
            print(
                f"{name(period)}: {options.steps} steps of {world_size} processes, {means(period, options.steps)} means"
            )
            print(f"accuracy on the held-out fifth: {histories[period].result:.2%}")
    if rank == 0:
        title = "Local SGD, where each process has digits of its own"
        save_figure(options.out / "training.png", title, (12, 5.2), lambda figure: draw(figure, histories))
    dist.destroy_process_group()


def name(period: int) -> str:
    """Return how a training is called."""
    return "mean of the gradients at every step" if period == 1 else f"mean of the networks every {period} steps"


def means(period: int, steps: int) -> int:
    """Return how often the processes took a mean."""
    return min(steps, WARM_UP) + len(range(WARM_UP, steps, period))


def draw(figure: Any, histories: dict[int, History]) -> None:
    """Draw accuracy on the left and distance on the right, a line for each period."""
    left, right = figure.subplots(1, 2)
    for period, colour in zip(PERIODS, COLOURS):
        history = histories[period]
        steps = np.arange(1, len(history.right) + 1)
        label = f"{name(period)}: {means(period, len(steps))} means, and in the end {history.result:.1%} right"
        left.plot(steps, 100 * np.array(history.right), color=colour, linewidth=1.4, label=label)
        right.plot(steps, history.apart, color=colour, linewidth=1.4)
    dress(left, "held-out digits that the first process's network has right", "step", "%")
    dress(right, "distance of its network from the mean of all", "step", "")
    figure.legend(frameon=False, loc="outside lower center")


if __name__ == "__main__":
    main(sys.argv[1:])
