"""Optimizers of parameters on many workers (``torch.distributed.optim``)."""

from ....autograd_dist import DistributedOptimizer as DistributedOptimizer

__all__ = ["DistributedOptimizer"]
