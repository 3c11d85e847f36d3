"""Modules on other workers (``torch.distributed.nn``)."""

from .api.remote_module import RemoteModule as RemoteModule

__all__ = ["RemoteModule"]
