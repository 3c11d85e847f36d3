"""``DataLoader``: batches of a dataset, loaded in the process that iterates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from ..core import Generator
from .collate import default_collate
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler


class DataLoader:
    """Iterating gives batches; each pass is a fresh one (``torch.utils.data.DataLoader``).

    Args:
        dataset: samples by number, or an ``IterableDataset``.
        batch_size: samples in a batch; ``None`` gives single samples, as they are.
        shuffle: whether samples come in random order.
        sampler: gives the order instead.
        batch_sampler: gives lists of sample numbers, instead of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: must be 0: samples are loaded where the loader is iterated.
        collate_fn: makes a batch of a list of samples; at first ``default_collate``.
        drop_last: leave out a last batch that is not full.
        generator: where the random order comes from; at first the default generator.
        pin_memory, timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers,
            pin_memory_device, in_order: have no meaning without worker processes.

    Raises:
        ValueError: arguments that exclude each other, or worker processes.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers != 0:
            raise ValueError(f"DataLoader loads in this process: num_workers must be 0, and you gave {num_workers}")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler makes the batches, so leave out batch_size, shuffle, sampler and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("drop_last drops incomplete batches, and batch_size=None makes none")
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.generator = generator
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = self._choose_sampler(sampler, shuffle)
        self.batch_sampler = batch_sampler
        if batch_size is not None:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.collate_fn = collate_fn or (default_collate if self.batch_sampler is not None else _as_it_is)

    def _choose_sampler(self, sampler: Iterable[Any] | None, shuffle: bool | None) -> Iterable[Any]:
        if isinstance(self.dataset, IterableDataset):
            if shuffle or sampler is not None:
                raise ValueError("an IterableDataset has an order of its own, so leave out shuffle and sampler")
            return ()
        if sampler is not None:
            if shuffle:
                raise ValueError("a sampler gives the order, so leave out shuffle")
            return sampler
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset):
            return self._iterate_stream()
        if self.batch_sampler is None:
            return (self.collate_fn(self.dataset[number]) for number in self.sampler)
        return (self.collate_fn(self._fetch(numbers)) for numbers in self.batch_sampler)

    def _fetch(self, numbers: Sequence[Any]) -> Any:
        whole = getattr(self.dataset, "__getitems__", None)
        return [self.dataset[number] for number in numbers] if whole is None else whole(numbers)

    def _iterate_stream(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        """How many batches a pass gives.

        Raises:
            TypeError: the dataset (or sampler) has no length.
        """
        if isinstance(self.dataset, IterableDataset):
            samples = len(self.dataset)  # type: ignore[arg-type]
            size = self.batch_size or 1
            return samples // size if self.drop_last else -(-samples // size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]


def _as_it_is(sample: Any) -> Any:
    return sample
