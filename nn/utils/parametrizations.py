"""Parametrizations of weights: ``orthogonal``, ``weight_norm`` and ``spectral_norm``."""

from __future__ import annotations

import numpy as np

from ...core import no_grad
from ...core.extend import Tensor
from ..convolution import _ConvTranspose
from ..module import Module
from . import parametrize
from .orthogonal import orthogonal as orthogonal
from .weight_norm import norm_except_dim


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """Return the weight with these norms and directions."""
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the norms and directions of a weight."""
        return norm_except_dim(weight, self.dim), weight


class _SpectralNorm(Module):
    """Division of a weight by an estimate of its largest singular value, which each training step improves."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if n_power_iterations < 1:
            raise ValueError(f"n_power_iterations must be positive, and you gave {n_power_iterations}")
        self.n_power_iterations = n_power_iterations
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            matrix = self._matrix(weight.detach())
            for name, length in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
                start = Tensor(np.empty(length, weight.dtype)).normal_()
                self.register_buffer(name, self._unit(start))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        order = [self.dim, *(axis for axis in range(weight.ndim) if axis != self.dim)]
        return weight.permute(*order).reshape(weight.shape[self.dim], -1)

    def _unit(self, vector: Tensor) -> Tensor:
        return vector / (vector * vector).sum().sqrt().clamp(min=self.eps)

    @no_grad()
    def _iterate(self, matrix: Tensor, steps: int) -> None:
        for _ in range(steps):
            self._u.copy_(self._unit(matrix @ self._v))
            self._v.copy_(self._unit(matrix.mT @ self._u))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weight divided by the estimate."""
        if weight.ndim == 1:
            return self._unit(weight)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # Copies: the next step changes the buffers, which this one's graph keeps.
        return weight / (self._u.clone() @ (matrix @ self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the weight itself: of all that are divided to ``value``, the nearest."""
        return value


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the norms and the directions of a weight separately: ``weight = g * v / norm(v)`` (Salimans and Kingma 2016).

    They are ``parametrizations.<name>.original0`` and ``original1``.

    Args:
        module: module with the weight.
        name: name of the weight.
        dim: dimension of the slices that have a norm each; ``None`` for one norm of the whole weight.

    Returns:
        ``module``.

    Raises:
        ValueError: there is no such parameter.
    """
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, estimated by power iteration (Miyato et al. 2018).

    Args:
        module: module with the weight.
        name: name of the weight.
        n_power_iterations: steps each time the weight is read while training.
        eps: smallest norm by which a vector is divided.
        dim: dimension of the outputs; if ``None`` 0, or 1 for transposed convolutions.

    Returns:
        ``module``.

    Raises:
        ValueError: there is no such parameter, or ``n_power_iterations`` is not positive.
    """
    if dim is None:
        dim = 1 if isinstance(module, _ConvTranspose) else 0
    weight = module.get_parameter(name)
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
