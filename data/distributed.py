"""``DistributedSampler``: another part of the samples for each worker of a job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sized
from typing import Any

from ..base.process_group_place import current_place
from ..core import Generator, randperm
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Sampler of every ``num_replicas``-th index, from index ``rank`` on (``torch.utils.data.DistributedSampler``).

    All workers together get all samples.

    Call ``set_epoch`` before each pass: otherwise all passes have the same order.

    Args:
        dataset: the dataset; only its length is used.
        num_replicas: number of workers; ``None`` is that of the default process group, else ``WORLD_SIZE`` of the environment,
            which launchers set.
        rank: rank of this worker; ``None`` is that in the default process group, else ``RANK`` of the environment.
        shuffle: whether samples come in random order: the same order on all workers, of which each takes its part.
        seed: the seed of that order; it must be the same on all workers.
        drop_last: leave out samples so that all workers get equally many; otherwise some samples are repeated for that.

    Raises:
        ValueError: the rank is not from 0 to ``num_replicas - 1``, or an argument is not given, and there is neither a process
            group nor a launcher that would know it.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.dataset = dataset
        place = current_place()
        self.num_replicas = _given("num_replicas", num_replicas, place and place.world_size, "WORLD_SIZE")
        self.rank = _given("rank", rank, place and place.rank, "RANK")
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank must be from 0 to {self.num_replicas - 1}, and you gave {self.rank}")
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    @property
    def num_samples(self) -> int:
        """Return the number of samples that each worker gets."""
        count = len(self.dataset)
        return count // self.num_replicas if self.drop_last else -(-count // self.num_replicas)

    @property
    def total_size(self) -> int:
        """Return the number of samples that all workers together get."""
        return self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            order = randperm(len(order), generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        if order:
            order *= -(-self.total_size // len(order))  # of fewer samples than workers, all are repeated
        return iter(order[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, from which the order of the next pass follows; it must be the same on all workers."""
        self.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch and the seed."""
        return {"epoch": self.epoch, "seed": self.seed}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of ``state_dict()``: the same order, also for another number of workers.

        Raises:
            ValueError: it is not a state of such a sampler.
        """
        if not {"epoch", "seed"} <= {*state_dict}:
            raise ValueError(f"the state of a DistributedSampler has an epoch and a seed, and you gave {[*state_dict]}")
        self.epoch, self.seed = state_dict["epoch"], state_dict["seed"]


def _given(name: str, value: int | None, in_group: int | None, variable: str) -> int:
    value = in_group if value is None else value
    if value is not None:
        return value
    if variable not in os.environ:
        raise ValueError(
            f"DistributedSampler needs {name}: there is no process group, and no launcher has set {variable}; call "
            f"init_process_group() first, or give it as an argument"
        )
    return int(os.environ[variable])
