"""Distributed autograd: gradients through remote calls (``torch.distributed.autograd``), and optimizers for them."""

from .api import context, get_gradients
from .backward import backward
from .optimizer import DistributedOptimizer

__all__ = ["DistributedOptimizer", "backward", "context", "get_gradients"]
