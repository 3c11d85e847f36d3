"""``save`` and ``load``: checkpoints of nested Python objects with tensors."""

from ...base.errors import CheckpointError
from .files import load, save

__all__ = ["CheckpointError", "load", "save"]
