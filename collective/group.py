"""``ProcessGroup``: ranks that call collectives together. Backends carry the arrays and objects of one group."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ..core.extend import Array
from ..core.futures import Future, complete_once
from .reduction import ReduceOp


class Work(Future[Any]):
    """A collective that is under way (``torch.distributed.Work``): a future."""

    __slots__ = ()

    def is_completed(self) -> bool:
        """Return whether it has ended, with a result or an error."""
        return self.done()

    def get_future(self) -> Work:
        """Return this object: it is the future."""
        return self

    def complete(self, body: Callable[[], Any]) -> None:
        """Run the body of the collective; its result or exception is the work's."""
        try:
            result = body()
        except BaseException as error:
            complete_once(self, error=error)
        else:
            complete_once(self, result)


class ProcessGroup(ABC):
    """Ranks that call collectives together, all of them in the same order (``torch.distributed.ProcessGroup``).

    Indices below count the group's members from 0; ``ranks`` has their ranks in the job. Arrays are C-contiguous and
    one-dimensional, and of equal length and dtype on all ranks unless something else is said.

    Args:
        name: the same on all members.
        ranks: the members' ranks in the job.
        rank: this process's rank in the job.
        timeout: in seconds, of each collective.

    Attributes:
        index: this process's place in ``ranks``.
    """

    backend = ""

    def __init__(self, name: str, ranks: Sequence[int], rank: int, timeout: float) -> None:
        self.name = name
        self.ranks = tuple(ranks)
        self.index = self.ranks.index(rank)
        self.timeout = timeout
        self.destroyed = False

    def size(self) -> int:
        """Return the number of members."""
        return len(self.ranks)

    def rank(self) -> int:
        """Return this process's place among the members."""
        return self.index

    @abstractmethod
    def run(self, body: Callable[[], Any], in_background: bool) -> Work | None:
        """Run the body of a collective: here, or in the background, after those that were begun before.

        Args:
            body: the rest of the collective; its result is the work's.
            in_background: return at once.

        Returns:
            The work, if ``in_background``.
        """

    @abstractmethod
    def begin(self, name: str, like: Any, size: int = 0) -> Any:
        """Return a new call, in the order in which this process calls collectives.

        Args:
            name: of the collective, for errors.
            like: what must be equal on all ranks, such as dtype and shape; ``None`` for nothing.
            size: bytes of the array of an ``all_reduce``.
        """

    def give_up(self, call: Any, error: BaseException) -> None:  # noqa: B027
        """End a call that was begun, without taking part: it fails on all members. Not over MPI, whose members wait.

        Args:
            call: of ``begin``.
            error: why.
        """

    @abstractmethod
    def all_gather(self, call: Any, content: Any) -> list[Any]:
        """Return everybody's array or object, in the order of the members."""

    @abstractmethod
    def all_reduce(self, call: Any, array: Array, op: ReduceOp) -> None:
        """Replace everybody's array by the combination of all."""

    @abstractmethod
    def broadcast(self, call: Any, content: Any, source: int) -> Any:
        """Return the array or object of the member ``source``."""

    @abstractmethod
    def reduce(self, call: Any, array: Array, op: ReduceOp, target: int) -> Array | None:
        """Return the combination of all arrays at the member ``target``, and ``None`` elsewhere."""

    @abstractmethod
    def gather(self, call: Any, content: Any, target: int) -> list[Any] | None:
        """Return everybody's array or object at the member ``target``, and ``None`` elsewhere."""

    @abstractmethod
    def scatter(self, call: Any, contents: Sequence[Any] | None, source: int) -> Any:
        """Return this member's of the arrays or objects that the member ``source`` gives."""

    @abstractmethod
    def all_to_all(self, call: Any, contents: Sequence[Any]) -> list[Any]:
        """Give each member one array or object, and return those that the members gave this one."""

    @abstractmethod
    def reduce_scatter(self, call: Any, arrays: Sequence[Array], op: ReduceOp) -> Array:
        """Return the combination of the arrays that everybody gave for this member."""

    @abstractmethod
    def send(self, content: Any, target: int, tag: int) -> None:
        """Send one array or object, which may change afterwards."""

    @abstractmethod
    def receive(self, source: int, tag: int) -> Any:
        """Return the next array or object that the member ``source`` sent with that tag."""

    @abstractmethod
    def close(self) -> None:
        """Free what the group holds."""


class Numbers:
    """Counters by key, for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[Any, int] = {}

    def next(self, key: Any) -> int:
        """Return 0, 1, 2, … for a key."""
        with self._lock:
            number = self._next.get(key, 0)
            self._next[key] = number + 1
        return number
