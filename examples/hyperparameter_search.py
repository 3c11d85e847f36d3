"""Hyperparameter search by successive halving (Jamieson and Talwalkar 2016): bad candidates are given up early.

    telegrad run -n 4 examples/hyperparameter_search.py        a server and three trainers
    python examples/hyperparameter_search.py                   the same without the launcher

Each trainer has its own part of the candidates, and keeps their networks. In a round one call on the mesh trains all
candidates that are left, each on its trainer, and brings their accuracies; a third of them goes on, and is trained for three
times as long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import telegrad as tg
from telegrad import rpc
from telegrad.examples import digits
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.trainers import run_with_trainers

CANDIDATES = 27
LEFT = 3  # a third is left after a round, and rounds become three times as long
BATCH = 32
VALIDATED = 5  # every fifth image that may be learned from is for the comparison of candidates


class Candidate(NamedTuple):
    """Values to try: learning rate, momentum, and width of the hidden layer."""

    lr: float
    momentum: float
    hidden: int


class Trainer:
    """Networks of the candidates of one worker.

    Args:
        seed: of parameters and batches, the same for all.
    """

    def __init__(self, seed: int) -> None:
        data = digits.load()
        images, compared = data.train_x.reshape(-1, digits.PIXELS), np.arange(len(data.train_y)) % VALIDATED == 0
        self._images, self._labels = images[~compared], data.train_y[~compared]
        self._compared = images[compared], data.train_y[compared]
        self._held_out = data.test_x.reshape(-1, digits.PIXELS), data.test_y
        self._seed = seed
        self._networks: dict[int, tuple[tg.nn.Module, tg.optim.Optimizer]] = {}

    def train(self, candidates: Mapping[int, Candidate], steps: int) -> dict[int, float]:
        """Train candidates, drop all others, and return the accuracies of these.

        Args:
            candidates: by number; those that were there before go on.
            steps: of each.
        """
        networks = self._networks
        self._networks = {number: networks.get(number) or self._make(each) for number, each in candidates.items()}
        return {number: self._train(*self._networks[number], steps) for number in candidates}

    def accuracy(self, number: int) -> float:
        """Return the accuracy of a candidate on the digits that are held out."""
        return _accuracy(self._networks[number][0], *self._held_out)

    def _make(self, candidate: Candidate) -> tuple[tg.nn.Module, tg.optim.Optimizer]:
        tg.manual_seed(self._seed)
        first, second = tg.nn.Linear(digits.PIXELS, candidate.hidden), tg.nn.Linear(candidate.hidden, digits.CLASSES)
        network = tg.nn.Sequential(first, tg.nn.ReLU(), second)
        return network, tg.optim.SGD(network.parameters(), lr=candidate.lr, momentum=candidate.momentum)

    def _train(self, network: tg.nn.Module, optimizer: tg.optim.Optimizer, steps: int) -> float:
        random = np.random.default_rng(self._seed)
        for _ in range(steps):
            rows = random.integers(0, len(self._labels), BATCH)
            scores = network(tg.tensor(self._images[rows]))
            optimizer.zero_grad()
            tg.nn.functional.cross_entropy(scores, tg.tensor(self._labels[rows])).backward()
            optimizer.step()
        return _accuracy(network, *self._compared)


def _accuracy(network: tg.nn.Module, images: digits.Images, labels: digits.Labels) -> float:
    with tg.no_grad():
        return float(np.mean(network(tg.tensor(images)).argmax(1).numpy() == labels))


def draw_candidates(seed: int) -> dict[int, Candidate]:
    """Return random candidates, by number."""
    random = np.random.default_rng(seed)
    return {
        number: Candidate(10 ** random.uniform(-4, 0.5), random.uniform(0, 0.95), int(2 ** random.uniform(2, 7)))
        for number in range(CANDIDATES)
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    options = parse("hyperparameter_search", "Search learning rate, momentum and width.", 20, 0.0, arguments)
    start(work, 4, (options,))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the trainers only serve: the server calls them."""
    run_with_trainers(rank, world_size, search, options, 4)


def search(names: Sequence[str], options: Options) -> None:
    """Search, and print and draw what is found; ``options.steps`` are those of the first round."""
    trainers = rpc.mesh(names).remote(Trainer, (options.seed,))
    left, steps, began = draw_candidates(options.seed), options.steps, time.perf_counter()
    curve: dict[int, list[float]] = {number: [] for number in left}
    while True:
        parts = [
            {number: left[number] for number in left if number % len(names) == place} for place in range(len(names))
        ]
        found: dict[int, float] = {}
        for each in trainers.call("train", (rpc.scattered(parts), steps), timeout=0):
            found |= each
        for number, accuracy in found.items():
            curve[number].append(accuracy)
        best = max(found, key=found.__getitem__)
        print(f"{len(left)} candidates, {steps} steps each: the best is right in {found[best]:.2%}")
        if len(left) == 1:
            break
        ranked = sorted(found, key=found.__getitem__, reverse=True)
        left, steps = {number: left[number] for number in ranked[: max(len(left) // LEFT, 1)]}, steps * LEFT
    accuracy = trainers[best % len(names)].rpc_sync().accuracy(best)
    print(f"the search took {time.perf_counter() - began:.1f} s; best: {left[best]}")
    print(f"accuracy on the held-out fifth: {accuracy:.2%}")
    lines = {f"lr {draw_candidates(options.seed)[number].lr:.2g}": curve[number] for number in ranked}
    curves(options.out / "training.png", f"Successive halving: {accuracy:.1%} right", lines, "round", "accuracy")


if __name__ == "__main__":
    main(sys.argv[1:])
