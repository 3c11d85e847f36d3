"""``Job``: the workers that save a checkpoint together, each a file of its own. What one cannot do, fails on all."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, TypeVar

from ..base.arguments import check_type
from ..base.errors import CheckpointError
from ..base.process_group_place import current_place

T = TypeVar("T")


class Job:
    """Workers of a group, or this one alone.

    Args:
        group: the workers; ``None`` is the default process group, if there is one.

    Attributes:
        rank: index of this worker among them.
        size: how many there are.
    """

    def __init__(self, group: Any = None) -> None:
        self.rank, self.size = 0, 1
        self._group: Any = None
        if group is None and current_place() is None:
            return
        from .. import collective  # only here: what trains alone needs no network

        check_type("group", group, (collective.ProcessGroup, NoneType), "a process group of telegrad.collective")
        ranks = None if group is None else group.ranks
        self._gather = collective.all_gather_object
        # A group of its own: a writing thread's messages are not mixed with those of the training.
        self._group = collective.new_group(ranks)
        self.rank, self.size = collective.get_rank(self._group), collective.get_world_size(self._group)

    def share(self, value: Any) -> list[Any]:
        """Return the values of all workers, in the order of their ranks."""
        if self._group is None:
            return [value]
        values: list[Any] = [None] * self.size
        self._gather(values, value, self._group)
        return values

    def all_do(self, do: Callable[[], T]) -> T:
        """Call a function on all workers, and return its result here.

        Raises:
            CheckpointError: it failed on a worker; all raise it then.
        """
        if self._group is None:
            return do()
        result, problem = None, None
        try:
            result = do()
        except Exception as error:  # any: the others wait for this worker
            known = isinstance(error, (CheckpointError, OSError, TypeError, ValueError))
            problem = str(error) if known else f"{type(error).__name__}: {error}"
        if found := [(rank, text) for rank, text in enumerate(self.share(problem)) if text is not None]:
            raise CheckpointError("; ".join(f"worker {rank}: {text}" for rank, text in found[:3]))
        return result  # type: ignore[return-value]
