"""Telegrad: distributed training with RPC and remote references, without PyTorch.

``import telegrad as tg``: tensors and their operations are here, everything else in the rooms: ``tg.nn``, ``tg.optim``,
``tg.data``, ``tg.autograd``, ``tg.futures``, ``tg.rpc``, ``tg.autograd_dist``, ``tg.launcher``.
"""

from . import autograd_dist, data, launcher, nn, optim, rpc, rref
from .autograd_dist import DistributedOptimizer
from .core import *  # noqa: F403  # the core's face is the package's
from .core import autograd, errors, futures
from .rref import RRef

__version__ = "0.1.0"
