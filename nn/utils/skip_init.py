"""``skip_init``: modules whose parameters are not filled, because a checkpoint will be loaded into them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ...core.extend import TensorFunctionMode
from ..module import Module

M = TypeVar("M", bound=Module)

_FILLS = {
    *("bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "geometric_"),
    *("log_normal_", "normal_", "random_", "uniform_", "zero_"),
}


class _WithoutFills(TensorFunctionMode):
    def __tensor_function__(
        self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return args[0] if func.__name__ in _FILLS else func(*args, **kwargs)


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """Return ``module_cls(*args, **kwargs)`` with parameters of chance, without the time that filling them takes.

    In-place fills do nothing while the module is made.

    Args:
        module_cls: class of modules that takes ``device``.
        args: of the class.
        kwargs: of the class.

    Raises:
        RuntimeError: ``module_cls`` is no class of modules, or does not take ``device``, as in PyTorch.

    Example:
        >>> from telegrad import nn
        >>> print(nn.utils.skip_init(nn.Linear, 5, 1).weight.shape)
        (1, 5)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"skip_init() takes a class of modules, and you gave {module_cls!r}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"{module_cls.__name__} must take a parameter device for skip_init()")
    with _WithoutFills():
        return module_cls(*args, **kwargs)
