"""Telegrad: distributed training with RPC and remote references, without PyTorch.

``import telegrad as tg``: tensors and their operations are here, everything else in the rooms: ``tg.nn``, ``tg.optim``,
``tg.data``, ``tg.autograd``, ``tg.futures``, ``tg.rpc``, ``tg.autograd_dist``, ``tg.launcher``.
"""

from . import autograd_dist as autograd_dist
from . import data as data
from . import launcher as launcher
from . import nn as nn
from . import optim as optim
from . import rpc as rpc
from . import rref as rref
from .autograd_dist import DistributedOptimizer as DistributedOptimizer
from .core import Function as Function
from .core import Tensor as Tensor
from .core import autograd as autograd
from .core import errors as errors
from .core import futures as futures
from .core.autograd import enable_grad as enable_grad
from .core.autograd import is_grad_enabled as is_grad_enabled
from .core.autograd import no_grad as no_grad
from .core.autograd import set_grad_enabled as set_grad_enabled
from .core.functions import *  # noqa: F403
from .core.serialization import load as load
from .core.serialization import save as save
from .rref import RRef as RRef

__version__ = "0.1.0"
