"""Transforms made of others, and of the shape of events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...core import cat, stack
from ...core.extend import Tensor
from .. import constraints
from ..distribution import Shape, sum_rightmost
from .base import Transform


class IndependentTransform(Transform):
    """Transform whose log-determinants are summed over more of the last dimensions.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: number of dimensions, at least 0, before those of its events.
        cache_size: see ``Transform``.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.sign: Any = base_transform.sign
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Change of the shape of events.

    Args:
        in_shape: the shape of arguments.
        out_shape: the shape of values, of as many elements.
        cache_size: see ``Transform``.

    Raises:
        ValueError: the shapes have unequal numbers of elements.
    """

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                f"in_shape {self.in_shape} and out_shape {self.out_shape} have unequal numbers of elements"
            )
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Shape) -> Shape:
        return _replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape: Shape, present: Shape, wanted: Shape) -> Shape:
    cut = len(shape) - len(present)
    if cut < 0 or tuple(shape[cut:]) != present:
        raise ValueError(f"an event has shape {present}, and you gave the shape {tuple(shape)}")
    return (*shape[:cut], *wanted)


class _Parts(Transform):
    """Base class of transforms that apply one transform to each of several parts of a dimension."""

    transforms: list[Transform]
    dim: int

    def __init__(self, tseq: Iterable[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) for each in tseq] if cache_size else list(tseq)
        self.dim = dim
        self.bijective = all(each.bijective for each in self.transforms)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        raise NotImplementedError

    def _checked_parts(self, x: Tensor) -> Sequence[Tensor]:
        if not -x.ndim <= self.dim < x.ndim:
            raise ValueError(
                f"{type(self).__name__} takes parts of dimension {self.dim}, and you gave the shape {x.shape}"
            )
        return self._split(x)

    def _call(self, x: Tensor) -> Tensor:
        return self._join([each(part) for each, part in zip(self.transforms, self._checked_parts(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._checked_parts(y))
        return self._join([each._inv_call(part) for each, part in parts], self.dim)


class CatTransform(_Parts):
    """Transform of parts of a dimension, each by a transform of its own.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: the length of each part; 1 each if ``None``.
        cache_size: see ``Transform``.

    Raises:
        ValueError: there are not as many lengths as transforms.
    """

    def __init__(
        self, tseq: Iterable[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.domain = constraints.cat([each.domain for each in self.transforms], dim, self.lengths)
        self.codomain = constraints.cat([each.codomain for each in self.transforms], dim, self.lengths)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        return cat(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        dims, terms = self.domain.event_dim, []
        for each, part, value in zip(self.transforms, self._checked_parts(x), self._checked_parts(y)):
            terms.append(sum_rightmost(each.log_abs_det_jacobian(part, value), dims - each.domain.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        if dim + dims < 0:
            return cat(terms, dim + dims)
        total = terms[0]  # the parts are parts of an event
        for term in terms[1:]:
            total = total + term
        return total


class StackTransform(_Parts):
    """Transform of the slices along a dimension, each by a transform of its own.

    Args:
        tseq: the transforms.
        dim: the dimension.
        cache_size: see ``Transform``.
    """

    def __init__(self, tseq: Iterable[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.domain = constraints.stack([each.domain for each in self.transforms], dim)
        self.codomain = constraints.stack([each.codomain for each in self.transforms], dim)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        return stack(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._checked_parts(x), self._checked_parts(y))
        return stack([each.log_abs_det_jacobian(part, value) for each, part, value in pairs], self.dim)
