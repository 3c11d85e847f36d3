"""Constraints made of others: of several elements as one event, and of parts along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

from ... import core
from ...core.extend import Tensor
from .base import Constraint


class Independent(Constraint):
    """Constraint on each element, that holds for the last dimensions together.

    Args:
        base_constraint: the constraint on each.
        reinterpreted_batch_ndims: number of dimensions before those of its events.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete

    def check(self, value: Tensor) -> Tensor:
        """Return where it holds for all elements of an event.

        Raises:
            ValueError: ``value`` has fewer than ``event_dim`` dimensions.
        """
        if value.ndim < self.event_dim:
            raise ValueError(f"an event has {self.event_dim} dimensions, and you gave a value of shape {value.shape}")
        inside = self.base_constraint.check(value)
        return (
            inside.all(tuple(range(-self.reinterpreted_batch_ndims, 0))) if self.reinterpreted_batch_ndims else inside
        )

    def __repr__(self) -> str:
        return str(self.base_constraint)


class MixtureSameFamilyConstraint(Constraint):
    """Constraint of the samples of a mixture: of those of its components, along the dimension before the event.

    Args:
        base_constraint: the constraint of the components.
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.event_dim, self.is_discrete = base_constraint.event_dim, base_constraint.is_discrete

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is allowed for every component."""
        unlike = value.unsqueeze(-1 - self.event_dim)
        return self.base_constraint.check(unlike).all(-1)

    def __repr__(self) -> str:
        return str(self.base_constraint)


class Cat(Constraint):
    """Constraint on parts of a dimension, one constraint for each.

    Args:
        cseq: the constraints.
        dim: the dimension.
        lengths: the length of each part; 1 each if ``None``.

    Raises:
        ValueError: there are not as many lengths as constraints.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(
                f"cat() needs a length for each of {len(self.cseq)} parts, and you gave {len(self.lengths)}"
            )
        self.event_dim = max(each.event_dim for each in self.cseq)
        self.is_discrete = any(each.is_discrete for each in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        """Return where the constraint of its part holds.

        Raises:
            ValueError: ``value`` has no such dimension.
        """
        _check_dim(self.dim, value)
        parts = value.split(self.lengths, self.dim)
        return core.cat([each.check(part) for each, part in zip(self.cseq, parts)], self.dim)


class Stack(Constraint):
    """Constraint on the slices along a dimension, one constraint for each.

    Args:
        cseq: the constraints.
        dim: the dimension.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        dims = max(each.event_dim for each in self.cseq)
        self.event_dim = dims + (self.dim + dims < 0)
        self.is_discrete = any(each.is_discrete for each in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        """Return where the constraint of its slice holds.

        Raises:
            ValueError: ``value`` has no such dimension.
        """
        _check_dim(self.dim, value)
        return core.stack([each.check(part) for each, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


def _check_dim(dim: int, value: Tensor) -> None:
    if not -value.ndim <= dim < value.ndim:
        raise ValueError(f"a value of shape {value.shape} has no dimension {dim}")


# PyTorch's names, by which users make them.
cat = Cat
independent = Independent
stack = Stack
