"""Constraints on single numbers: bounds, whole numbers, booleans."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.extend import Array, Tensor
from .base import Condition, Constraint

Bound = Tensor | float


class Bounded(Constraint):
    """Constraint by a lower or an upper bound, or both: numbers, or tensors that broadcast with the value."""

    lower_bound: Any = None
    upper_bound: Any = None

    def _from(self, x: Array) -> Array:
        return np.asarray(x >= _array(self.lower_bound))

    def _above(self, x: Array) -> Array:
        return np.asarray(x > _array(self.lower_bound))

    def _to(self, x: Array) -> Array:
        return np.asarray(x <= _array(self.upper_bound))

    def _below(self, x: Array) -> Array:
        return np.asarray(x < _array(self.upper_bound))

    def _text(self, words: str) -> str:
        return words.format(low=_said(self.lower_bound, "low"), high=_said(self.upper_bound, "high"))


class GreaterThan(Bounded):
    """Constraint to numbers above ``lower_bound``, a number or a tensor that broadcasts with the value."""

    def __init__(self, lower_bound: Bound) -> None:
        self.lower_bound = lower_bound

    def _holds(self, x: Array) -> Array:
        return self._above(x)

    def __repr__(self) -> str:
        return self._text("numbers above {low}")


class GreaterThanEq(Bounded):
    """Constraint to numbers of at least ``lower_bound``, a number or a tensor that broadcasts with the value."""

    def __init__(self, lower_bound: Bound) -> None:
        self.lower_bound = lower_bound

    def _holds(self, x: Array) -> Array:
        return self._from(x)

    def __repr__(self) -> str:
        return self._text("numbers of at least {low}")


class LessThan(Bounded):
    """Constraint to numbers below ``upper_bound``, a number or a tensor that broadcasts with the value."""

    def __init__(self, upper_bound: Bound) -> None:
        self.upper_bound = upper_bound

    def _holds(self, x: Array) -> Array:
        return self._below(x)

    def __repr__(self) -> str:
        return self._text("numbers below {high}")


class Interval(Bounded):
    """Constraint to numbers from ``lower_bound`` to ``upper_bound``.

    Args:
        lower_bound: number or tensor that broadcasts with the value.
        upper_bound: number or tensor that broadcasts with the value.
    """

    def __init__(self, lower_bound: Bound, upper_bound: Bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def _holds(self, x: Array) -> Array:
        return self._from(x) & self._to(x)

    def __repr__(self) -> str:
        return self._text("numbers from {low} to {high}")


class HalfOpenInterval(Interval):
    """Constraint to numbers of at least ``lower_bound`` and below ``upper_bound``; see ``Interval``."""

    def _holds(self, x: Array) -> Array:
        return self._from(x) & self._below(x)

    def __repr__(self) -> str:
        return self._text("numbers of at least {low} and below {high}")


class IntegerInterval(Interval):
    """Constraint to whole numbers from ``lower_bound`` to ``upper_bound``; see ``Interval``."""

    is_discrete = True

    def _holds(self, x: Array) -> Array:
        return super()._holds(x) & whole(x)

    def __repr__(self) -> str:
        return self._text("whole numbers from {low} to {high}")


class IntegerGreaterThan(GreaterThanEq):
    """Constraint to whole numbers of at least ``lower_bound``, a number or a tensor that broadcasts with the value."""

    is_discrete = True

    def _holds(self, x: Array) -> Array:
        return super()._holds(x) & whole(x)

    def __repr__(self) -> str:
        return self._text("whole numbers of at least {low}")


def whole(x: Array) -> Array:
    """Return where numbers are whole."""
    return np.asarray(x == np.floor(x))


def _array(bound: Bound) -> Any:
    return bound.numpy(force=True) if isinstance(bound, Tensor) else bound


def _said(bound: Any, name: str) -> str:
    if isinstance(bound, Tensor):
        return str(bound.item()) if bound.numel() == 1 else f"its {name}"
    return "" if bound is None else f"{bound:g}"


real = Condition("real numbers", lambda x: x == x)
positive = GreaterThan(0.0)
nonnegative = GreaterThanEq(0.0)
unit_interval = Interval(0.0, 1.0)
half_open_unit = Condition("numbers above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
boolean = Condition("0 or 1", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer = IntegerGreaterThan(0)
positive_integer = IntegerGreaterThan(1)

# PyTorch's names, by which users make them.
greater_than = GreaterThan
greater_than_eq = GreaterThanEq
half_open_interval = HalfOpenInterval
integer_greater_than = IntegerGreaterThan
integer_interval = IntegerInterval
interval = Interval
less_than = LessThan
