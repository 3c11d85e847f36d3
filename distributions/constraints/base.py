"""``Constraint``, the base class, and constraints that depend on other parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.extend import Array, Tensor


class Constraint:
    """Condition on the elements of a tensor, or on its last ``event_dim`` dimensions together.

    Subclasses define ``check``.

    Attributes:
        event_dim: number of last dimensions that are checked together.
        is_discrete: whether the allowed values are isolated.
    """

    event_dim: int = 0
    is_discrete: bool = False

    def check(self, value: Tensor) -> Tensor:
        """Return where the condition holds: booleans of the shape of ``value`` without its last ``event_dim`` dimensions."""
        with np.errstate(invalid="ignore"):
            return Tensor(np.asarray(self._holds(value.numpy(force=True))))

    def _holds(self, x: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} must define check()")

    def __repr__(self) -> str:
        return type(self).__name__


class Condition(Constraint):
    """Constraint that is a function of arrays.

    Args:
        text: names the allowed values in errors.
        holds: returns for an array where the condition holds; nan must never hold.
        event_dim: number of last dimensions that are checked together.
        is_discrete: whether the allowed values are isolated.
    """

    def __init__(self, text: str, holds: Callable[[Array], Any], event_dim: int = 0, is_discrete: bool = False) -> None:
        self.text, self._function = text, holds
        self.event_dim, self.is_discrete = event_dim, is_discrete

    def _holds(self, x: Array) -> Array:
        return np.asarray(self._function(x))

    def __repr__(self) -> str:
        return self.text


class Dependent(Constraint):
    """Placeholder for a constraint that depends on other parameters; it cannot be checked.

    ``dependent(is_discrete=..., event_dim=...)`` is one that knows these two.

    Args:
        is_discrete: whether the allowed values are isolated.
        event_dim: number of last dimensions that are checked together.
    """

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> Dependent:
        return Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        """Raise: it depends on parameters that it does not know.

        Raises:
            ValueError: always.
        """
        raise ValueError("a dependent constraint cannot be checked; ask the distribution for its support")


class dependent_property(property, Dependent):  # noqa: N801 - PyTorch's name
    """Property of a distribution that is a constraint: a constraint itself when asked of the class.

    It decorates a method, as ``@dependent_property(is_discrete=False, event_dim=0)``.

    Args:
        fn: the method.
        is_discrete: whether the allowed values are isolated.
        event_dim: number of last dimensions that are checked together.
    """

    def __init__(
        self, fn: Callable[[Any], Any] | None = None, *, is_discrete: bool = False, event_dim: int = 0
    ) -> None:
        property.__init__(self, fn)
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> dependent_property:  # type: ignore[override]
        """Return the property of the method ``fn``."""
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


dependent = Dependent()


def is_dependent(constraint: Constraint) -> bool:
    """Return whether a constraint depends on other parameters, so that it cannot be checked."""
    return isinstance(constraint, Dependent)
