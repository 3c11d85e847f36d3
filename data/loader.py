"""``DataLoader``: batches of a dataset, loaded in the process that iterates or in worker processes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

from ..core import Generator, default_generator
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .errors import DataLoaderError
from .fetcher import END, Fetcher
from .place import Place
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .seeding import draw_seed

if TYPE_CHECKING:
    from .pool import Pool


class DataLoader:
    """Iterable of batches of a dataset; each iteration is a new pass (``torch.utils.data.DataLoader``).

    Args:
        dataset: a dataset with samples by index, or an ``IterableDataset``.
        batch_size: number of samples in a batch; ``None`` yields single samples.
        shuffle: whether samples come in random order.
        sampler: iterable of sample indices, instead of ``shuffle``.
        batch_sampler: iterable of lists of sample indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and
            ``drop_last``.
        num_workers: number of processes that load samples; 0 loads them in the process of the loader. The dataset is pickled
            for them (not with "fork"), and each has a copy of an ``IterableDataset``: see ``get_worker_info``. Batches come
            through shared memory. Leaving the loop ends the processes, and an error in one is raised here with its own type.
        collate_fn: makes a batch of a list of samples; ``None`` is ``default_collate``.
        pin_memory: accepted for compatibility, and ignored.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch of a worker; 0 is no limit.
        worker_init_fn: called with the worker's number in each worker, once, after it was seeded.
        multiprocessing_context: start method of the workers, a name or a context of multiprocessing; ``None`` is "spawn".
        generator: draws the random order and the seeds of workers; ``None`` is the default generator.
        prefetch_factor: number of batches that each worker makes in advance; ``None`` is 2.
        persistent_workers: whether workers serve all passes, instead of one.
        pin_memory_device: accepted for compatibility, and ignored.
        in_order: whether batches come in the sampler's order, also if a later one is ready before.

    Raises:
        ValueError: arguments exclude each other, or need workers.

    Example:
        >>> import telegrad as tg
        >>> dataset = tg.data.TensorDataset(tg.arange(5.0), tg.arange(5))
        >>> for x, y in tg.data.DataLoader(dataset, batch_size=3):
        ...     print(x, y)
        tensor([0., 1., 2.]) tensor([0, 1, 2])
        tensor([3., 4.]) tensor([3, 4])
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
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, multiprocessing_context, prefetch_factor, persistent_workers)
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
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = _context(multiprocessing_context) if num_workers else None
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = self._choose_sampler(sampler, batch_sampler, shuffle)
        self.batch_sampler = batch_sampler
        if batch_size is not None:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.collate_fn = collate_fn or (default_collate if self.batch_sampler is not None else default_convert)
        self._pool: Pool | None = None
        self._place = Place()
        self._resumes = False  # whether the next pass goes on from the place

    def _choose_sampler(self, sampler: Iterable[Any] | None, batch_sampler: Any, shuffle: bool | None) -> Iterable[Any]:
        if isinstance(self.dataset, IterableDataset):
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ValueError(
                    "an IterableDataset has an order of its own, so leave out shuffle, sampler and batch_sampler"
                )
            return ()
        if sampler is not None:
            if shuffle:
                raise ValueError("a sampler gives the order, so leave out shuffle")
            return sampler
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    def __iter__(self) -> Iterator[Any]:
        resumes, self._resumes = self._resumes, False
        if not resumes:
            self._place = Place(self.epoch, self._drawn(), ended=False)
            # Always drawn, and before the sampler's order: so the order does not depend on the number of workers. The order
            # is drawn here, not with the first batch: a state that is saved before that has what the next pass draws from.
            return self._begin(draw_seed(self.generator), self._place.remaining(self._indices()))
        now = self._drawn()["generator"]
        self._draw_from(self._place.began)
        try:
            return self._go_on(draw_seed(self.generator))
        finally:
            self._source().set_state(now)

    def _begin(self, seed: int, numbered: Iterator[tuple[int, Any]]) -> Iterator[Any]:
        if not self.num_workers:
            return _iterate_here(self._fetcher().open(), numbered, self._place)
        return self._iterate_in_workers(numbered, seed)

    def _go_on(self, seed: int) -> Iterator[Any]:
        """Return the rest of the pass that a loaded state tells of."""
        if not isinstance(self.dataset, IterableDataset):
            return self._begin(seed, self._place.remaining(self._indices()))
        given = self._place.given
        self._place.restart()
        batches = self._begin(seed, enumerate(self._indices()))
        for _ in islice(batches, given):
            pass
        return batches

    def _indices(self) -> Iterator[Any]:
        """Return the sample indices of each batch; ``None`` for each if the dataset is iterable."""
        if isinstance(self.dataset, IterableDataset):
            return repeat(None)
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def _fetcher(self) -> Fetcher:
        return Fetcher(self.dataset, self.collate_fn, self.batch_sampler is not None, self.batch_size, self.drop_last)

    def _iterate_in_workers(self, numbered: Iterator[tuple[int, Any]], seed: int) -> Iterator[Any]:
        from .worker_pass import WorkerPass  # only here, because few programs need multiprocessing

        own = not self.persistent_workers
        pool = self._new_pool() if own or self._pool is None or not self._pool.workers else self._pool
        if not own and pool is not self._pool:
            weakref.finalize(self, pool.close)
            self._pool = pool
        prefetch = self.prefetch_factor or 1
        return WorkerPass(pool, numbered, seed, prefetch, self.timeout, self.in_order, own, self._place)

    def _new_pool(self) -> Pool:
        from .pool import Pool

        return Pool((self._fetcher(), self.worker_init_fn), self.num_workers, self.multiprocessing_context)

    # -- state

    @property
    def epoch(self) -> int:
        """Return the number of the pass whose batches the loop gets, from 0 on; after its end, of the next one."""
        return self._place.epoch + self._place.ended

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the latest pass, and the states of the sampler and the generator, also after the loop was left.

        A batch counts as used when the loop has got it, not when a worker has made it. The default generator's state is not a
        part: save it beside this (a ``Checkpointer`` does).

        Raises:
            DataLoaderError: batches of an ``IterableDataset`` come out of order, so no state tells which were given.
        """
        if isinstance(self.dataset, IterableDataset) and self.num_workers > 1 and not self.in_order:
            raise DataLoaderError(
                "with in_order=False, batches of an IterableDataset come in an order that cannot be repeated; "
                "make the loader with in_order=True to save its state"
            )
        now = self._drawn()
        return {
            "place": self._place.state_dict(),
            "now": now if self.generator is not None else {**now, "generator": None},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of ``state_dict()``: the next pass gives the batches that the other loader's loop has not got.

        If that loop had ended, or none had begun, the next pass is a whole one. The order is drawn again from the generator, so
        a sampler of your own that draws while a pass runs needs ``state_dict`` and ``load_state_dict`` and a generator of its
        own. The samples that an ``IterableDataset`` gave are made again, and dropped.

        Args:
            state_dict: of a loader over the same dataset, with the same sampler and batch size; the workers may be others.

        Raises:
            DataLoaderError: it is not the state of a loader.
        """
        try:
            place, now = Place.of(state_dict["place"]), state_dict["now"]
            self._draw_from(now)
        except (KeyError, TypeError) as error:
            raise DataLoaderError(f"this is not the state_dict() of a DataLoader: {error!r}") from error
        self._place = place
        self._resumes = not place.ended

    def _source(self) -> Generator:
        return self.generator or default_generator

    def _drawn(self) -> dict[str, Any]:
        """Return the states of what draws the order: the generator, and a sampler that has a state."""
        sampler = self.sampler if self.batch_sampler is None else self.batch_sampler
        state = getattr(sampler, "state_dict", dict)
        return {"generator": self._source().get_state(), "sampler": state()}

    def _draw_from(self, state: dict[str, Any]) -> None:
        sampler = self.sampler if self.batch_sampler is None else self.batch_sampler
        if state["sampler"]:
            sampler.load_state_dict(state["sampler"])  # type: ignore[union-attr]
        if state["generator"] is not None:
            self._source().set_state(state["generator"])

    def __len__(self) -> int:
        """Return the number of batches in a pass.

        Raises:
            TypeError: the dataset (or sampler) has no length.
        """
        if isinstance(self.dataset, IterableDataset):
            samples = len(self.dataset)  # type: ignore[arg-type]
            size = self.batch_size or 1
            return samples // size if self.drop_last else -(-samples // size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]


def _iterate_here(make: Callable[[Any], Any], numbered: Iterator[tuple[int, Any]], place: Place) -> Iterator[Any]:
    for number, index in numbered:
        made = [make(index)]  # in a list, so that this frame does not keep a batch that the loop has
        if made[0] is END:
            break
        yield place.give(number, made.pop())
    place.ended = True


def _check_workers(count: int, timeout: float, context: Any, prefetch: int | None, persistent: bool) -> None:
    if count < 0 or timeout < 0:
        raise ValueError(f"num_workers and timeout cannot be negative, and you gave {count} and {timeout}")
    if prefetch is not None and prefetch < 1:
        raise ValueError(f"prefetch_factor must be at least 1, and you gave {prefetch}")
    given = {"multiprocessing_context": context, "prefetch_factor": prefetch, "persistent_workers": persistent or None}
    without_meaning = [name for name, value in given.items() if value is not None]
    if not count and without_meaning:
        raise ValueError(f"{' and '.join(without_meaning)} needs worker processes; give num_workers, or leave it out")


def _context(chosen: Any) -> Any:
    import multiprocessing

    if chosen is None or isinstance(chosen, str):
        return multiprocessing.get_context(chosen or "spawn")
    return chosen
