"""Telegrad: distributed training with RPC and remote references, without PyTorch.

``import telegrad as tg``: tensors and their operations are here, everything else in packages: ``tg.nn``, ``tg.optim``,
``tg.data``, ``tg.autograd``, ``tg.futures``, ``tg.rpc``, ``tg.autograd_dist``, ``tg.launcher``. A package is imported when
it is first used, so that a program pays only for what it needs (``core``, which has the tensors, needs NumPy, ``rpc`` gRPC).
"""

from typing import TYPE_CHECKING

from .base.import_aliases import ImportAliases
from .base.late_imports import add_names, late_imports

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import amp as amp
    from . import autograd_dist as autograd_dist
    from . import capture as capture
    from . import checkpoint as checkpoint
    from . import collective as collective
    from . import data as data
    from . import distributions as distributions
    from . import func as func
    from . import interop as interop
    from . import launcher as launcher
    from . import nn as nn
    from . import optim as optim
    from . import pipelining as pipelining
    from . import rpc as rpc
    from . import rref as rref
    from .amp import autocast as autocast
    from .amp import autocast_decrement_nesting as autocast_decrement_nesting
    from .amp import autocast_increment_nesting as autocast_increment_nesting
    from .amp import clear_autocast_cache as clear_autocast_cache
    from .amp import get_autocast_cpu_dtype as get_autocast_cpu_dtype
    from .amp import get_autocast_dtype as get_autocast_dtype
    from .amp import is_autocast_available as is_autocast_available
    from .amp import is_autocast_cache_enabled as is_autocast_cache_enabled
    from .amp import is_autocast_cpu_enabled as is_autocast_cpu_enabled
    from .amp import is_autocast_enabled as is_autocast_enabled
    from .amp import set_autocast_cache_enabled as set_autocast_cache_enabled
    from .amp import set_autocast_cpu_dtype as set_autocast_cpu_dtype
    from .amp import set_autocast_cpu_enabled as set_autocast_cpu_enabled
    from .amp import set_autocast_dtype as set_autocast_dtype
    from .amp import set_autocast_enabled as set_autocast_enabled
    from .autograd_dist import DistributedOptimizer as DistributedOptimizer
    from .base import allocator as allocator
    from .base import errors as errors
    from .capture import compile as compile  # noqa: A004 - PyTorch's name
    from .capture import load_plan as load_plan
    from .core import Function as Function
    from .core import Tensor as Tensor
    from .core import autograd as autograd
    from .core import cuda as cuda
    from .core import fft as fft
    from .core import futures as futures
    from .core import linalg as linalg
    from .core import masked as masked
    from .core import profiler as profiler
    from .core import signal as signal
    from .core import sparse as sparse
    from .core import special as special
    from .core.autograd import enable_grad as enable_grad
    from .core.autograd import inference_mode as inference_mode
    from .core.autograd import is_grad_enabled as is_grad_enabled
    from .core.autograd import is_inference_mode_enabled as is_inference_mode_enabled
    from .core.autograd import no_grad as no_grad
    from .core.autograd import set_grad_enabled as set_grad_enabled
    from .core.blas_threads import get_num_threads as get_num_threads
    from .core.blas_threads import set_num_threads as set_num_threads
    from .core.functions import *  # noqa: F403
    from .core.recording import log_to as log_to
    from .core.recording import progress as progress
    from .core.serialization import load as load
    from .core.serialization import save as save
    from .func import vmap as vmap
    from .rref import RemoteModule as RemoteModule
    from .rref import RRef as RRef

_CORE = ("autograd", "cuda", "fft", "futures", "linalg", "masked", "profiler", "signal", "sparse", "special")
_ALIASES = {"allocator": "base.allocator", "errors": "base.errors"} | {name: f"core.{name}" for name in _CORE}
# A type checker finds each by a stub of that name (profiler.pyi).
ImportAliases(__name__, {**_ALIASES, "nn.parallel": "collective.parallel"}).install()

# Users look for these in a package below the one that has them, mostly as in PyTorch.
add_names(
    f"{__name__}.rpc",
    {
        "init_rpc": "..agents",
        "init_rpc_async": "..agents",
        "RRef": "..rref",
        "remote": "..rref",
        "value": "..rref",
        "start_grpc": "..agents",
        "_server_process_global_profile": "..profiler_dist",
    },
)
add_names(f"{__name__}.nn", {"parallel": "..collective.parallel"})
add_names(f"{__name__}.collective", {"init_process_group": "..agents"})
add_names(f"{__name__}.launcher", {"migrate_file": "..compat.migrate"})

if not TYPE_CHECKING:  # to type checkers a module with __getattr__ has every name
    _PACKAGES = (
        "amp",
        "autograd_dist",
        "capture",
        "checkpoint",
        "collective",
        "data",
        "distributions",
        "func",
        "interop",
        "launcher",
        "nn",
        "optim",
        "pipelining",
        "rpc",
        "rref",
    )
    # Functions of nn that PyTorch has at the top as well.
    _LAYERS = [
        "bilinear",
        "celu",
        "channel_shuffle",
        "cosine_similarity",
        "group_norm",
        "hardshrink",
        "layer_norm",
        "pairwise_distance",
        "pixel_shuffle",
        "pixel_unshuffle",
        "prelu",
        "rms_norm",
        "rrelu",
        "selu",
        "threshold",
    ]
    _NATIVE = ["grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "native_group_norm"]
    _AUTOCAST = [
        "autocast",
        "autocast_decrement_nesting",
        "autocast_increment_nesting",
        "clear_autocast_cache",
        "get_autocast_cpu_dtype",
        "get_autocast_dtype",
        "is_autocast_available",
        "is_autocast_cache_enabled",
        "is_autocast_cpu_enabled",
        "is_autocast_enabled",
        "set_autocast_cache_enabled",
        "set_autocast_cpu_dtype",
        "set_autocast_cpu_enabled",
        "set_autocast_dtype",
        "set_autocast_enabled",
    ]
    _LATER = {
        **dict.fromkeys(_AUTOCAST, ".amp"),
        **dict.fromkeys(_LAYERS, ".nn.functional"),
        **dict.fromkeys(_NATIVE, ".nn.functional.native"),
        **{name: f".{name}" for name in (*_PACKAGES, *_ALIASES)},
        "fft": ".core",  # its module has a function of that name
        "get_num_threads": ".core.blas_threads",
        "set_num_threads": ".core.blas_threads",
        "log_to": ".core.recording",
        "progress": ".core.recording",
        "load": ".core.serialization",
        "save": ".core.serialization",
        "DistributedOptimizer": ".autograd_dist",
        "compile": ".capture",
        "load_plan": ".capture",
        "RRef": ".rref",
        "vmap": ".func",
        "RemoteModule": ".rref",
    }

    __getattr__ = late_imports(__name__, _LATER, rest=".core")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER, *__getattr__("__all__")})
