"""``weight_norm`` in its old form: parameters ``<name>_g`` and ``<name>_v``, and a hook that computes the weight."""

from __future__ import annotations

from ...core import linalg
from ...core.extend import Tensor
from ..module import Module
from ..parameter import Parameter
from .weight_hooks import WeightHook, plain_weight, removed


def norm_except_dim(v: Tensor, dim: int = 0) -> Tensor:
    """Return the norms of the slices of ``v`` along ``dim``, which is kept; -1 for the norm of the whole."""
    if dim == -1:
        return linalg.vector_norm(v)
    return linalg.vector_norm(v, 2, tuple(axis for axis in range(v.ndim) if axis != dim % v.ndim), True)


class _WeightNormHook(WeightHook):
    kind = "weight_norm"
    parts = ("_g", "_v")

    def __init__(self, name: str, dim: int) -> None:
        super().__init__(name)
        self.dim = dim

    def compute(self, module: Module, improve: bool = False) -> Tensor:
        """Return the weight with its norms and directions."""
        g, v = (getattr(module, self.name + part) for part in self.parts)
        return v * (g / norm_except_dim(v, self.dim))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the norms ``<name>_g`` and the directions ``<name>_v`` of a weight separately (Salimans and Kingma 2016).

    New programs use ``parametrizations.weight_norm``.

    Args:
        module: module with the weight.
        name: name of the weight.
        dim: dimension of the slices that have a norm each; ``None`` for one norm of the whole weight.

    Returns:
        ``module``.

    Raises:
        AttributeError: there is no such parameter.
        ValueError: it has ``weight_norm`` already.
    """
    hook = _WeightNormHook(name, -1 if dim is None else dim)
    weight = plain_weight(module, hook).detach()
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.clone()))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight with ``weight_norm`` a plain parameter again, with its present value.

    Args:
        module: module with the weight.
        name: name of the weight.

    Returns:
        ``module``.

    Raises:
        ValueError: it has no ``weight_norm``.
    """
    return removed(module, name, _WeightNormHook)
