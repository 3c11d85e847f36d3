"""Data parallel training: every process has the whole network and a part of the digits, and gradients are means.

    telegrad run -n 2 examples/data_parallel_cnn.py     over the lanes of an agent
    mpiexec -n 2 python examples/data_parallel_cnn.py   over MPI: pip install mpi4py mpich
    python examples/data_parallel_cnn.py                the first, without the launcher
    python examples/data_parallel_cnn.py --resume       goes on where one that was ended has saved last
    telegrad run -n 2 --restart all examples/data_parallel_cnn.py --resume    does so by itself, whichever process dies

``DistributedDataParallel`` gives every process the gradient of the whole batch, so that the networks stay equal to the bit,
which is checked at the end. Every 20 steps all save a checkpoint together, beside training.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import telegrad as tg
from telegrad import collective as dist
from telegrad import nn
from telegrad.examples import digits
from telegrad.examples.cnn import ConvNet
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start

BATCH = 64  # of all processes together
SAVE_EVERY = 20  # steps


def part_of_the_digits() -> tuple[tg.data.DataLoader, tg.data.DistributedSampler]:
    """Return the loader of this process's part of each batch, images (64 / processes, 8, 8) and labels, and its sampler."""
    images, labels, *_ = digits.load()
    dataset = tg.data.TensorDataset(tg.from_numpy(images), tg.from_numpy(labels))
    sampler = tg.data.DistributedSampler(dataset, drop_last=True)
    return tg.data.DataLoader(dataset, BATCH // dist.get_world_size(), sampler=sampler, drop_last=True), sampler


def train(options: Options) -> tuple[nn.Module, list[float]]:
    """Train, and return the network and the mean loss of the processes at each step."""
    tg.manual_seed(options.seed)
    model = nn.parallel.DistributedDataParallel(ConvNet(16))
    optimizer = tg.optim.AdamW(model.parameters(), lr=options.lr)
    (loader, sampler), random = part_of_the_digits(), np.random.default_rng([options.seed, dist.get_rank()])
    history: dict[str, list[float]] = {"losses": []}
    with tg.checkpoint.Checkpointer(
        options.out / "checkpoints",
        model=model.module,
        optimizer=optimizer,
        loader=loader,
        shifts=random,
        history=history,
        own=["history"],
    ) as checkpoints:
        step = checkpoints.restore() if options.resume else 0
        while step < options.steps:
            sampler.set_epoch(loader.epoch)
            for images, labels in islice(loader, options.steps - step):
                shifted = tg.from_numpy(digits.jitter(images.numpy(), random)[:, None])
                history["losses"].append(take_step(model, optimizer, shifted, labels))
                step += 1
                if step % SAVE_EVERY == 0:
                    checkpoints.save_async(step)
    losses = tg.tensor(history["losses"])
    dist.all_reduce(losses, dist.ReduceOp.AVG)
    return model.module, losses.tolist()


def take_step(model: nn.Module, optimizer: tg.optim.Optimizer, images: tg.Tensor, labels: tg.Tensor) -> float:
    """Take one step of the optimizer, and return the loss of this process's part of the batch."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return float(loss.item())


def accuracy(model: nn.Module) -> float:
    """Return the share of held-out digits that are right."""
    data = digits.load()
    with tg.no_grad():
        found = model.eval()(tg.from_numpy(data.test_x[:, None])).argmax(1)
    return float(np.mean(found.numpy() == data.test_y))


def equal_everywhere(model: nn.Module) -> bool:
    """Return whether all processes have the same parameters, to the bit."""
    everybody: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, [parameter.detach().numpy() for parameter in model.parameters()])
    return all(np.array_equal(a, b) for other in everybody for a, b in zip(everybody[0], other))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one process under the launcher or mpiexec; without them, start all."""
    options = parse("data_parallel_cnn", "Learn digits with equal networks.", 400, 0.005, arguments, resumes=True)
    start(work, 2, (options,))


def work(rank: int, world_size: int, options: Options) -> None:
    """Train in one process; the first one prints and draws how well."""
    dist.init_process_group()
    began = time.perf_counter()
    model, losses = train(options)
    seconds, equal = time.perf_counter() - began, equal_everywhere(model)
    if rank == 0:
        right = accuracy(model)
        print(f"{options.steps} steps of {world_size} processes over {dist.get_backend()} took {seconds:.1f} s")
        print(f"equal parameters everywhere: {equal}")
        print(f"accuracy on the held-out fifth: {right:.2%}")
        title = f"Data parallel on {world_size} processes: {right:.1%} of the held-out digits right"
        curves(options.out / "training.png", title, {"batches": losses}, "step", "cross-entropy, mean of all")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
