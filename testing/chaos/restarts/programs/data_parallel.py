"""Data-parallel training: equal networks, each with its part of the samples, and a checkpoint every few steps."""

from __future__ import annotations

import sys
from itertools import islice

from ..... import data, nn, optim
from .....checkpoint import Checkpointer
from .....collective import destroy_process_group, init_process_group
from .....collective.parallel import DistributedDataParallel
from .....core import arange, manual_seed, rand
from ..diary import Diary
from .digests import digest

SAMPLES, BATCH, SAVE_EVERY = 96, 8, 5


def train(folder: str, steps: int, diary: Diary) -> nn.Module:
    """Train from the last checkpoint on, and return the network."""
    manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
    optimizer = optim.Adam(model.parameters())
    inputs = rand(SAMPLES, 8)
    dataset = data.TensorDataset(inputs, inputs.sum(1, keepdim=True), arange(SAMPLES))
    sampler = data.DistributedSampler(dataset, drop_last=True)
    loader = data.DataLoader(dataset, BATCH, sampler=sampler, drop_last=True)
    with Checkpointer(folder, model=model.module, optimizer=optimizer, loader=loader) as checkpoints:
        step = checkpoints.restore()
        while step < steps:
            sampler.set_epoch(loader.epoch)
            for batch, target, numbers in islice(loader, steps - step):
                optimizer.zero_grad()
                nn.functional.mse_loss(model(batch), target).backward()
                optimizer.step()
                step += 1
                diary.step(step, numbers.tolist())
                if step % SAVE_EVERY == 0:
                    checkpoints.save(step)
    return model.module


def main(folder: str, steps: int) -> None:
    """Train as one worker."""
    with Diary() as diary:
        init_process_group()
        model = train(folder, steps, diary)
        diary.done(digest(model))
        destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
