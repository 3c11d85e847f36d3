"""Training that changes size: workers come and leave while all learn handwritten digits together.

    telegrad run -n 3 --elastic --restart one examples/elastic_digits.py
    telegrad scale worker=5                    in another terminal, as long as it runs; then worker=2
    telegrad run -n 3 examples/elastic_digits.py                           a fixed number

Any worker may be killed meanwhile. Every step counts once, on the same batch of 64 images, whoever takes it: a worker that
comes gets the weights, the optimizer's state and the place in the epoch from the others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import telegrad as tg
from telegrad import collective, nn, rpc
from telegrad.examples import digits
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start

BATCH = 64  # of all workers together
WORKERS = 3


def train(images: tg.Tensor, labels: tg.Tensor, options: Options) -> tuple[nn.Module, collective.ElasticTraining]:
    """Return the network, after the last step or after the launcher has asked this worker to leave, and the training."""
    tg.manual_seed(options.seed)
    model = nn.Sequential(nn.Linear(digits.PIXELS, 64), nn.ReLU(), nn.Linear(64, digits.CLASSES))
    optimizer = tg.optim.Adam(model.parameters(), lr=options.lr)
    sampler = tg.data.ElasticSampler(images, BATCH, seed=options.seed)
    training = collective.ElasticTraining(model, optimizer, sampler, min_workers=2, pieces=8)
    members: list[str] = []
    for indices in training.steps(options.steps):
        if training.workers != members and training.rank == 0:
            print(f"step {training.completed}: {', '.join(training.workers)}", flush=True)
        members = training.workers
        training.step(nn.functional.cross_entropy(model(images[indices]), labels[indices]))
    return model, training


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker."""
    rpc.init_rpc(rank=rank, world_size=world_size)
    data = digits.load()
    images, labels = (tg.from_numpy(array) for array in (data.train_x.reshape(-1, digits.PIXELS), data.train_y))
    began = time.perf_counter()
    model, training = train(images, labels, options)
    if training.completed == options.steps and not rpc.leave_requested():
        right = model(tg.from_numpy(data.test_x.reshape(-1, digits.PIXELS))).argmax(1) == tg.from_numpy(data.test_y)
        seconds = time.perf_counter() - began
        print(f"{options.steps} steps in {seconds:.0f} s: {100 * right.float().mean().item():.2f}% right", flush=True)
    rpc.shutdown()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the example."""
    options = parse("elastic_digits", "Training whose workers come and leave.", 1000, 2e-3, arguments)
    start(work, WORKERS, (options,))


if __name__ == "__main__":
    main(sys.argv[1:])
