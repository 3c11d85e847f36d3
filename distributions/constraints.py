"""Conditions on the values of parameters and samples (``torch.distributions.constraints``)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.extend import Array, Tensor

Check = Callable[[Array], Array]


class Constraint:
    """Condition on the elements of a tensor, or on its last ``event_dim`` dimensions together.

    Args:
        text: names the allowed values in errors.
        holds: returns for an array where the condition holds.
        event_dim: number of last dimensions that are checked together.
        is_discrete: whether the allowed values are isolated.
    """

    def __init__(self, text: str, holds: Check, event_dim: int = 0, is_discrete: bool = False) -> None:
        self.text = text
        self._holds = holds
        self.event_dim = event_dim
        self.is_discrete = is_discrete

    def check(self, value: Tensor) -> Tensor:
        """Return where the condition holds: booleans of the shape of ``value`` without its last ``event_dim`` dimensions."""
        with np.errstate(invalid="ignore"):
            return Tensor(np.asarray(self._holds(value.numpy(force=True))))

    def __repr__(self) -> str:
        return self.text


def _whole(x: Array) -> Array:
    return np.asarray(x == np.floor(x))


def _sums_to_one(x: Array) -> Array:
    return np.asarray((x >= 0).all(-1) & (np.abs(x.sum(-1) - 1) < 1e-6))


def _symmetric(x: Array) -> Array:
    return np.isclose(x, x.swapaxes(-1, -2), atol=1e-6).all((-2, -1))


# No constraint allows nan.
real = Constraint("real numbers", lambda x: x == x)
positive = Constraint("numbers above 0", lambda x: x > 0)
nonnegative = Constraint("numbers of at least 0", lambda x: x >= 0)
unit_interval = Constraint("numbers from 0 to 1", lambda x: (x >= 0) & (x <= 1))
half_open_unit = Constraint("numbers above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
boolean = Constraint("0 or 1", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer = Constraint("whole numbers of at least 0", lambda x: (x >= 0) & _whole(x), is_discrete=True)
simplex = Constraint("numbers of at least 0 that sum to 1 along the last dimension", _sums_to_one, 1)
real_vector = Constraint("vectors of real numbers", lambda x: np.asarray((x == x).all(-1)), 1)
positive_vector = Constraint("vectors of numbers above 0", lambda x: np.asarray((x > 0).all(-1)), 1)
positive_definite = Constraint(
    "positive-definite matrices", lambda x: _symmetric(x) & (np.linalg.eigvalsh(x) > 0).all(-1), 2
)
lower_cholesky = Constraint(
    "lower triangular matrices with a positive diagonal",
    lambda x: (np.tril(x) == x).all((-2, -1)) & (np.diagonal(x, axis1=-2, axis2=-1) > 0).all(-1),
    2,
)
one_hot = Constraint(
    "vectors of one 1 and otherwise 0",
    lambda x: np.asarray(((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)),
    1,
    is_discrete=True,
)


class Interval(Constraint):
    """Constraint to numbers from ``lower_bound`` to ``upper_bound``.

    Args:
        lower_bound: number or tensor that broadcasts with the value.
        upper_bound: number or tensor that broadcasts with the value.
    """

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        bottom, top = (
            each.numpy(force=True) if isinstance(each, Tensor) else each for each in (lower_bound, upper_bound)
        )
        super().__init__("numbers within its bounds", lambda x: (x >= bottom) & (x <= top))


interval = Interval


class Independent(Constraint):
    """Constraint on each element, that holds for the last dimensions together.

    Args:
        base_constraint: the constraint on each.
        reinterpreted_batch_ndims: number of dimensions before those of its events.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        axes = tuple(range(-reinterpreted_batch_ndims, 0))
        super().__init__(
            str(base_constraint),
            lambda x: np.asarray(np.asarray(base_constraint._holds(x)).all(axes)),
            base_constraint.event_dim + reinterpreted_batch_ndims,
            base_constraint.is_discrete,
        )


independent = Independent


def integer_interval(low: int, high: int) -> Constraint:
    """Return the constraint to whole numbers from ``low`` to ``high``."""
    text = f"whole numbers from {low} to {high}"
    return Constraint(text, lambda x: (x >= low) & (x <= high) & _whole(x), is_discrete=True)


def multinomial(total: int) -> Constraint:
    """Return the constraint to vectors of counts that sum to ``total``."""
    text = f"vectors of counts that sum to {total}"
    return Constraint(text, lambda x: np.asarray(((x >= 0) & _whole(x)).all(-1) & (x.sum(-1) == total)), 1, True)
