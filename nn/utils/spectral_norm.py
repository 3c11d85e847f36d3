"""``spectral_norm`` in its old form: a parameter ``<name>_orig``, two buffers, and a hook that computes the weight."""

from __future__ import annotations

from ...core import no_grad, randn
from ...core.extend import Tensor
from ..convolution import _ConvTranspose
from ..functional import normalize
from ..module import Module
from .weight_hooks import WeightHook, plain_weight, removed


class _SpectralNormHook(WeightHook):
    kind = "spectral_norm"
    parts = ("_orig", "_u", "_v")

    def __init__(self, name: str, n_power_iterations: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.n_power_iterations = n_power_iterations
        self.eps = eps
        self.dim = dim

    def matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix with a row for each output."""
        return weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)

    def compute(self, module: Module, improve: bool) -> Tensor:
        """Return the weight divided by the estimate of its largest singular value, after improving that."""
        weight, u, v = (getattr(module, self.name + part) for part in self.parts)
        matrix = self.matrix(weight)
        if improve:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(matrix.mT @ u, dim=0, eps=self.eps))
                    u.copy_(normalize(matrix @ v, dim=0, eps=self.eps))
        # Copies: the next step changes the buffers, which this one's graph keeps.
        return weight / (u.clone() @ (matrix @ v.clone()))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, estimated by power iteration (Miyato et al. 2018).

    New programs use ``parametrizations.spectral_norm``.

    Args:
        module: module with the weight.
        name: name of the weight.
        n_power_iterations: steps in each call while training.
        eps: smallest norm by which a vector is divided.
        dim: dimension of the outputs; if ``None`` 0, or 1 for transposed convolutions.

    Returns:
        ``module``.

    Raises:
        AttributeError: there is no such parameter.
        ValueError: it has ``spectral_norm`` already, or the number of iterations is not positive.
    """
    if n_power_iterations < 1:
        raise ValueError(f"n_power_iterations must be positive, and you gave {n_power_iterations}")
    axis = int(isinstance(module, _ConvTranspose)) if dim is None else dim
    hook = _SpectralNormHook(name, n_power_iterations, eps, axis)
    weight = plain_weight(module, hook)
    matrix = hook.matrix(weight.detach())
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    # An ordinary attribute until the first call, as copies and optimizers must not take it for a parameter.
    setattr(module, name, weight.detach())
    for part, length in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
        module.register_buffer(name + part, normalize(randn(length, dtype=weight.dtype), dim=0, eps=eps))
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight with ``spectral_norm`` a plain parameter again, with its present value.

    Args:
        module: module with the weight.
        name: name of the weight.

    Returns:
        ``module``.

    Raises:
        ValueError: it has no ``spectral_norm``.
    """
    return removed(module, name, _SpectralNormHook)
