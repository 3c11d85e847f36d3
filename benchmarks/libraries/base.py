"""Interface of a library under test: the least that every one of them can do, and what only some can."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class UnsupportedError(Exception):
    """The library has nothing like that; the message says what is missing."""


@dataclass(frozen=True)
class Place:
    """Place where the workers of a job find one another: a folder of their own, and a free port of the loopback.

    Port 0 stands for what a launcher has put into the environment.
    """

    folder: Path
    port: int


@dataclass(frozen=True)
class Api:
    """Modules of a library with PyTorch's programming model.

    Attributes:
        lib: tensors, ``nn`` and ``optim``.
        rpc: calls and references.
        autograd: distributed autograd.
        optimizer: the class ``DistributedOptimizer``.
        groups: process groups; ``None`` where workers are no processes.
        pipeline: called on every worker with its part of a model, how many micro-batches, inputs and targets; returns a step.
        program: returns a program that was written for PyTorch's RPC as one for this library.
    """

    lib: Any
    rpc: Any
    autograd: Any
    optimizer: Any
    groups: Any = None
    pipeline: Callable[[Callable[[int], Any], int, Any, Any], Callable[[], Any]] | None = None
    program: Callable[[str], str] = str


class Library(ABC):
    """One library with one transport, in one worker of a job.

    Attributes:
        versions: of the library and of what it is built on.
    """

    versions: dict[str, str]

    @abstractmethod
    def join(self, rank: int, world: int, place: Place) -> None:
        """Become the worker of that rank; others can call it from now on."""

    def leave(self) -> None:  # noqa: B027
        """End this worker's part; every worker of the job does."""

    @abstractmethod
    def call(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function on another worker and return its result. Any thread."""

    def start_call(self, rank: int, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        """Begin a call, and return a function that waits for its result."""
        raise UnsupportedError("it has no calls that are waited for later")

    @abstractmethod
    def array(self, size: int) -> Any:
        """Return an array of ``size`` bytes, in the form that the library sends best."""

    def api(self) -> Api:
        """Return the library's modules."""
        raise UnsupportedError("it has no remote references and no distributed autograd")
