"""Parametrizations: parameters that are computed, each time they are read, from other tensors that are learned.

The module keeps them in a module of its own, ``parametrizations``, under the parameter's name. The name then is no
parameter any more; ``Registry`` finds it there. So a parametrized module keeps its class, and can be copied and
pickled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...core import no_grad
from ...core.extend import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

_cache: ContextVar[dict[int, Any] | None] = ContextVar("telegrad_parametrizations", default=None)


class ParametrizationList(ModuleList):
    """Modules that compute one parameter, one after the other, and the learned tensors that the first one takes.

    These are the parameter ``original``, or ``original0``, ``original1``, ... if its ``right_inverse`` returns several.

    Args:
        modules: in the order in which they are called.
        value: the parameter's present value.
    """

    def __init__(self, modules: list[Module], value: Tensor) -> None:
        super().__init__(modules)
        self.ntensors = 1
        self._several = False
        self._keep(self._start(value), isinstance(value, Parameter) and not value.requires_grad)

    def _start(self, value: Any) -> Any:
        # A map without an inverse starts at what it makes of the present value.
        try:
            return self._inverted(value)
        except NotImplementedError:
            return value

    def _inverted(self, value: Any) -> Any:
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    value = module.right_inverse(value)
        return value

    def _keep(self, value: Any, frozen: bool) -> None:
        self._several = isinstance(value, (tuple, list))
        values = list(value) if self._several else [value]
        self.ntensors = len(values)
        for name, tensor in zip(self.names(), values):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"right_inverse must return tensors, not {type(tensor).__name__}")
            self.register_parameter(name, Parameter(tensor.detach().clone(), not frozen))

    def names(self) -> list[str]:
        """Return the names of the learned tensors."""
        return [f"original{number}" for number in range(self.ntensors)] if self._several else ["original"]

    def right_inverse(self, value: Tensor) -> None:
        """Set the learned tensors so that ``value`` is computed from them.

        Raises:
            TypeError: a ``right_inverse`` returns something else than tensors.
            ValueError: a shape or the number of tensors would change.
        """
        inverted = self._inverted(value)
        values = list(inverted) if self._several else [inverted]
        if len(values) != self.ntensors:
            raise ValueError(f"right_inverse must return {self.ntensors} tensors, as before, and gave {len(values)}")
        with no_grad():
            for name, tensor in zip(self.names(), values):
                own = getattr(self, name)
                if own.shape != tensor.shape:
                    raise ValueError(
                        f"the value does not fit: {name} has shape {own.shape}, and would get {tensor.shape}"
                    )
                own.copy_(tensor)

    def forward(self) -> Tensor:
        """Return the parameter's value."""
        values = [getattr(self, name) for name in self.names()]
        first, *others = self
        result = first(*values)
        for module in others:
            result = module(result)
        return result

    def value(self) -> Tensor:
        """Return the parameter's value, computed once within ``cached``."""
        cache = _cache.get()
        if cache is None:
            return self()
        if id(self) not in cache:
            cache[id(self)] = self()
        return cache[id(self)]


@contextmanager
def cached() -> Iterator[None]:
    """Return a context in which each parametrized value is computed once, for modules that are called several times a step."""
    token = _cache.set({} if _cache.get() is None else _cache.get())
    try:
        yield
    finally:
        _cache.reset(token)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Replace a parameter by the value that ``parametrization`` computes from learned tensors.

    A second one of the same parameter takes the value of the first.

    Args:
        module: module with the parameter.
        tensor_name: name of the parameter.
        parametrization: module whose ``forward`` takes the learned tensor, or the several that its ``right_inverse``,
            if it has one, makes of a value.
        unsafe: whether the value may have another shape or dtype than the parameter.

    Returns:
        ``module``.

    Raises:
        ValueError: the shape or dtype would change, or there is no such parameter.
    """
    had = is_parametrized(module, tensor_name)
    if not had and tensor_name not in module._parameters:
        raise ValueError(f"{type(module).__name__} has no parameter {tensor_name!r} that could be parametrized")
    before = getattr(module, tensor_name)
    chain = [*module._modules["parametrizations"][tensor_name], parametrization] if had else [parametrization]  # type: ignore[index]
    made = ParametrizationList(chain, before)
    with no_grad():
        after = made()
    if not unsafe and (after.shape != before.shape or after.dtype != before.dtype):
        raise ValueError(
            f"the parametrization makes {after.dtype} {after.shape} of {tensor_name!r}, which is {before.dtype} "
            f"{before.shape}; pass unsafe=True if that is meant"
        )
    if not had:
        del module._parameters[tensor_name]
        if "parametrizations" not in module._modules:
            module.register_module("parametrizations", ModuleDict())
    module._modules["parametrizations"][tensor_name] = made  # type: ignore[index]
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrizations, or one of that name."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized name a plain parameter again.

    Args:
        module: module with the parameter.
        tensor_name: name of the parameter.
        leave_parametrized: whether the parameter gets the computed value instead of the learned tensor.

    Returns:
        ``module``.

    Raises:
        ValueError: it is not parametrized, or is computed from several tensors and ``leave_parametrized`` is false.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{type(module).__name__} has no parametrized {tensor_name!r}")
    found: Any = module._modules["parametrizations"]
    chain: ParametrizationList = found[tensor_name]
    if not leave_parametrized and chain._several:
        raise ValueError(f"{tensor_name!r} is computed from several tensors; pass leave_parametrized=True")
    with no_grad():
        value = chain() if leave_parametrized else chain.original
    trained = any(parameter.requires_grad for parameter in chain.parameters(recurse=False))
    del found[tensor_name]
    if not len(found):
        del module._modules["parametrizations"]
    module.register_parameter(tensor_name, Parameter(value.detach().clone(), trained))
    return module
