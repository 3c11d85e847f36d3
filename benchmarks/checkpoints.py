"""Benchmark of checkpoints: ``python -m telegrad.benchmarks.checkpoints``.

It trains a model with Adam and saves it: how long a step pauses, how long saving and restoring take beside a plain write
and read of as many bytes, and whether damage at random bytes is found. It exits with 1 if some is not.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import telegrad as tg

from ..checkpoint import Checkpointer, verify
from .timing import seconds_of

_WIDTH = 512  # of a layer: 1 MiB of weights
_WARM = 3  # steps
_STEPS = 9  # that are timed
_SAVES = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.checkpoints", description=__doc__)
    parser.add_argument("--mib", type=int, default=400, help="size of model and optimizer (default %(default)s)")
    parser.add_argument("--damage", type=int, default=20, metavar="N", help="bytes to damage (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the places (default %(default)s)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        training = Training(max(1, options.mib // 3))
        _measure(training, Path(folder))
        (path,) = Path(folder).rglob("worker0.safetensors")
        return _damage(Path(folder), path, options.damage, random.Random(options.seed))


class Training:
    """A model of linear layers, trained by Adam: its state is three times as large as the model."""

    def __init__(self, layers: int) -> None:
        self.model = tg.nn.Sequential(*(tg.nn.Linear(_WIDTH, _WIDTH) for _ in range(layers)))
        self.optimizer = tg.optim.Adam(self.model.parameters())
        self.inputs = tg.rand(64, _WIDTH)

    def step(self) -> float:
        """Do one step, and return the seconds that the optimizer took, and waited."""
        self.optimizer.zero_grad()
        self.model(self.inputs).square().mean().backward()
        return seconds_of(self.optimizer.step)

    def arrays(self) -> list[np.ndarray]:
        """Return copies of parameters and optimizer's state."""
        states = [
            p for s in self.optimizer.state.values() for p in s.values() if isinstance(p, (tg.Tensor, np.ndarray))
        ]
        return [
            np.array(each.numpy(force=True) if isinstance(each, tg.Tensor) else each)
            for each in (*self.model.parameters(), *states)
        ]


def _measure(training: Training, folder: Path) -> None:
    for _ in range(_WARM):
        training.step()
    usual = [_step(training) for _ in range(_STEPS)]
    with Checkpointer(folder, keep=1, model=training.model, optimizer=training.optimizer) as checkpoints:
        saved = [_step(training, checkpoints) for _ in range(_SAVES)]
        saving = min(seconds_of(lambda: checkpoints.save(_SAVES)) for _ in range(3))
        before = training.arrays()
        training.step()
        restoring = min(seconds_of(checkpoints.restore) for _ in range(3))
        equal = all(map(np.array_equal, training.arrays(), before))
    size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    writing, reading = _plain(folder, size)
    step, pause = map(statistics.median, zip(*usual))
    print(f"{size / 1e6:.0f} MB; a step takes {step * 1e3:.0f} ms")
    for which, (took, paused) in (("the first", saved[0]), ("a later", map(statistics.median, zip(*saved[1:])))):
        text = f"pauses training by {(paused - pause) * 1e3:.0f} ms, and the step beside it takes {took * 1e3:.0f} ms"
        print(f"save_async: {which} one {text}")
    print(f"save: {saving:.2f} s, a plain write that is synced {writing:.2f} s")
    print(f"restore: {restoring:.2f} s, a plain read {reading:.2f} s; the bits are {'equal' if equal else 'NOT equal'}")


def _step(training: Training, checkpoints: Checkpointer | None = None) -> tuple[float, float]:
    """Return the seconds of a step, and those in ``save_async`` before it and in the optimizer, which waits for copies."""
    begun = time.perf_counter()
    if checkpoints is not None:
        checkpoints.save_async(0)
    paused = time.perf_counter() - begun + training.step()
    took = time.perf_counter() - begun
    if checkpoints is not None:
        checkpoints.wait()
    return took, paused


def _plain(folder: Path, size: int) -> tuple[float, float]:
    path, content = folder / "plain", os.urandom(1 << 20) * (size >> 20)

    def write() -> None:
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    times = min(seconds_of(write) for _ in range(3)), min(seconds_of(path.read_bytes) for _ in range(3))
    path.unlink()
    return times


def _damage(folder: Path, path: Path, count: int, rng: random.Random) -> int:
    """Change one byte at a time, and return 1 if a check of the checkpoint does not see it."""
    missed = []
    for number in range(count):
        place, change = rng.randrange(path.stat().st_size), rng.randrange(1, 256)
        _change(path, place, change)
        if None in verify(folder).values():
            missed.append(place)
        _change(path, place, change)
        print(f"damaged at {number + 1} of {count} bytes", end="\r", file=sys.stderr, flush=True)
    whole = set(verify(folder).values()) == {None}
    print(
        f"damage at {count} random bytes: found {count - len(missed)} times{'' if whole else '; NOT whole afterwards'}"
    )
    return int(bool(missed) or not whole)


def _change(path: Path, place: int, change: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ change]))


if __name__ == "__main__":
    sys.exit(main())
