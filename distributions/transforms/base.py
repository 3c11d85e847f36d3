"""``Transform``, the base class of invertible functions, their inverses and compositions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from ...core import zeros_like
from ...core.extend import Tensor
from .. import constraints
from ..constraints import Constraint
from ..distribution import Shape, sum_rightmost

T = TypeVar("T", bound="Transform")


class Transform:
    """Base class of all transforms: ``t(x)`` is the value, ``t.inv(y)`` the inverse (``torch.distributions.Transform``).

    Subclasses define ``_call(x)``, ``_inverse(y)`` and ``log_abs_det_jacobian(x, y)``. Two transforms are equal if they are
    of one class and have equal parameters.

    Args:
        cache_size: 1 to keep the last argument and its value, so that the inverse of that value is exact and costs nothing.

    Attributes:
        domain: the constraint of arguments; its ``event_dim`` last dimensions are mapped together.
        codomain: the constraint of values.
        bijective: whether there is an inverse.
        sign: 1 if it increases everywhere, -1 if it decreases.

    Raises:
        ValueError: ``cache_size`` is not 0 or 1.
    """

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective = True
    sign: Any = 1

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, and you gave {cache_size}")
        self._cache_size = cache_size
        self._last: tuple[Tensor, Tensor] | None = None

    @property
    def event_dim(self) -> int:
        """Return the number of last dimensions that are mapped together.

        Raises:
            ValueError: it is another number for values than for arguments; ``domain`` and ``codomain`` have both.
        """
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError(
                f"{type(self).__name__} maps {self.domain.event_dim} dimensions to {self.codomain.event_dim}; "
                "take domain.event_dim or codomain.event_dim"
            )
        return self.domain.event_dim

    def with_cache(self: T, cache_size: int = 1) -> T:
        """Return the same transform with another ``cache_size``, and an empty cache."""
        if self._cache_size == cache_size:
            return self
        other = copy.copy(self)
        Transform.__init__(other, cache_size)
        return other

    def __call__(self, x: Tensor) -> Tensor:
        """Return the value at ``x``."""
        if self._last is not None and self._last[0] is x:
            return self._last[1]
        return self._remembered(x, self._call(x))[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        """Return the argument whose value is ``y``."""
        if self._last is not None and self._last[1] is y:
            return self._last[0]
        return self._remembered(self._inverse(y), y)[0]

    def _remembered(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._last = x, y
        return x, y

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define _call()")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define _inverse()")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return ``log |det dy/dx|`` at ``x``, where the value is ``y``.

        Args:
            x: arguments.
            y: their values.

        Returns:
            A tensor of the shape of ``x`` without the last ``domain.event_dim`` dimensions.
        """
        raise NotImplementedError(f"{type(self).__name__} must define log_abs_det_jacobian()")

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the values at arguments of shape ``shape``."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the arguments whose values have shape ``shape``."""
        return shape

    @property
    def inv(self) -> Transform:
        """Return the inverse, as a transform."""
        return _Inverse(self)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        own, others = _parameters(self), _parameters(other)
        return own.keys() == others.keys() and all(_equal(value, others[name]) for name, value in own.items())

    __hash__ = None  # type: ignore[assignment]  # equal transforms may hold unequal tensors later


def _parameters(transform: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(transform).items() if name not in ("_cache_size", "_last")}


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        one, other = (each.numpy(force=True) if isinstance(each, Tensor) else each for each in (one, other))
        return bool(np.array_equal(one, other))
    return bool(one == other)


class _Inverse(Transform):
    def __init__(self, forward: Transform) -> None:
        super().__init__()
        self._forward = forward
        self.domain, self.codomain = forward.codomain, forward.domain
        self.bijective, self.sign = forward.bijective, forward.sign

    def _call(self, x: Tensor) -> Tensor:
        return self._forward._inv_call(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._forward(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._forward.forward_shape(shape)

    @property
    def inv(self) -> Transform:
        return self._forward


class ComposeTransform(Transform):
    """Composition of transforms, which are applied one after the other.

    Args:
        parts: the transforms; the first is applied first.
        cache_size: see ``Transform``.
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        self.bijective = all(part.bijective for part in self.parts)
        for part in self.parts:
            self.sign = self.sign * part.sign
        if self.parts:
            backwards = [(part.domain, part.codomain) for part in reversed(self.parts)]
            self.domain = _joined(backwards)
            self.codomain = _joined([(part.codomain, part.domain) for part in self.parts])

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        dims = self.domain.event_dim
        total = sum_rightmost(zeros_like(x), dims)
        for number, part in enumerate(self.parts):
            value = y if number == len(self.parts) - 1 else part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, value), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = value
        return total


def _joined(ends: Sequence[tuple[Constraint, Constraint]]) -> Constraint:
    """Return the constraint of one end of a composition: the last of ``ends``, for as many dimensions as any part maps.

    Args:
        ends: of each part the constraint of this end and that of the other, beginning at the other end of the composition.
    """
    dims = ends[0][1].event_dim
    for near, far in ends:
        dims = max(dims + near.event_dim - far.event_dim, near.event_dim)
    last = ends[-1][0]
    return constraints.independent(last, dims - last.event_dim) if dims > last.event_dim else last


identity_transform = ComposeTransform([])
