"""Decorators for functions that other workers call (``torch.distributed.rpc.functions``)."""

from .calling import async_execution

__all__ = ["async_execution"]
