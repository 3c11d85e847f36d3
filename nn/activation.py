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
    """Layer that may write its result into its input."""

    _settings: ClassVar[tuple[str, ...]] = ()  # what else its repr shows

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        parts = [f"{name}={getattr(self, name)}" for name in self._settings]
        return ", ".join([*parts, "inplace=True"] if self.inplace else parts)


class _Simple(_InPlace):
    """Layer of a function without settings of its own."""

    _function: ClassVar[Callable[..., Tensor]]

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return type(self)._function(input, self.inplace)


class ReLU(_Simple):
    """Element-wise ``max(input, 0)``.

    Args:
        inplace: whether to write into the input.
    """

    _function = staticmethod(F.relu)


class ReLU6(_Simple):
    """Element-wise ``min(max(input, 0), 6)``.

    Args:
        inplace: whether to write into the input.
    """

    _function = staticmethod(F.relu6)


class LeakyReLU(_InPlace):
    """Element-wise ``input`` where it is positive, ``negative_slope * input`` elsewhere.

    Args:
        negative_slope: slope below 0.
        inplace: whether to write into the input.
    """

    _settings = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class RReLU(_InPlace):
    """Element-wise ``LeakyReLU`` with random slopes while training, and with their mean otherwise.

    Args:
        lower, upper: bounds of the uniform distribution of the slopes.
        inplace: whether to write into the input.

    Raises:
        ValueError: (of a call) ``lower`` is above ``upper``.
    """

    _settings = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class ELU(_InPlace):
    """Element-wise ``input`` where it is positive, ``alpha * (exp(input) - 1)`` elsewhere.

    Args:
        alpha: minus the limit at -inf.
        inplace: whether to write into the input.
    """

    _settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.elu(input, self.alpha, self.inplace)


class SELU(_Simple):
    """Element-wise scaled ``elu``, which keeps mean 0 and variance 1; see ``functional.selu``.

    Args:
        inplace: whether to write into the input.
    """

    _function = staticmethod(F.selu)


class CELU(_InPlace):
    """Element-wise ``input`` where it is positive, ``alpha * (exp(input / alpha) - 1)`` elsewhere.

    Args:
        alpha: minus the limit at -inf, not 0.
        inplace: whether to write into the input.

    Raises:
        ValueError: (of a call) ``alpha`` is 0.
    """

    _settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.celu(input, self.alpha, self.inplace)


class GELU(Module):
    """Element-wise ``input * P(X <= input)`` for a standard normal X; see ``functional.gelu``.

    Args:
        approximate: "none", or "tanh" for an approximation by the hyperbolic tangent.

    Raises:
        ValueError: (of a call) ``approximate`` is neither.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_Simple):
    """Element-wise ``input * sigmoid(input)``.

    Args:
        inplace: whether to write into the input.
    """

    _function = staticmethod(F.silu)


class Mish(_Simple):
    """Element-wise ``input * tanh(softplus(input))``.

    Args:
        inplace: whether to write into the input.
    """

    _function = staticmethod(F.mish)


class Hardtanh(_InPlace):
    """Element-wise ``min(max(input, min_val), max_val)``.

    Args:
        min_val, max_val: the bounds.
        inplace: whether to write into the input.

    Raises:
        ValueError: (of a call) ``min_val`` is above ``max_val``.
    """

    _settings = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Hardsigmoid(_Simple):
    """Element-wise ``relu6(input + 3) / 6``.

    Args:
        inplace: whether to write into the input.
    """

    _function = staticmethod(F.hardsigmoid)


class Hardswish(_Simple):
    """Element-wise ``input * relu6(input + 3) / 6``.

    Args:
        inplace: whether to write into the input.
    """

    _function = staticmethod(F.hardswish)


class Threshold(_InPlace):
    """Element-wise ``input`` where it is above ``threshold``, ``value`` elsewhere.

    Args:
        threshold: the bound.
        value: number for the other elements.
        inplace: whether to write into the input.
    """

    _settings = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softplus(Module):
    """Element-wise ``log(1 + exp(beta * input)) / beta``.

    Args:
        beta: sharpness of the bend at 0.
        threshold: where ``beta * input`` is above it, the result is the input.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return type(self)._function(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """Element-wise 0 where ``abs(input) <= lambd``, ``input`` elsewhere.

    Args:
        lambd: the bound.
    """

    _function = staticmethod(F.hardshrink)


class Softshrink(_Shrink):
    """Element-wise ``sign(input) * max(abs(input) - lambd, 0)``.

    Args:
        lambd: the bound, not negative.

    Raises:
        ValueError: (of a call) ``lambd`` is negative.
    """

    _function = staticmethod(F.softshrink)


class Tanh(Module):
    """Element-wise hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.tanh(input)


class Sigmoid(Module):
    """Element-wise ``1 / (1 + exp(-input))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """Element-wise ``log(sigmoid(input))``, precise where the sigmoid is tiny."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.logsigmoid(input)


class Tanhshrink(Module):
    """Element-wise ``input - tanh(input)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.tanhshrink(input)


class Softsign(Module):
    """Element-wise ``input / (1 + abs(input))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.softsign(input)


class PReLU(Module):
    """Element-wise ``input`` where it is positive, ``weight * input`` elsewhere, with learned slopes ``weight``.

    Args:
        num_parameters: number of slopes: 1, or one for each channel (dimension 1).
        init: initial value of the slopes.
        device, dtype: of the parameter.

    Raises:
        ValueError: (of a call) there are not as many slopes as channels.
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
        """Set all slopes to ``init``."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
