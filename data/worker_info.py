"""What a dataset can ask about the worker process that it is used in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class WorkerInfo:
    """Of a worker process: its number, how many there are, the seed of this pass, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_current: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Where this is: in which of a ``DataLoader``'s workers; ``None`` in any other process.

    An ``IterableDataset`` needs it to give each worker another part of the samples.
    """
    return _current


def set_worker_info(info: WorkerInfo) -> None:
    """Make this process a worker."""
    global _current
    _current = info
