"""Distributed autograd: gradients through remote calls (``torch.distributed.autograd``), and optimizers for them."""

from .api import backward, backward_async, context, get_gradients
from .drawing import draw
from .optimizer import DistributedOptimizer

__all__ = ["DistributedOptimizer", "backward", "backward_async", "context", "draw", "get_gradients"]
