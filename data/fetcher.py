"""``Fetcher``: makes batches of a dataset's samples, in the loader's process and in workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .collate import default_collate
from .dataset import Columns, IterableDataset

END = object()  # the result at the end of an iterable dataset


@dataclass(frozen=True)
class Fetcher:
    """Maker of batches: a dataset, and how its samples become batches.

    Args:
        dataset: a ``Dataset`` or an ``IterableDataset``.
        collate_fn: makes a batch of a list of samples, or converts single samples.
        batched: whether samples are put together.
        batch_size: number of samples in a batch of an ``IterableDataset``.
        drop_last: leave out a last batch of an ``IterableDataset`` that is not full.
    """

    dataset: Any
    collate_fn: Callable[[Any], Any]
    batched: bool
    batch_size: int | None
    drop_last: bool

    def open(self) -> Callable[[Any], Any]:
        """Begin a pass, and return the function that makes a batch of sample indices (or a sample of one index).

        For an ``IterableDataset`` the function ignores its argument, and returns ``END`` after the last batch.
        """
        if isinstance(self.dataset, IterableDataset):
            samples = iter(self.dataset)
            return (lambda _: self._next_batch(samples)) if self.batched else (lambda _: self._next_sample(samples))
        return self._batch if self.batched else self._sample

    def _sample(self, number: Any) -> Any:
        return self.collate_fn(self.dataset[number])

    def _batch(self, numbers: Sequence[Any]) -> Any:
        whole = getattr(self.dataset, "__getitems__", None)
        if whole is None:
            return self.collate_fn([self.dataset[number] for number in numbers])
        samples = whole(numbers)
        if type(samples) is Columns and self.collate_fn is not default_collate:
            samples = list(samples)
        return self.collate_fn(samples)

    def _next_sample(self, samples: Iterator[Any]) -> Any:
        for sample in samples:
            return self.collate_fn(sample)
        return END

    def _next_batch(self, samples: Iterator[Any]) -> Any:
        batch = list(islice(samples, self.batch_size))
        if not batch or (self.drop_last and len(batch) != self.batch_size):
            return END
        return self.collate_fn(batch)
