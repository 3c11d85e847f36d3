"""Pipeline of two stages: the convolutions of a network on one worker, its classifier on another, in both orders.

    telegrad run -n 3 examples/pipeline_cnn.py      a driver and two stages
    python examples/pipeline_cnn.py                 the same without the launcher

The driver cuts each batch into micro-batches. ``GPipe`` runs all forwards first, ``1F1B`` a backward after each forward, so
that less is kept. Both give the gradient of the whole batch. Pictures show who was busy when, and how much time was lost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
import telegrad as tg
from telegrad import nn
from telegrad.examples import digits
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.tidy import show_all_tidy
from telegrad.pipelining import Pipeline

BATCH, MICROBATCHES = 128, 8
SCHEDULES = ("GPipe", "1F1B")


def stage_of(layers: Sequence[nn.Module], captured: bool) -> nn.Module:
    """Return a stage of some layers; ``--captured`` compiles what it does with a micro-batch."""
    stage = nn.Sequential(*layers)
    if captured:
        stage.forward = tg.compile(stage.forward)  # type: ignore[method-assign]
    return stage


def front(seed: int, captured: bool = False) -> nn.Module:
    """Return the first stage: from images (N, 1, 8, 8) to features (N, 24, 4, 4)."""
    tg.manual_seed(seed)
    convolutions = [nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU()]
    return stage_of([*convolutions, nn.MaxPool2d(2)], captured)


def back(seed: int, captured: bool = False) -> nn.Module:
    """Return the second stage: from features to scores (N, 10)."""
    tg.manual_seed(seed + 1)
    convolutions = [nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.Conv2d(48, 48, 3, padding=1), nn.ReLU()]
    return stage_of([*convolutions, nn.Flatten(), nn.Linear(48 * 16, digits.CLASSES)], captured)


def train(schedule: str, workers: Sequence[str], options: Options) -> tuple[Pipeline, list[float]]:
    """Train in one order, and return the pipeline and the losses.

    Args:
        schedule: ``"GPipe"`` or ``"1F1B"``.
        workers: of the two stages.
        options: the options on the command line.
    """
    given = options.seed, options.captured
    stages = [tg.RemoteModule(worker, make, given) for worker, make in zip(workers, (front, back))]
    pipeline = Pipeline(stages, nn.functional.cross_entropy, MICROBATCHES, schedule)
    optimizer = pipeline.optimizer(tg.optim.Adam, lr=options.lr)
    data, random, losses = digits.load(), np.random.default_rng(options.seed), []
    for _ in range(options.steps):
        rows = random.integers(0, len(data.train_y), BATCH)
        images = digits.jitter(data.train_x[rows], random)
        losses.append(pipeline.step(tg.tensor(images[:, None]), tg.tensor(data.train_y[rows])).item())
        optimizer.clip_grad_norm_(1.0)
        optimizer.step()
    return pipeline, losses


def accuracy(pipeline: Pipeline) -> float:
    """Return the share of held-out digits that are right."""
    data = digits.load()
    found = pipeline.eval()(tg.tensor(data.test_x[:, None])).argmax(1)
    return float(np.mean(found.numpy() == data.test_y))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    options = parse("pipeline_cnn", "Learn digits in two stages.", 80, 0.003, arguments, captures=True)
    start(work, 3, (options,))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the stages only serve: the driver calls them."""
    if world_size != 3:
        raise SystemExit("a driver and two stages are needed: telegrad run -n 3 ...")
    names = ["stage0", "stage1"]
    tg.rpc.init_rpc(("driver", *names)[rank], rank=rank, world_size=world_size)
    if rank == 0:
        learn(names, options)
        show_all_tidy(names, options.quiet)
    tg.rpc.shutdown()


def learn(names: Sequence[str], options: Options) -> None:
    """Train in both orders, and print and draw how well and how fast."""
    options.out.mkdir(parents=True, exist_ok=True)
    lines = {}
    for schedule in SCHEDULES:
        began = time.perf_counter()
        pipeline, lines[schedule] = train(schedule, names, options)
        seconds, timeline = time.perf_counter() - began, pipeline.timeline
        assert timeline is not None
        print(f"{schedule}: {options.steps} steps of {MICROBATCHES} micro-batches took {seconds:.1f} s")
        print(f"the last step's bubble: {timeline.bubble():.0%} (in theory {timeline.theory():.0%})")
        picture = options.out / f"{schedule.lower()}.svg"
        timeline.draw(picture, schedule)
        print(f"picture: {picture.resolve()}")
        print(f"accuracy on the held-out fifth: {accuracy(pipeline):.2%}")
    curves(options.out / "training.png", "A pipeline in both orders", lines, "step", "cross-entropy")


if __name__ == "__main__":
    main(sys.argv[1:])
