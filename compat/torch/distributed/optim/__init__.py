"""Optimizers of parameters on many workers (``torch.distributed.optim``)."""

from .....autograd_dist import DistributedOptimizer as DistributedOptimizer
from .....collective.optim import PostLocalSGDOptimizer as PostLocalSGDOptimizer
from .....collective.optim import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
