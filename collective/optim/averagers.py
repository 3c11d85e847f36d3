"""Averages of the ranks' models, every so many steps (``torch.distributed.algorithms.model_averaging``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from ...core import Tensor
from ..group import ProcessGroup
from ..packing import by_dtype, pack, unpack
from ..reduction import ReduceOp
from ..registry import find, new_group


def average_parameters(params: Iterable[Tensor], process_group: Any = None) -> None:
    """Replace parameters by their means over the ranks of a group, in one message for each dtype.

    Args:
        params: the same on all ranks, in shape, dtype and order; changed.
        process_group: ``None`` for the default group. On a rank that is not in it nothing happens.
    """
    if (group := find(process_group)) is None:
        return
    for tensors in by_dtype(params):
        row = pack(tensors, tensors[0].dtype)
        group.all_reduce(group.begin("average_parameters", f"{row.dtype}[{row.size}]", row.nbytes), row, ReduceOp.AVG)
        unpack(row, tensors)


class PeriodicModelAverager:
    """Mean of the ranks' models every ``period`` steps (``PeriodicModelAverager``).

    Args:
        period: steps from one mean to the next.
        warmup_steps: steps before the first.
        process_group: the ranks; ``None`` for the default group.

    Attributes:
        step: how often ``average_parameters`` was called.

    Raises:
        ValueError: ``period`` is below 1, or ``warmup_steps`` below 0.
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        _check(period, warmup_steps)
        self.period = period
        self.warmup_steps = warmup_steps
        self.process_group = process_group
        self.step = 0

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and take the mean of the ranks' parameters if it is time for that.

        Args:
            params: parameters, or groups of an optimizer.
        """
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            average_parameters(_listed(params), self.process_group)
        self.step += 1


class HierarchicalModelAverager:
    """Means of the ranks' models in groups of growing size, the larger the rarer (``HierarchicalModelAverager``).

    All ranks make it, in the same order as their other groups.

    Args:
        period_group_size_dict: by period in steps, the number of neighbouring ranks that take their mean. Each period is a
            multiple of the one before, each size divides the next, and the last is that of the group.
        warmup_steps: steps before the first mean.
        process_group: all ranks; ``None`` for the default group.

    Attributes:
        step: how often ``average_parameters`` was called.

    Raises:
        ValueError: periods or sizes do not fit.
    """

    def __init__(
        self, period_group_size_dict: Mapping[int, int], warmup_steps: int = 0, process_group: Any = None
    ) -> None:
        world = find(process_group)
        if world is None:
            raise ValueError("this rank is not in process_group")
        levels = sorted(period_group_size_dict.items())
        _check(min(period_group_size_dict, default=0), warmup_steps)
        _check_levels(levels, world)
        self.warmup_steps = warmup_steps
        self.step = 0
        self._levels = [(period, _own_subgroup(world, size)) for period, size in levels]

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and take the mean of the largest group for which it is time.

        Args:
            params: parameters, or groups of an optimizer.
        """
        steps = self.step - self.warmup_steps
        due = [group for period, group in self._levels if steps >= 0 and steps % period == 0]
        if due:
            average_parameters(_listed(params), due[-1])
        self.step += 1


def _check(period: int, warmup_steps: int) -> None:
    if period < 1 or warmup_steps < 0:
        raise ValueError(f"a period is at least 1 and warmup_steps at least 0; you gave {period} and {warmup_steps}")


def _check_levels(levels: list[tuple[int, int]], world: ProcessGroup) -> None:
    for (period, size), (longer, larger) in pairwise(levels):
        if longer % period or larger % size or larger <= size:
            raise ValueError(
                f"period {longer} with groups of {larger} must be multiples of period {period} with groups of {size}"
            )
    if levels[-1][1] != world.size():
        raise ValueError(f"the largest group must have all {world.size()} ranks; you gave {levels[-1][1]}")


def _own_subgroup(world: ProcessGroup, size: int) -> Any:
    if size == world.size():
        return world
    parts = [world.ranks[start : start + size] for start in range(0, world.size(), size)]
    groups = [new_group(part, world.timeout) for part in parts]
    return groups[world.index // size]


def _listed(params: Iterable[Any]) -> list[Tensor]:
    given = list(params)
    inside = [each["params"] if isinstance(each, Mapping) else [each] for each in given]
    return [parameter for some in inside for parameter in some]
