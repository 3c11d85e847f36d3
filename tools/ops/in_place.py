"""Checks of in-place forms, derived from the checks of the operations: on a copy, an in-place form gives the same values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Tensor
from ...core.extend import OPERATIONS
from ...testing.ops import Make, OpCheck, Samples

# Further arguments of operations whose checks pass them.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "addcdiv": {"value": 2},
    "addcmul": {"value": 2},
    "celu": {"alpha": 1.5},
    "clamp": {"min": -0.9, "max": 1.1},
    "elu": {"alpha": 0.7},
    "hardtanh": {"min_val": -0.5, "max_val": 2.0},
    "threshold": {"threshold": 0.1, "value": -2.0},
}


def in_place_forms(checks: Sequence[OpCheck]) -> list[OpCheck]:
    """Return a check for each in-place form of the operations in ``checks`` that does not have a check there."""
    checked = {check.name.split(":")[0] for check in checks}
    return [_form(check) for check in checks if f"{check.name}_" in OPERATIONS and f"{check.name}_" not in checked]


def _form(check: OpCheck) -> OpCheck:
    plain, changing = OPERATIONS[check.name], OPERATIONS[f"{check.name}_"]
    options = ARGUMENTS.get(check.name, {})

    def on_a_copy(first: Tensor, *others: Any) -> Tensor:
        target = first.clone()
        result = changing(target, *others, **options)
        if result is not target:
            raise AssertionError("an in-place form returns the tensor that it was called with")
        return target

    def out_of_place(*arguments: Any) -> Any:
        tensors = [Tensor(each) if isinstance(each, np.ndarray) else each for each in arguments]
        return plain(*tensors, **options).numpy(force=True)

    return OpCheck(f"{check.name}_", on_a_copy, _fitting(check.samples), check.orders, check.dtypes, out_of_place)


def _fitting(samples: Samples) -> Callable[[Make], list[Sequence[Any]]]:
    def fitting(make: Make) -> list[Sequence[Any]]:
        return [sample for sample in samples(make) if _fits(sample)]

    return fitting


def _fits(sample: Sequence[Any]) -> bool:
    shapes = [each.shape for each in sample if isinstance(each, Tensor)]
    return bool(np.broadcast_shapes(*shapes) == sample[0].shape)
