"""``biject_to`` and ``transform_to``: the transform from all real numbers to those that a constraint allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints
from .constraints import Constraint
from .event_transforms import (
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from .transforms import AffineTransform, ComposeTransform, ExpTransform, SigmoidTransform, Transform

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Table of transforms by constraint, or by class of constraints (``torch.distributions.constraint_registry``)."""

    def __init__(self) -> None:
        self._factories: dict[Any, Factory] = {}

    def register(self, constraint: Constraint | type[Constraint], factory: Factory | None = None) -> Any:
        """Add the transform of a constraint; without ``factory``, return a decorator of it.

        Args:
            constraint: a constraint, or a class of constraints.
            factory: function from the constraint to a transform whose values it allows.

        Raises:
            TypeError: ``constraint`` is neither.
        """
        if not isinstance(constraint, Constraint) and not (
            isinstance(constraint, type) and issubclass(constraint, Constraint)
        ):
            raise TypeError(f"register() takes a constraint or a class of constraints, not {constraint!r}")
        if factory is None:
            return lambda given: self.register(constraint, given)
        self._factories[constraint] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """Return the transform whose values ``constraint`` allows.

        Raises:
            NotImplementedError: there is none; ``register`` adds one.
        """
        for key in (constraint, *type(constraint).__mro__):
            if key in self._factories:
                return self._factories[key](constraint)
        raise NotImplementedError(f"there is no transform to {constraint}; add one with register()")


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _interval(constraint: constraints.Interval) -> Transform:
    low, width = constraint.lower_bound, constraint.upper_bound - constraint.lower_bound
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, width)])


def _fill(registry: ConstraintRegistry) -> None:
    """Add the transforms that both registries have."""

    def independent(constraint: constraints.Independent) -> Transform:
        return IndependentTransform(registry(constraint.base), constraint.reinterpreted_batch_ndims)

    registry.register(constraints.real, lambda constraint: ComposeTransform([]))
    registry.register(constraints.real_vector, lambda constraint: IndependentTransform(ComposeTransform([]), 1))
    for above in (constraints.positive, constraints.nonnegative):
        registry.register(above, lambda constraint: ExpTransform())
    registry.register(constraints.positive_vector, lambda constraint: IndependentTransform(ExpTransform(), 1))
    registry.register(constraints.unit_interval, lambda constraint: SigmoidTransform())
    registry.register(constraints.Interval, _interval)
    registry.register(constraints.Independent, independent)
    registry.register(constraints.lower_cholesky, lambda constraint: LowerCholeskyTransform())
    registry.register(constraints.positive_definite, lambda constraint: PositiveDefiniteTransform())


for _registry in (biject_to, transform_to):
    _fill(_registry)
biject_to.register(constraints.simplex, lambda constraint: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: SoftmaxTransform())
