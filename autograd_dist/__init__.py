"""Distributed autograd: gradients through remote calls (``torch.distributed.autograd``), and optimizers for them."""

from .api import backward, context, get_gradients
from .optimizer import DistributedOptimizer

__all__ = ["DistributedOptimizer", "backward", "context", "get_gradients"]
