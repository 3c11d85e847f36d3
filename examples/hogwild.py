"""Hogwild (Niu et al. 2011): trainers update one model in place and do not wait for one another.

    telegrad run -n 4 examples/hogwild.py        a server and three trainers
    python examples/hogwild.py                   the same without the launcher

The server owns the model. Every trainer has its own shard of the digits: a step runs the forward on the server, the loss on the
trainer, the backward through both, and updates the server's parameters where they are, while forwards and backwards of the
others go on: these see some numbers from before and some from after.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
import telegrad as tg
from telegrad.examples import digits
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.trainers import Owner, run_with_trainers, train_all

BATCH = 32


class Server(Owner):
    """Worker that owns the model.

    Args:
        seed: of its parameters.
    """

    def __init__(self, seed: int) -> None:
        tg.manual_seed(seed)
        self.module = tg.nn.Sequential(
            tg.nn.Linear(digits.PIXELS, 128), tg.nn.ReLU(), tg.nn.Linear(128, digits.CLASSES)
        )

    def forward(self, images: tg.Tensor) -> tg.Tensor:
        """Return the scores (N, 10) of images (N, 64)."""
        scores: tg.Tensor = self.module(images)
        return scores

    def accuracy(self) -> float:
        """Return the accuracy on the digits that are held out."""
        data = digits.load()
        with tg.no_grad():
            found = self.module(tg.tensor(data.test_x.reshape(-1, digits.PIXELS))).argmax(1)
        return float(np.mean(found.numpy() == data.test_y))


def train(index: int, trainers: int, server: tg.RRef, options: Options) -> list[float]:
    """Train on one shard of the digits, and return the loss of each step.

    Args:
        index: number of this trainer.
        trainers: number of all trainers.
        server: reference to the ``Server``.
        options: the options on the command line.
    """
    data, random = digits.load(), np.random.default_rng([options.seed, index])
    images, labels = data.train_x[index::trainers].reshape(-1, digits.PIXELS), data.train_y[index::trainers]
    parameters = server.rpc_sync().parameter_rrefs()
    optimizer = tg.DistributedOptimizer(tg.optim.SGD, parameters, lr=options.lr, hogwild=True)
    losses = []
    for _ in range(options.steps):
        rows = random.integers(0, len(labels), BATCH)
        with tg.autograd_dist.context() as context_id:
            scores = server.rpc_sync().forward(tg.tensor(images[rows]))
            loss = tg.nn.functional.cross_entropy(scores, tg.tensor(labels[rows]))
            tg.autograd_dist.backward(context_id, [loss])
            optimizer.step(context_id)
        losses.append(loss.item())
    return losses


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    start(
        work,
        4,
        (parse("hogwild", "Learn digits with trainers that do not wait for one another.", 300, 0.1, arguments),),
    )


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the trainers only serve: the server calls them."""
    run_with_trainers(rank, world_size, learn, options, 4)


def learn(names: Sequence[str], options: Options) -> None:
    """Let all trainers train, and print and draw how well."""
    server, began = Server(options.seed), time.perf_counter()
    handle = tg.RRef(server)
    print(f"accuracy before: {server.accuracy():.2%}")
    losses = train_all(names, train, handle, options)
    seconds, accuracy = time.perf_counter() - began, server.accuracy()
    steps = sum(map(len, losses))
    print(f"{steps} steps of {len(names)} trainers took {seconds:.1f} s: {steps / seconds:.0f} a second")
    print(f"accuracy on the held-out fifth: {accuracy:.2%}")
    title = f"Hogwild: {len(names)} trainers, {accuracy:.1%} of the held-out digits right"
    curves(options.out / "training.png", title, dict(zip(names, losses)), "step of a trainer", "cross-entropy")


if __name__ == "__main__":
    main(sys.argv[1:])
