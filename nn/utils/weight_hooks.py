"""Base of ``weight_norm`` and ``spectral_norm`` in their old form: a hook that computes a weight from other tensors."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor
from ..module import Module
from ..parameter import Parameter


class WeightHook:
    """Hook that sets the weight ``name`` before each call. It is an object, so that it can be found and pickled.

    Attributes:
        kind: name of the public function.
        parts: endings of the names of the tensors that the weight is computed from.
    """

    kind: str
    parts: tuple[str, ...]

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Module, improve: bool) -> Tensor:
        """Return the weight; with ``improve``, first improve its estimate, if there is one."""
        raise NotImplementedError(f"{type(self).__name__} must define compute(module, improve)")

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute(module, module.training))


def plain_weight(module: Module, hook: WeightHook) -> Parameter:
    """Return the parameter that ``hook`` is for.

    Raises:
        AttributeError: there is no such parameter.
        ValueError: it has a hook of this kind already.
    """
    if _key_of(module, hook.name, type(hook)) is not None:
        raise ValueError(f"{hook.name!r} of {type(module).__name__} has {hook.kind} already")
    return module.get_parameter(hook.name)


def removed(module: Module, name: str, kind: type[WeightHook]) -> Module:
    """Make a weight a plain parameter again, with its present value; return the module.

    Args:
        module: module with the weight.
        name: name of the weight.
        kind: class of the hook that is removed.

    Raises:
        ValueError: it has no hook of this kind.
    """
    key = _key_of(module, name, kind)
    if key is None or module._hooks is None:
        raise ValueError(f"{name!r} of {type(module).__name__} has no {kind.kind}")
    hook, _ = module._hooks.before.pop(key)
    weight = hook.compute(module, False).detach()
    for part in ("", *hook.parts):
        delattr(module, name + part)
    module.register_parameter(name, Parameter(weight))
    return module


def _key_of(module: Module, name: str, kind: type[WeightHook]) -> int | None:
    hooks = {} if module._hooks is None else module._hooks.before
    return next((key for key, (hook, _) in hooks.items() if isinstance(hook, kind) and hook.name == name), None)
