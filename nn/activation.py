"""Element-wise layers: modules without parameters, and ``PReLU`` with one."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy.typing as npt

from ..core import full
from ..core.extend import Tensor
from . import functional as F
from .module import Module
from .parameter import Parameter


class _InPlace(Module):
    """A layer that may write its result into its input."""

    _settings: ClassVar[tuple[str, ...]] = ()  # what else its repr shows

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        parts = [f"{name}={getattr(self, name)}" for name in self._settings]
        return ", ".join([*parts, "inplace=True"] if self.inplace else parts)


class _Simple(_InPlace):
    """One that is a function without settings of its own."""

    _function: ClassVar[Callable[..., Tensor]]

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return type(self)._function(input, self.inplace)


class ReLU(_Simple):
    """``max(input, 0)``."""

    _function = staticmethod(F.relu)


class ReLU6(_Simple):
    """``ReLU``, but not above 6."""

    _function = staticmethod(F.relu6)


class LeakyReLU(_InPlace):
    """The input where it is positive, ``negative_slope`` times it elsewhere."""

    _settings = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class RReLU(_InPlace):
    """``LeakyReLU`` with slopes drawn from [``lower``, ``upper``) while training, and their mean otherwise."""

    _settings = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class ELU(_InPlace):
    """The input where it is positive, ``alpha * (exp(input) - 1)`` elsewhere."""

    _settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.elu(input, self.alpha, self.inplace)


class SELU(_Simple):
    """``ELU`` with the two constants that keep mean 0 and variance 1."""

    _function = staticmethod(F.selu)


class CELU(_InPlace):
    """The input where it is positive, ``alpha * (exp(input / alpha) - 1)`` elsewhere."""

    _settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.celu(input, self.alpha, self.inplace)


class GELU(Module):
    """The input times the probability that a standard normal number is below it; ``approximate``: "none" or "tanh"."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_Simple):
    """``input * sigmoid(input)``."""

    _function = staticmethod(F.silu)


class Mish(_Simple):
    """``input * tanh(softplus(input))``."""

    _function = staticmethod(F.mish)


class Hardtanh(_InPlace):
    """The input, but not below ``min_val`` nor above ``max_val``."""

    _settings = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Hardsigmoid(_Simple):
    """``ReLU6(input + 3) / 6``."""

    _function = staticmethod(F.hardsigmoid)


class Hardswish(_Simple):
    """``input * ReLU6(input + 3) / 6``."""

    _function = staticmethod(F.hardswish)


class Threshold(_InPlace):
    """The input where it is above ``threshold``, ``value`` elsewhere."""

    _settings = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softplus(Module):
    """``log(1 + exp(beta * input)) / beta``; the input itself where ``beta * input > threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return type(self)._function(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """0 within ``lambd`` of 0, the input elsewhere."""

    _function = staticmethod(F.hardshrink)


class Softshrink(_Shrink):
    """The input moved towards 0 by ``lambd``, and 0 within that.

    Raises:
        ValueError: (of a call) ``lambd`` is negative.
    """

    _function = staticmethod(F.softshrink)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-input))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of ``Sigmoid``, precise where that is tiny."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.logsigmoid(input)


class Tanhshrink(Module):
    """``input - tanh(input)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.tanhshrink(input)


class Softsign(Module):
    """``input / (1 + abs(input))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.softsign(input)


class PReLU(Module):
    """``LeakyReLU`` with learned slopes ``weight``: one, or ``num_parameters``, one for each channel (dimension 1).

    They start as ``init``.
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start over from ``init``."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
