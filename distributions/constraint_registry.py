"""``biject_to`` and ``transform_to``: the transform from all real numbers to those that a constraint allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints
from .constraints import Constraint
from .transforms import (
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
    Transform,
    identity_transform,
)

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


def _interval(constraint: constraints.interval) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if type(low) is type(high) is float and (low, high) == (0.0, 1.0):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


def _above(constraint: constraints.greater_than) -> Transform:
    low = constraint.lower_bound
    return (
        ExpTransform()
        if type(low) is float and not low
        else ComposeTransform([ExpTransform(), AffineTransform(low, 1)])
    )


def _below(constraint: constraints.less_than) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


def _fill(registry: ConstraintRegistry) -> None:
    """Add the transforms that both registries have."""

    def independent(constraint: constraints.independent) -> Transform:
        return IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)

    def joined(constraint: constraints.cat) -> Transform:
        return CatTransform([registry(each) for each in constraint.cseq], constraint.dim, constraint.lengths)

    def stacked(constraint: constraints.stack) -> Transform:
        return StackTransform([registry(each) for each in constraint.cseq], constraint.dim)

    registry.register(constraints.real, lambda constraint: identity_transform)
    registry.register(constraints.real_vector, lambda constraint: IndependentTransform(identity_transform, 1))
    registry.register(constraints.positive_vector, lambda constraint: IndependentTransform(ExpTransform(), 1))
    for above in (constraints.greater_than, constraints.greater_than_eq):
        registry.register(above, _above)
    registry.register(constraints.less_than, _below)
    for between in (constraints.interval, constraints.half_open_interval):
        registry.register(between, _interval)
    registry.register(constraints.independent, independent)
    registry.register(constraints.cat, joined)
    registry.register(constraints.stack, stacked)
    registry.register(constraints.corr_cholesky, lambda constraint: CorrCholeskyTransform())
    registry.register(constraints.lower_cholesky, lambda constraint: LowerCholeskyTransform())
    for positive in (constraints.positive_definite, constraints.positive_semidefinite):
        registry.register(positive, lambda constraint: PositiveDefiniteTransform())
    for whole in (constraints.integer_interval, constraints.integer_greater_than):
        registry.register(whole, _none)


def _none(constraint: Constraint) -> Transform:
    # They are intervals too, but of isolated numbers.
    raise NotImplementedError(f"there is no transform to {constraint}; add one with register()")


for _registry in (biject_to, transform_to):
    _fill(_registry)
biject_to.register(constraints.simplex, lambda constraint: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: SoftmaxTransform())
