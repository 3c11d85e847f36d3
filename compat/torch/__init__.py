"""PyTorch's names, by PyTorch's paths: ``import telegrad.compat.torch as torch``.

What has the same name here as in PyTorch is the same object under both. The modules of this package add what PyTorch has
elsewhere, or under another name.
"""

import importlib
from typing import Any

import telegrad

from ...base.import_aliases import ImportAliases
from .compiling import compile as compile  # noqa: A004 - PyTorch's name
from .places import PLACES
from .settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from .settings import get_default_device as get_default_device
from .settings import get_float32_matmul_precision as get_float32_matmul_precision
from .settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from .settings import set_default_device as set_default_device
from .settings import set_float32_matmul_precision as set_float32_matmul_precision
from .settings import typename as typename
from .settings import use_deterministic_algorithms as use_deterministic_algorithms

OWN = ("accelerator", "backends", "distributed", "jit", "multiprocessing", "utils")

ImportAliases(__name__, PLACES).install()


def __getattr__(name: str) -> Any:
    if name in PLACES or name in OWN:
        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    if name.endswith("_") and hasattr(telegrad.Tensor, name):
        return getattr(telegrad.Tensor, name)  # the in-place functions, as torch.relu_
    try:
        return getattr(telegrad, name)
    except AttributeError:
        raise AttributeError(
            f"telegrad has nothing for torch.{name}; docs/migrating.md lists what is left out, and what to use instead"
        ) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *OWN, *dir(telegrad), *(name for name in PLACES if "." not in name)})
