"""Split learning: two workers each hold one half of every image, and a third learns the digits without seeing an image.

    telegrad run -n 3 examples/split_learning.py
    python examples/split_learning.py            the same without the launcher

Rank 0 has the labels and the last layers. The others have the upper or lower halves of the images, and layers for them; only
features leave them, and gradients of features come back. A step is one context: the features of both halves, the loss here, a
backward through all three, and a step of every worker's optimizer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import telegrad as tg
from telegrad.examples import digits
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.tidy import show_all_tidy
from telegrad.examples.trainers import Owner

HOLDERS = ("upper", "lower")
HALF = digits.PIXELS // 2
FEATURES = 32
BATCH = 64


class Holder(Owner):
    """Worker that holds halves of all images, and layers that make features of them.

    Args:
        half: 0 for the upper halves, 1 for the lower ones.
        seed: of the layers' parameters.
    """

    def __init__(self, half: int, seed: int) -> None:
        tg.manual_seed(seed + 1 + half)
        data = digits.load()
        self.train, self.test = (
            tg.tensor(images.reshape(len(images), 2, HALF)[:, half]) for images in (data.train_x, data.test_x)
        )
        self.module = tg.nn.Sequential(tg.nn.Linear(HALF, 64), tg.nn.ReLU(), tg.nn.Linear(64, FEATURES), tg.nn.ReLU())

    def features(self, rows: tg.Tensor) -> tg.Tensor:
        """Return the features (N, 32) of some training images."""
        result: tg.Tensor = self.module(self.train[rows])
        return result

    def test_features(self) -> tg.Tensor:
        """Return the features of the images that are held out."""
        with tg.no_grad():
            result: tg.Tensor = self.module(self.test)
        return result


class Learner:
    """Worker that has the labels and the last layers.

    Args:
        holders: references to the holders of the halves.
        options: the options on the command line.
    """

    def __init__(self, holders: Sequence[tg.RRef], options: Options) -> None:
        tg.manual_seed(options.seed)
        self.data, self.holders = digits.load(), holders
        self.head = tg.nn.Sequential(
            tg.nn.Linear(FEATURES * len(holders), 64), tg.nn.ReLU(), tg.nn.Linear(64, digits.CLASSES)
        )
        parameters = [tg.RRef(parameter) for parameter in self.head.parameters()]
        for holder in holders:
            parameters += holder.rpc_sync().parameter_rrefs()
        self.optimizer = tg.DistributedOptimizer(tg.optim.Adam, parameters, lr=options.lr)
        self.random = np.random.default_rng(options.seed)

    def step(self) -> float:
        """Take one step on a random batch, and return its loss."""
        rows = self.random.integers(0, len(self.data.train_y), BATCH)
        with tg.autograd_dist.context() as context_id:
            loss = tg.nn.functional.cross_entropy(self._scores(rows), tg.tensor(self.data.train_y[rows]))
            tg.autograd_dist.backward(context_id, [loss])
            self.optimizer.step(context_id)
        return loss.item()

    def _scores(self, rows: np.ndarray) -> tg.Tensor:
        parts = [holder.rpc_async().features(tg.tensor(rows)) for holder in self.holders]
        result: tg.Tensor = self.head(tg.cat([part.wait() for part in parts], dim=1))
        return result

    def accuracy(self, blind: int | None = None) -> float:
        """Return the accuracy on the digits that are held out; without the features of the holder ``blind``."""
        parts = [holder.rpc_sync().test_features() for holder in self.holders]
        if blind is not None:
            parts[blind] = tg.zeros_like(parts[blind])
        with tg.no_grad():
            found = self.head(tg.cat(parts, dim=1)).argmax(1)
        return float(np.mean(found.numpy() == self.data.test_y))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    options = parse("split_learning", "Learn digits whose halves two workers keep.", 300, 3e-3, arguments)
    start(work, len(HOLDERS) + 1, (options,))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the holders only serve."""
    if world_size != len(HOLDERS) + 1:
        raise SystemExit("three workers are needed: telegrad run -n 3 ...")
    tg.rpc.init_rpc(("learner", *HOLDERS)[rank], rank=rank, world_size=world_size)
    if rank == 0:
        learn(options)
        show_all_tidy(HOLDERS, options.quiet)
    tg.rpc.shutdown()


def learn(options: Options) -> None:
    """Learn, and print and draw how well."""
    holders = [tg.rpc.remote(name, Holder, (half, options.seed)) for half, name in enumerate(HOLDERS)]
    learner = Learner(holders, options)
    losses = [learner.step() for _ in range(options.steps)]
    for half, name in enumerate(HOLDERS):
        print(f"without the {name} halves: {learner.accuracy(half):.2%}")
    accuracy = learner.accuracy()
    print(f"accuracy on the held-out fifth: {accuracy:.2%}")
    title = f"Split learning: {accuracy:.1%} of the held-out digits right"
    curves(options.out / "training.png", title, {"batches": losses}, "step", "cross-entropy")


if __name__ == "__main__":
    main(sys.argv[1:])
