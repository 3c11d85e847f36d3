"""Overlap of a backward with the travel of its gradients: who is busy when in one step of data parallel training.

    telegrad run -n 2 examples/overlap.py
    python examples/overlap.py                 the same, without the launcher

A communication hook notes when each bucket of gradients is full and when its ``all_reduce`` is over. The picture shows both
on the time axis of the step, for each process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import telegrad as tg
from telegrad import collective as dist
from telegrad import nn
from telegrad.examples.figures import COLOURS, dress, save_figure
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start

WIDTH, LAYERS, BATCH, BUCKET_MIB = 1024, 8, 256, 4.0


class Times(NamedTuple):
    """One step of one process, in seconds from its backward's start."""

    backward: float  # the last gradient is there
    step: float  # and the mean of all
    buckets: list[tuple[float, float]]  # from full to reduced


class Recorder:
    """Communication hook that takes means, and notes when."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a step."""
        self._start = time.perf_counter()
        self._full: list[float] = []
        self._reduced: dict[int, float] = {}

    def __call__(self, group: Any, bucket: Any) -> Any:
        """Start the communication of a bucket."""
        number = len(self._full)
        self._full.append(self._now())
        work = dist.all_reduce(bucket.buffer(), dist.ReduceOp.AVG, async_op=True)
        assert work is not None
        work.add_done_callback(lambda _: self._reduced.setdefault(number, self._now()))
        return work

    def end(self) -> Times:
        """Return the times of the step."""
        now = self._now()
        return Times(self._full[-1], now, [(full, self._reduced.get(i, now)) for i, full in enumerate(self._full)])

    def _now(self) -> float:
        return time.perf_counter() - self._start


def measure(steps: int) -> Times:
    """Take steps, and return the times of the one that took the median of the time."""
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=BUCKET_MIB)
    recorder = Recorder()
    model.register_comm_hook(None, recorder)
    inputs, taken = tg.randn(BATCH, WIDTH), []
    for _ in range(steps):
        model.zero_grad()
        loss = (model(inputs) ** 2).mean()
        dist.barrier()
        recorder.begin()
        loss.backward()
        taken.append(recorder.end())
    return sorted(taken, key=lambda each: each.step)[steps // 2]


def draw(path: Any, everybody: Sequence[Times]) -> None:
    """Draw a row for the backward and one for the buckets of each process."""

    def bars(figure: Any) -> None:
        axes = figure.subplots(1, 1)
        for rank, times in enumerate(everybody):
            axes.barh(2 * rank, 1e3 * times.backward, color=COLOURS[0], height=0.6, label="" if rank else "backward")
            for number, (full, reduced) in enumerate(times.buckets):
                label = "" if rank or number else "all_reduce of a bucket"
                axes.barh(
                    2 * rank + 0.7,
                    1e3 * (reduced - full),
                    left=1e3 * full,
                    color=COLOURS[1],
                    height=0.5,
                    edgecolor="white",
                    alpha=0.8,
                    label=label,
                )
            axes.plot([1e3 * times.step] * 2, [2 * rank - 0.4, 2 * rank + 1], color="#222222", linewidth=1)
        axes.set_yticks(
            [2 * rank + 0.35 for rank in range(len(everybody))], [f"rank {r}" for r in range(len(everybody))]
        )
        axes.invert_yaxis()
        dress(axes, "the black line: all means are there", "milliseconds from the start of the backward", "")
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1.08), ncols=2)

    save_figure(path, "One step of DistributedDataParallel", (9, 1.6 + 1.1 * len(everybody)), bars)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one process under the launcher; without it, start all."""
    start(work, 2, (parse("overlap", "Show how gradients travel during the backward.", 15, 0.0, arguments),))


def work(rank: int, world_size: int, options: Options) -> None:
    """Measure in one process; the first one prints and draws."""
    dist.init_process_group("rpc")
    tg.manual_seed(options.seed)
    everybody: list[Any] = [None] * world_size
    dist.all_gather_object(everybody, measure(options.steps))
    if rank == 0:
        times: Times = everybody[0]
        travel = sum(reduced - full for full, reduced in times.buckets)
        print(f"backward {1e3 * times.backward:.1f} ms, with means {1e3 * times.step:.1f} ms")
        print(f"{len(times.buckets)} buckets travelled for {1e3 * travel:.1f} ms in sum")
        draw(options.out / "overlap.svg", everybody)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
