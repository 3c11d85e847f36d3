"""Parameter server whose trainers are a mesh: one call sends the parameters to all, and one backward brings the gradients.

    telegrad run -n 4 examples/mesh_server.py        a server and three trainers
    python examples/mesh_server.py                   the same without the launcher

The server has the network, and each trainer a shard of the digits. In a step the parameters are pickled once and travel over
the tree of the mesh; each trainer computes its loss, and their mean comes back. In the backward the gradients take the same
tree, and are added up on the way.
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
from telegrad.examples.trainers import run_with_trainers

BATCH = 32  # of each trainer
HIDDEN = 64


class Shard:
    """Shard of the digits, on one trainer.

    Args:
        place: number of the shard, and how many there are.
        seed: of the batches.
    """

    def __init__(self, place: tuple[int, int], seed: int) -> None:
        data, (index, count) = digits.load(), place
        self._images = data.train_x[index::count].reshape(-1, digits.PIXELS)
        self._labels = data.train_y[index::count]
        self._random = np.random.default_rng([seed, index])

    def loss(self, parameters: list[tg.Tensor]) -> tg.Tensor:
        """Return the loss of a random batch.

        Args:
            parameters: those of the network, in order.
        """
        rows = self._random.integers(0, len(self._labels), BATCH)
        scores = forward(parameters, tg.tensor(self._images[rows]))
        return tg.nn.functional.cross_entropy(scores, tg.tensor(self._labels[rows]))


def forward(parameters: Sequence[tg.Tensor], images: tg.Tensor) -> tg.Tensor:
    """Return the scores (N, 10) of images (N, 64)."""
    first, first_bias, second, second_bias = parameters
    return (images @ first + first_bias).relu() @ second + second_bias


def make_parameters(seed: int) -> list[tg.Tensor]:
    """Return the parameters of a network with one hidden layer."""
    random = np.random.default_rng(seed)
    shapes = ((digits.PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, digits.CLASSES), (digits.CLASSES,))
    scales = [0.0 if len(shape) == 1 else shape[0] ** -0.5 for shape in shapes]
    return [
        tg.tensor((random.standard_normal(shape) * scale).astype(np.float32), requires_grad=True)
        for shape, scale in zip(shapes, scales)
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    options = parse("mesh_server", "Learn digits with a mesh of trainers.", 300, 0.3, arguments)
    start(work, 4, (options,))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the trainers only serve: the server calls them."""
    run_with_trainers(rank, world_size, learn, options, 4)


def learn(names: Sequence[str], options: Options) -> None:
    """Let the mesh of trainers learn, and print and draw how well."""
    places = tg.rpc.scattered([(index, len(names)) for index in range(len(names))])
    shards = tg.rpc.mesh(names).remote(Shard, (places, options.seed))
    parameters, began = make_parameters(options.seed), time.perf_counter()
    optimizer = tg.DistributedOptimizer(tg.optim.SGD, [tg.RRef(each) for each in parameters], lr=options.lr)
    losses = []
    for _ in range(options.steps):
        with tg.autograd_dist.context() as context_id:
            loss = shards.call("loss", (parameters,), reduce="mean")
            tg.autograd_dist.backward(context_id, [loss])
            optimizer.step(context_id)
        losses.append(loss.item())
    seconds, accuracy = time.perf_counter() - began, accuracy_of(parameters)
    print(
        f"{options.steps} steps of {len(names)} trainers took {seconds:.1f} s: {options.steps / seconds:.0f} a second"
    )
    print(f"accuracy on the held-out fifth: {accuracy:.2%}")
    title = f"A mesh of {len(names)} trainers, {accuracy:.1%} of the held-out digits right"
    curves(options.out / "training.png", title, {"all trainers": losses}, "step", "cross-entropy")


def accuracy_of(parameters: Sequence[tg.Tensor]) -> float:
    """Return the accuracy on the digits that are held out."""
    data = digits.load()
    with tg.no_grad():
        found = forward(parameters, tg.tensor(data.test_x.reshape(-1, digits.PIXELS))).argmax(1)
    return float(np.mean(found.numpy() == data.test_y))


if __name__ == "__main__":
    main(sys.argv[1:])
