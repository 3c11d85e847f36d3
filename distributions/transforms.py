"""Invertible functions of tensors with the logarithms of how much they stretch (``torch.distributions.transforms``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core import as_tensor, clamp, exp, log, log1p, logit, sigmoid, tanh, zeros_like
from ..core import finfo as floating_info
from ..core.extend import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import sum_rightmost
from .odds import softplus


class Transform:
    """The base of all transforms: ``t(x)`` is the value, ``t.inv(y)`` the inverse.

    Attributes:
        domain, codomain: what it takes and what it gives.
        sign: 1 if it rises everywhere, -1 if it falls.
        event_dim: how many of the last dimensions belong together.
    """

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    sign: Any = 1
    event_dim = 0

    def __call__(self, x: Tensor) -> Tensor:
        """The value at ``x``."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__()")

    def inverse(self, y: Tensor) -> Tensor:
        """Where the value is ``y``."""
        raise NotImplementedError(f"{type(self).__name__} must define inverse()")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the absolute slope at ``x``, where the value is ``y``."""
        raise NotImplementedError(f"{type(self).__name__} must define log_abs_det_jacobian()")

    @property
    def inv(self) -> Transform:
        """The inverse, as a transform."""
        return _Inverse(self)


class _Inverse(Transform):
    def __init__(self, forward: Transform) -> None:
        self._forward = forward
        self.domain, self.codomain = forward.codomain, forward.domain
        self.sign, self.event_dim = forward.sign, forward.event_dim

    def __call__(self, x: Tensor) -> Tensor:
        return self._forward.inverse(x)

    def inverse(self, y: Tensor) -> Tensor:
        return self._forward(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._forward.log_abs_det_jacobian(y, x)

    @property
    def inv(self) -> Transform:
        return self._forward


class AffineTransform(Transform):
    """``loc + scale * x``."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0) -> None:
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        self.sign = as_tensor(scale).detach().sign()

    def __call__(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        stretch = zeros_like(x) + log(as_tensor(self.scale, None if isinstance(self.scale, Tensor) else x.dtype).abs())
        return sum_rightmost(stretch, self.event_dim)


class ExpTransform(Transform):
    """``exp(x)``."""

    codomain = constraints.positive

    def __call__(self, x: Tensor) -> Tensor:
        return exp(x)

    def inverse(self, y: Tensor) -> Tensor:
        return log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``x ** exponent`` of numbers above 0."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any) -> None:
        self.exponent = as_tensor(exponent)
        self.sign = self.exponent.detach().sign()

    def __call__(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return log((self.exponent * y / x).abs())


class SigmoidTransform(Transform):
    """``sigmoid(x)``."""

    codomain = constraints.unit_interval

    def __call__(self, x: Tensor) -> Tensor:
        info = floating_info(x.dtype)
        return clamp(sigmoid(x), info.tiny, 1 - info.eps)

    def inverse(self, y: Tensor) -> Tensor:
        info = floating_info(y.dtype)
        return logit(clamp(y, info.tiny, 1 - info.eps))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """``log(1 + exp(x))``."""

    codomain = constraints.positive

    def __call__(self, x: Tensor) -> Tensor:
        return softplus(x)

    def inverse(self, y: Tensor) -> Tensor:
        return log(-(-y).expm1()) + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Transform):
    """``tanh(x)``; its slope is computed from ``x``, which is exact where ``tanh`` has come to 1."""

    codomain = constraints.Constraint("numbers from -1 to 1", lambda x: (x >= -1) & (x <= 1))

    def __call__(self, x: Tensor) -> Tensor:
        return tanh(x)

    def inverse(self, y: Tensor) -> Tensor:
        return (log1p(y) - log1p(-y)) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)
        self.event_dim = max((part.event_dim for part in self.parts), default=0)
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain
        for part in self.parts:
            self.sign = self.sign * part.sign

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total = sum_rightmost(zeros_like(x), self.event_dim)
        for part in self.parts:
            value = part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, value), self.event_dim - part.event_dim)
            x = value
        return total
