"""PyTorch's names, by PyTorch's paths: ``import telegrad.compat.torch as torch``.

What has the same name here as in PyTorch is the same object under both. The modules of this package add what PyTorch has
elsewhere, or under another name.
"""

import importlib
from typing import Any

import telegrad

from ...core.import_aliases import ImportAliases
from .compiling import compile as compile  # noqa: A004 - PyTorch's name
from .settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from .settings import get_default_device as get_default_device
from .settings import get_float32_matmul_precision as get_float32_matmul_precision
from .settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from .settings import set_default_device as set_default_device
from .settings import set_float32_matmul_precision as set_float32_matmul_precision
from .settings import typename as typename
from .settings import use_deterministic_algorithms as use_deterministic_algorithms

PLACES = {
    "amp": "amp",
    "amp.autocast_mode": "amp.autocast",
    "autograd": "core.autograd",
    "autograd.profiler": "core.profiler",
    "distributed.algorithms.ddp_comm_hooks.default_hooks": "collective.parallel.comm_hooks",
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": "collective.parallel.comm_hooks",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "collective.parallel.comm_hooks",
    "distributed.algorithms.join": "collective",
    "distributed.algorithms.model_averaging.averagers": "collective.optim",
    "distributed.algorithms.model_averaging.hierarchical_model_averager": "collective.optim",
    "distributed.autograd": "autograd_dist",
    "distributed.rpc.api": "compat.torch.distributed.rpc",
    "distributed.rpc.functions": "rpc.functions",
    "distributions": "distributions",
    "fft": "core.fft",
    "func": "func",
    "futures": "core.futures",
    "linalg": "core.linalg",
    "nn": "nn",
    "optim": "optim",
    "optim.swa_utils": "compat.torch.averaging",
    "profiler": "core.profiler",
    "signal": "core.signal",
    "sparse": "core.sparse",
    "special": "core.special",
    "utils.data": "data",
}
"""Modules of PyTorch, and those that they are here."""

OWN = ("accelerator", "backends", "cuda", "distributed", "jit", "multiprocessing", "utils")

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
