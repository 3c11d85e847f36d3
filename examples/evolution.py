"""Evolution strategies (Salimans et al. 2017) with a hundred workers: a network learns from scores alone, without gradients.

    telegrad run -n 101 examples/evolution.py        the server and a hundred workers
    python examples/evolution.py                     with eight, without the launcher

In a generation one call sends the parameters to all workers, pickled once, over the tree of the mesh. Each worker tries pairs
of changes, one the opposite of the other, and weighs each change by how much better it is. The weighted changes are added up
on their way back (``reduce="mean"``), so that the server gets one array, whatever the number of workers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from telegrad import rpc
from telegrad.examples import digits
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.trainers import run_with_trainers

PAIRS = 4  # of changes that a worker tries in a generation
SIGMA = 0.05  # size of the changes
BATCH = 256
MOMENTUM = 0.9

Array = NDArray[Any]


class Species:
    """Digits to classify, and the random numbers of one worker.

    Args:
        number: of the worker.
        seed: of the random numbers.
    """

    def __init__(self, number: int, seed: int) -> None:
        data = digits.load()
        self._images, self._labels = data.train_x.reshape(-1, digits.PIXELS), data.train_y
        self._random = np.random.default_rng([seed, number])

    def explore(self, parameters: Array) -> tuple[Array, float]:
        """Return an estimate of the gradient of the score, and the mean score of the changes that were tried.

        Args:
            parameters: of the classifier, float32.
        """
        rows = self._random.integers(0, len(self._labels), BATCH)
        images, labels = self._images[rows], self._labels[rows]
        estimate, scores = np.zeros_like(parameters), []
        for _ in range(PAIRS):
            change = self._random.standard_normal(parameters.shape, np.float32) * np.float32(SIGMA)
            up, down = (score(parameters + sign * change, images, labels) for sign in (1, -1))
            estimate += change * np.float32((up - down) / (2 * SIGMA**2 * PAIRS))
            scores += [up, down]
        return estimate, float(np.mean(scores))


def score(parameters: Array, images: Array, labels: Array) -> float:
    """Return the mean log-probability of the labels (N,) of images (N, 64)."""
    logits = logits_of(parameters, images)
    logits -= logits.max(1, keepdims=True)
    return float(np.mean(logits[np.arange(len(labels)), labels] - np.log(np.exp(logits).sum(1))))


def logits_of(parameters: Array, images: Array) -> Array:
    """Return the scores (N, 10) of images (N, 64) by a linear classifier."""
    weights = parameters[: -digits.CLASSES].reshape(digits.PIXELS, digits.CLASSES)
    found: Array = images @ weights + parameters[-digits.CLASSES :]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    options = parse("evolution", "Learn digits from scores alone, with many workers.", 150, 0.3, arguments)
    start(work, 9, (options,))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; all but the server only serve."""
    run_with_trainers(rank, world_size, learn, options, 101)


def learn(names: Sequence[str], options: Options) -> None:
    """Let the workers explore, follow what they find, and print and draw how well."""
    species = rpc.mesh(names).remote(Species, (rpc.scattered(list(range(len(names)))), options.seed))
    parameters = np.zeros((digits.PIXELS + 1) * digits.CLASSES, np.float32)
    velocity, scores, began = np.zeros_like(parameters), [], time.perf_counter()
    for _ in range(options.steps):
        estimate, found = species.call("explore", (parameters,), reduce="mean")
        velocity = MOMENTUM * velocity + (1 - MOMENTUM) * estimate
        parameters = parameters + np.float32(options.lr) * velocity
        scores.append(found)
    seconds, data = time.perf_counter() - began, digits.load()
    right = logits_of(parameters, data.test_x.reshape(-1, digits.PIXELS)).argmax(1) == data.test_y
    print(
        f"{options.steps} generations of {2 * PAIRS * len(names)} trials by {len(names)} workers took {seconds:.1f} s"
    )
    print(f"accuracy on the held-out fifth: {np.mean(right):.2%}")
    title = f"Evolution strategies: {len(names)} workers, {np.mean(right):.1%} of the held-out digits right"
    curves(options.out / "training.png", title, {"all workers": scores}, "generation", "log-probability")


if __name__ == "__main__":
    main(sys.argv[1:])
