"""Telegrad: distributed training with RPC and remote references, without PyTorch."""

from . import autograd_dist, rpc, rref

__version__ = "0.1.0"
