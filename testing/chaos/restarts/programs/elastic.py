"""Data-parallel training that goes on with the workers that live: those that come again get the state from the others."""

from __future__ import annotations

import sys

from ..... import data, nn, optim
from .....agents import init_rpc
from .....collective import ElasticTraining
from .....core import arange, manual_seed, rand
from .....rpc import shutdown
from ..diary import Diary
from .digests import digest

SAMPLES, BATCH, PIECES = 96, 24, 6


def train(steps: int, diary: Diary) -> str:
    """Take part in the training, and return a digest of the network, which one that comes late gets from the others."""
    manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    inputs = rand(SAMPLES, 8)
    targets = inputs.sum(1, keepdim=True)
    sampler = data.ElasticSampler(arange(SAMPLES), batch_size=BATCH, seed=0)
    training = ElasticTraining(model, optim.Adam(model.parameters()), sampler, pieces=PIECES)
    used: list[int] = []
    for indices in training.steps(steps):
        used += indices
        before = training.completed
        training.step(nn.functional.mse_loss(model(inputs[indices]), targets[indices]))
        if training.completed > before:
            diary.step(training.completed, used)
            used = []
    return digest(model)


def main(steps: int) -> None:
    """Train as one worker."""
    with Diary() as diary:
        init_rpc()
        diary.done(train(steps, diary))
        shutdown()


if __name__ == "__main__":
    main(int(sys.argv[2]))
