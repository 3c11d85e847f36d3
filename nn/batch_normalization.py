"""Normalization layers with running statistics: ``BatchNorm1d`` to ``BatchNorm3d``, ``InstanceNorm1d`` to ``3d``."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import ClassVar

import numpy.typing as npt

from ..core import no_grad, ones, tensor, zeros
from ..core.extend import Tensor
from . import functional as F
from .normalization import _Affine


class _WithRunningStats(_Affine):
    """Layer that may keep running means and variances in buffers, for evaluation."""

    _ndims: ClassVar[tuple[int, ...]]
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0) if tracked else None)
        self._add_parameters((num_features,), affine, affine and bias, device, dtype)

    def reset_running_stats(self) -> None:
        """Set the running means to 0 and the running variances to 1."""
        for buffer, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
            if buffer is not None:
                buffer.fill_(value)

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros, and reset the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, input: Tensor) -> None:
        if input.ndim not in self._ndims:
            wanted = " or ".join(map(str, self._ndims))
            raise ValueError(f"{type(self).__name__} needs an input of {wanted} dimensions, not of shape {input.shape}")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_WithRunningStats):
    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        self._check(input)
        follow = self.training and self.track_running_stats
        use_input = self.training or self.running_mean is None
        kept = (self.running_mean, self.running_var) if not use_input or follow else (None, None)
        momentum = self._count_step() if follow else 0.0
        return F.batch_norm(input, *kept, self.weight, self.bias, use_input, momentum, self.eps)

    @no_grad()
    def _count_step(self) -> float:
        count = self.num_batches_tracked
        if count is not None:
            count.add_(1)
        if self.momentum is None:
            return 1.0 / float(count) if count is not None else 0.0
        return self.momentum


class BatchNorm1d(_BatchNorm):
    """Normalization of each channel of (N, C) or (N, C, L) over the batch (Ioffe and Szegedy 2015).

    Args:
        num_features, eps, momentum, affine, track_running_stats, device, dtype, bias: as for ``BatchNorm2d``.

    Raises:
        ValueError: (of a call) the input has another number of dimensions or channels, or one value for each channel.
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalization of each channel of (N, C, H, W) over the batch (Ioffe and Szegedy 2015).

    ``(input - mean) / sqrt(var + eps) * weight + bias``, with the running statistics in evaluation mode, if it has
    them.

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: share of the new value in the running statistics; ``None`` for the mean of all steps.
        affine: whether there are parameters of shape (C,): ``weight``, initially ones, and ``bias``, initially zeros.
        track_running_stats: whether there are the buffers ``running_mean``, ``running_var``, ``num_batches_tracked``.
        device, dtype: of the parameters and buffers.
        bias: whether there is a ``bias``.

    Raises:
        ValueError: (of a call) the input has another number of dimensions or channels, or one value for each channel.
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalization of each channel of (N, C, D, H, W) over the batch (Ioffe and Szegedy 2015).

    Args:
        num_features, eps, momentum, affine, track_running_stats, device, dtype, bias: as for ``BatchNorm2d``.

    Raises:
        ValueError: (of a call) the input has another number of dimensions or channels, or one value for each channel.
    """

    _ndims = (5,)


class _InstanceNorm(_WithRunningStats):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        self._check(input)
        x = input if input.ndim == self._ndims[1] else input.unsqueeze(0)
        if x.shape[1] != self.num_features:
            raise ValueError(f"{type(self).__name__} of {self.num_features} features got an input of {input.shape}")
        use_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        result = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, use_input, momentum, self.eps
        )
        return result if x is input else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalization of each channel of each sample of (N, C, L) or (C, L) (Ulyanov et al. 2016).

    Args:
        num_features, eps, momentum, affine, track_running_stats, device, dtype, bias: as for ``InstanceNorm2d``.

    Raises:
        ValueError: (of a call) the input has another number of dimensions or channels, or one value for each channel.
    """

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalization of each channel of each sample of (N, C, H, W) or (C, H, W) (Ulyanov et al. 2016).

    ``(input - mean) / sqrt(var + eps) * weight + bias``, with the running statistics in evaluation mode, if it has
    them.

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: share of the new value in the running statistics.
        affine: whether there are parameters of shape (C,): ``weight``, initially ones, and ``bias``, initially zeros.
        track_running_stats: whether there are the buffers ``running_mean``, ``running_var``, ``num_batches_tracked``.
        device, dtype: of the parameters and buffers.
        bias: whether there is a ``bias``.

    Raises:
        ValueError: (of a call) the input has another number of dimensions or channels, or one value for each channel.
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalization of each channel of each sample of (N, C, D, H, W) or (C, D, H, W) (Ulyanov et al. 2016).

    Args:
        num_features, eps, momentum, affine, track_running_stats, device, dtype, bias: as for ``InstanceNorm2d``.

    Raises:
        ValueError: (of a call) the input has another number of dimensions or channels, or one value for each channel.
    """

    _ndims = (4, 5)
