"""Normalising layers without running statistics: ``LayerNorm``, ``RMSNorm``, ``GroupNorm``, ``LocalResponseNorm``."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from ..core import empty
from ..core.extend import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class _Affine(Module):
    """A layer that may have parameters ``weight``, at first ones, and ``bias``, at first zeros."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_parameters(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: str | None, dtype: npt.DTypeLike | None
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, Parameter(empty(shape, dtype=dtype, device=device)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start over from ones and zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self._parameters.get("bias") is not None:
            init.zeros_(self._parameters["bias"])  # type: ignore[arg-type]


class LayerNorm(_Affine):
    """Shifts and scales each sample to mean 0 and variance 1 over its last dimensions, then by learned parameters.

    Args:
        normalized_shape: the lengths of those dimensions; the shape of ``weight`` and ``bias``.
        eps: added to the variance.
        elementwise_affine: whether there are parameters: ``weight``, at first ones, and ``bias``, at first zeros.
        bias: whether there is a ``bias``.
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-05,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_parameters(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(_Affine):
    """Scales each sample to mean square 1 over its last dimensions, then by a learned ``weight``.

    Args:
        normalized_shape: the lengths of those dimensions.
        eps: added to the mean square; the dtype's machine epsilon if ``None``.
        elementwise_affine: whether there is a ``weight``, at first ones.
        device, dtype: of the parameter.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        parameter = Parameter(empty(self.normalized_shape, dtype=dtype, device=device)) if elementwise_affine else None
        self.register_parameter("weight", parameter)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Shifts and scales each group of channels of each sample of (N, C, ...) to mean 0 and variance 1.

    Args:
        num_groups: in how many groups the channels are.
        num_channels: C.
        eps: added to the variance.
        affine: whether there are parameters of shape (C,): ``weight``, at first ones, and ``bias``, at first zeros.
        device, dtype: of the parameters.
        bias: whether there is a ``bias``.

    Raises:
        ValueError: the groups do not divide the channels.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-05,
        affine: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_groups={num_groups} must divide num_channels={num_channels}")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_parameters((num_channels,), affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """Divides by a power of the mean square of ``size`` neighbouring channels; see ``functional``."""

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
