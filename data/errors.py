"""Errors of a loader's worker processes."""

from __future__ import annotations

from ..base.errors import TelegradError


class DataLoaderError(TelegradError, RuntimeError):
    """A worker process of a ``DataLoader`` died, or raised an exception that cannot be rebuild here."""


class DataLoaderTimeoutError(DataLoaderError, TimeoutError):
    """No batch came within the loader's ``timeout``."""


class WorkerTraceback(Exception):
    """Cause of an exception that was raised in a worker process: its traceback there, as text."""

    def __init__(self, worker: str, text: str) -> None:
        super().__init__(worker, text)
        self.worker = worker
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\nin {self.worker}:\n{self.text.rstrip()}\n"""'
