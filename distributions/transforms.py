"""Invertible functions of tensors and their log-determinants (``torch.distributions.transforms``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core import as_tensor, clamp, exp, log, log1p, logit, sigmoid, tanh, zeros_like
from ..core import finfo as floating_info
from ..core.extend import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Shape, sum_rightmost
from .odds import softplus


class Transform:
    """Base class of all transforms: ``t(x)`` is the value, ``t.inv(y)`` the inverse (``torch.distributions.Transform``).

    Subclasses define ``_call(x)``, ``_inverse(y)`` and ``log_abs_det_jacobian(x, y)``.

    Args:
        cache_size: 1 to keep the last argument and its value, so that the inverse of that value is exact and costs nothing.

    Attributes:
        domain: the constraint of arguments.
        codomain: the constraint of values.
        bijective: whether there is an inverse.
        sign: 1 if it increases everywhere, -1 if it decreases.
        event_dim: number of last dimensions that are mapped together.

    Raises:
        ValueError: ``cache_size`` is not 0 or 1.
    """

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective = True
    sign: Any = 1
    event_dim = 0

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, and you gave {cache_size}")
        self._cache_size = cache_size
        self._last: tuple[Tensor, Tensor] | None = None

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
            A tensor of the shape of ``x`` without its last ``event_dim`` dimensions.
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


class _Inverse(Transform):
    def __init__(self, forward: Transform) -> None:
        super().__init__()
        self._forward = forward
        self.domain, self.codomain = forward.codomain, forward.domain
        self.sign, self.event_dim = forward.sign, forward.event_dim

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


class AffineTransform(Transform):
    """The transform ``loc + scale * x``.

    Args:
        loc: number or tensor that broadcasts with ``x``.
        scale: number or tensor that broadcasts with ``x``, not 0.
        event_dim: number of last dimensions over which ``log_abs_det_jacobian`` is summed.
        cache_size: see ``Transform``.
    """

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        self.sign = as_tensor(scale).detach().sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log_scale = zeros_like(x) + log(
            as_tensor(self.scale, None if isinstance(self.scale, Tensor) else x.dtype).abs()
        )
        return sum_rightmost(log_scale, self.event_dim)


class ExpTransform(Transform):
    """The transform ``exp(x)``."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """The transform ``x ** exponent`` of numbers above 0.

    Args:
        exponent: number or tensor that broadcasts with ``x``, not 0.
        cache_size: see ``Transform``.
    """

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = as_tensor(exponent)
        self.sign = self.exponent.detach().sign()

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return log((self.exponent * y / x).abs())


class SigmoidTransform(Transform):
    """The transform ``sigmoid(x)``."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        info = floating_info(x.dtype)
        return clamp(sigmoid(x), info.tiny, 1 - info.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        info = floating_info(y.dtype)
        return logit(clamp(y, info.tiny, 1 - info.eps))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """The transform ``log(1 + exp(x))``."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(-(-y).expm1()) + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Transform):
    """The transform ``tanh(x)``. Its derivative is computed from ``x``, which is exact where ``tanh(x)`` rounds to 1."""

    codomain = constraints.Constraint("numbers from -1 to 1", lambda x: (x >= -1) & (x <= 1))

    def _call(self, x: Tensor) -> Tensor:
        return tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (log1p(y) - log1p(-y)) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class ComposeTransform(Transform):
    """Composition of transforms, which are applied one after the other.

    Args:
        parts: the transforms; the first is applied first.
        cache_size: see ``Transform``.
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.event_dim = max((part.event_dim for part in self.parts), default=0)
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain
        for part in self.parts:
            self.sign = self.sign * part.sign

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
        total = sum_rightmost(zeros_like(x), self.event_dim)
        for part in self.parts:
            value = part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, value), self.event_dim - part.event_dim)
            x = value
        return total
