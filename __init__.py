"""Telegrad: distributed training with RPC and remote references, without PyTorch."""

__version__ = "0.1.0"
