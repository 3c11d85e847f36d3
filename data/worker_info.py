"""Information for a dataset about the worker process that uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class WorkerInfo:
    """Information about a worker process.

    Attributes:
        id: its number, from 0.
        num_workers: number of workers.
        seed: its seed in this pass.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_current: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return information about the ``DataLoader`` worker that this process is; ``None`` in any other process.

    An ``IterableDataset`` uses it to yield another part of the samples in each worker.
    """
    return _current


def set_worker_info(info: WorkerInfo) -> None:
    """Set the information that ``get_worker_info`` returns."""
    global _current
    _current = info
