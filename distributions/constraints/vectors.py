"""Constraints on vectors: the last dimension is checked as a whole."""

from __future__ import annotations

import numpy as np

from ...core.extend import Array
from .base import Condition, Constraint
from .bounds import whole


def _sums_to_one(x: Array) -> Array:
    return np.asarray((x >= 0).all(-1) & (np.abs(x.sum(-1) - 1) < 1e-6))


class Multinomial(Constraint):
    """Constraint to vectors of counts that sum to ``upper_bound``, the number of draws."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: int) -> None:
        self.upper_bound = upper_bound

    def _holds(self, x: Array) -> Array:
        return np.asarray(((x >= 0) & whole(x)).all(-1) & (x.sum(-1) == self.upper_bound))

    def __repr__(self) -> str:
        return f"vectors of counts that sum to {self.upper_bound}"


simplex = Condition("numbers of at least 0 that sum to 1 along the last dimension", _sums_to_one, 1)
real_vector = Condition("vectors of real numbers", lambda x: (x == x).all(-1), 1)
positive_vector = Condition("vectors of numbers above 0", lambda x: (x > 0).all(-1), 1)
one_hot = Condition(
    "vectors of one 1 and otherwise 0",
    lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1),
    1,
    is_discrete=True,
)

# PyTorch's names, by which users make them.
multinomial = Multinomial
