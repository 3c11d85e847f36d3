"""Names for extenders: functions that ``compile`` records as one call, classes of their arguments, and kinds of modules."""

from .functional.normalization import move_running
from .functional.recurrence import Steps, Weights
from .hooks import has_hooks
from .module_kinds import is_module, is_module_of_torch
from .utils.clipping import clip_norm, clip_values

__all__ = [
    "Steps",
    "Weights",
    "clip_norm",
    "clip_values",
    "has_hooks",
    "is_module",
    "is_module_of_torch",
    "move_running",
]
