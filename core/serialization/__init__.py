"""``save`` and ``load``: checkpoints of nested Python objects with tensors."""

from .files import CheckpointError, load, save

__all__ = ["CheckpointError", "load", "save"]
