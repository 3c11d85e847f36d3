"""Decorators for functions that others call (``torch.distributed.rpc.functions``)."""

from .calling import async_execution

__all__ = ["async_execution"]
