"""``weight_norm`` in its first form: parameters ``<name>_g`` and ``<name>_v``, and a hook that makes the weight of them."""

from __future__ import annotations

from typing import Any

from ...core import linalg
from ...core.extend import Tensor
from ..module import Module
from ..parameter import Parameter


def norm_except_dim(v: Tensor, dim: int = 0) -> Tensor:
    """The lengths of the slices of ``v`` along ``dim``, which is kept; -1 for the length of all."""
    if dim == -1:
        return linalg.vector_norm(v)
    return linalg.vector_norm(v, 2, tuple(axis for axis in range(v.ndim) if axis != dim % v.ndim), True)


class _WeightNormHook:
    """Before each call, sets the weight anew; an object, so that ``remove_weight_norm`` finds it and pickle takes it."""

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    def compute(self, module: Module) -> Tensor:
        """The weight, from its lengths and directions."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except_dim(v, self.dim))

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the lengths ``<name>_g`` and the directions ``<name>_v`` of a weight's slices along ``dim`` apart.

    ``None`` for the length of the whole weight. New programs use ``parametrizations.weight_norm``.

    Raises:
        AttributeError: there is no such parameter.
        ValueError: it has ``weight_norm`` already.
    """
    if _key_of(module, name) is not None:
        raise ValueError(f"{name!r} of {type(module).__name__} has weight_norm already")
    hook = _WeightNormHook(name, -1 if dim is None else dim)
    weight = module.get_parameter(name)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight.detach(), hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach().clone()))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight with ``weight_norm`` a plain parameter again, of the value that it has.

    Raises:
        ValueError: it has no ``weight_norm``.
    """
    key = _key_of(module, name)
    if key is None or module._hooks is None:
        raise ValueError(f"{name!r} of {type(module).__name__} has no weight_norm")
    hook, _ = module._hooks.before.pop(key)
    weight = hook.compute(module).detach()
    delattr(module, name)
    for part in ("_g", "_v"):
        delattr(module, name + part)
    module.register_parameter(name, Parameter(weight))
    return module


def _key_of(module: Module, name: str) -> int | None:
    hooks = {} if module._hooks is None else module._hooks.before
    found = (key for key, (hook, _) in hooks.items() if isinstance(hook, _WeightNormHook) and hook.name == name)
    return next(found, None)
