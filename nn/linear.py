"""Layers that multiply by a matrix, ``Linear`` and ``Bilinear``; and ``Identity``."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from ..core import empty
from ..core.extend import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class Linear(Module):
    """``input @ weight.T + bias``, from (..., in_features) to (..., out_features).

    ``weight`` has shape (out_features, in_features) and ``bias`` (out_features,); both start uniform within ``1 /
    sqrt(in_features)`` of 0.

    Args:
        in_features, out_features: number of features of the input and the result.
        bias: whether there is a ``bias``.
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, dtype=dtype, device=device))
        self.register_parameter("bias", Parameter(empty(out_features, dtype=dtype, device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return the product, shape (..., out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Identity(Module):
    """Layer that returns its input. It takes any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class Bilinear(Module):
    """``input1 @ weight[k] @ input2 + bias[k]`` for each output k.

    ``weight`` has shape (out_features, in1_features, in2_features) and ``bias`` (out_features,); both start uniform
    within ``1 / sqrt(in1_features)`` of 0.

    Args:
        in1_features, in2_features: number of features of both inputs.
        out_features: number of outputs.
        bias: whether there is a ``bias``.
        device, dtype: of the parameters.

    Raises:
        ValueError: ``in1_features`` is not positive.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        if in1_features < 1:
            raise ValueError(f"Bilinear: in1_features must be positive, and you gave {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, dtype=dtype, device=device))
        self.register_parameter("bias", Parameter(empty(out_features, dtype=dtype, device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Return the product, shape (..., out_features), of inputs with the same leading dimensions."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
