"""Normalization layers without running statistics: ``LayerNorm``, ``RMSNorm``, ``GroupNorm``, ``LocalResponseNorm``."""
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
    """Layer that may have parameters ``weight``, initially ones, and ``bias``, initially zeros."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_parameters(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: str | None, dtype: npt.DTypeLike | None
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, Parameter(empty(shape, dtype=dtype, device=device)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self._parameters.get("bias") is not None:
            init.zeros_(self._parameters["bias"])  # type: ignore[arg-type]


class LayerNorm(_Affine):
    """``(input - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba et al. 2016).

    Args:
        normalized_shape: lengths of the last dimensions, and the shape of ``weight`` and ``bias``.
        eps: added to the variance.
        elementwise_affine: whether there are parameters: ``weight``, initially ones, and ``bias``, initially zeros.
        bias: whether there is a ``bias``.
        device, dtype: of the parameters.

    Raises:
        ValueError: (of a call) the input's last dimensions are others.
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
        """Return a tensor of the input's shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(_Affine):
    """``input / sqrt(mean(input ** 2) + eps) * weight`` over the last dimensions (Zhang and Sennrich 2019).

    Args:
        normalized_shape: lengths of the last dimensions, and the shape of ``weight``.
        eps: added to the mean square; ``finfo().eps`` if ``None``: the dtype's, but of float32 if that has 16 bits.
        elementwise_affine: whether there is a ``weight``, initially ones.
        device, dtype: of the parameter.

    Raises:
        ValueError: (of a call) the input's last dimensions are others.
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
        """Return a tensor of the input's shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """``(input - mean) / sqrt(var + eps) * weight + bias`` for groups of channels of each sample (Wu and He 2018).

    Args:
        num_groups: number of groups of channels that follow one another.
        num_channels: number of channels C of inputs (N, C, ...).
        eps: added to the variance.
        affine: whether there are parameters of shape (C,): ``weight``, initially ones, and ``bias``, initially zeros.
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
        """Return a tensor of the input's shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """``input / (k + alpha * mean of the squares of size neighbouring channels) ** beta`` (Krizhevsky et al. 2012).

    Args:
        size: number of channels of each mean.
        alpha, beta, k: see the formula.

    Raises:
        ValueError: (of a call) the input has fewer than three dimensions.
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
