"""``ElasticSampler``: batches that any number of workers share, which may change from step to step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any, NamedTuple

from ..base.arguments import check_type
from ..core import Generator, randperm
from .sampler import Sampler


class _Place(NamedTuple):
    """Place of a batch: its epoch, and its first and last sample in that epoch's order."""

    epoch: int
    start: int
    end: int


class ElasticSampler(Sampler[list[int]]):
    """Sampler of the batches of all workers together, whose number may change from step to step.

    Every sample comes once an epoch, however often that number changes. All workers have the same sampler, and know the same
    number of workers at each step. ``collective.ElasticTraining`` splits each batch, and moves on when a step counts.

    Args:
        dataset: the dataset; only its length is used.
        batch_size: samples of a step: of all workers together, or of each one with ``per_worker=True``.
        per_worker: whether the batch grows with the number of workers.
        shuffle: whether each epoch has a random order of its own, which follows from ``seed`` and the epoch.
        seed: the same on all workers.
        drop_last: leave out the last samples of an epoch that do not fill a batch; otherwise the last batch is smaller.

    Attributes:
        epoch: counts from 0.
        position: samples of this epoch that were used.

    Raises:
        ValueError: the dataset is empty, or the batch size is not a positive integer, or above the length with ``drop_last``.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        per_worker: bool = False,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
            raise ValueError(f"batch_size must be a positive integer, and you gave {batch_size!r}")
        check_type("dataset", dataset, Sized, "something with a length")
        self.samples = len(dataset)
        if not self.samples or (drop_last and batch_size > self.samples):
            raise ValueError(
                f"a dataset of {self.samples} samples has no batch of {batch_size}; give a smaller batch_size"
            )
        self.batch_size = batch_size
        self.per_worker = per_worker
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0
        self.position = 0
        self._order: tuple[int, Sequence[int]] = -1, ()  # of the epoch that was asked for last

    def batch(self, workers: int = 1) -> list[int]:
        """Return the indices of the next batch, without moving on.

        Args:
            workers: how many share it.
        """
        place = self._next(workers)
        return list(self._indices(place.epoch)[place.start : place.end])

    def advance(self, workers: int = 1) -> None:
        """Move on behind the next batch.

        Args:
            workers: how many have shared it.
        """
        self.epoch, _, self.position = self._next(workers)

    def _next(self, workers: int) -> _Place:
        size = min(self.batch_size * (workers if self.per_worker else 1), self.samples)
        left = self.samples - self.position
        if left == 0 or (self.drop_last and left < size):
            return _Place(self.epoch + 1, 0, size)
        return _Place(self.epoch, self.position, min(self.position + size, self.samples))

    def _indices(self, epoch: int) -> Sequence[int]:
        if self._order[0] != epoch:
            order: Sequence[int] = range(self.samples)
            if self.shuffle:
                order = randperm(self.samples, generator=Generator().manual_seed(self.seed + epoch)).tolist()
            self._order = epoch, order
        return self._order[1]

    def __iter__(self) -> Iterator[list[int]]:
        """Iterate over the batches that are left of this epoch, as the only worker."""
        epoch = self._next(1).epoch
        while self._next(1).epoch == epoch:
            batch = self.batch()
            self.advance()
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, the position in it, and the seed."""
        return {"epoch": self.epoch, "position": self.position, "seed": self.seed}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of ``state_dict()``, of a sampler of the same dataset.

        Raises:
            ValueError: it is not a state of such a sampler.
        """
        if not {"epoch", "position", "seed"} <= {*state_dict}:
            raise ValueError(
                f"the state of an ElasticSampler has an epoch, a position and a seed, and you gave {[*state_dict]}"
            )
        self.epoch, self.position, self.seed = (state_dict[name] for name in ("epoch", "position", "seed"))
