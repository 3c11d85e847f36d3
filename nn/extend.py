"""Names for extenders: functions that ``compile`` records as one call, classes of their arguments, and kinds of modules."""

from .functional.grid_corners import add_pixels, gather_pixels
from .functional.normalization import move_running
from .functional.recurrence import Steps, Weights
from .hooks import has_hooks
from .module_kinds import is_module, is_module_of_torch
from .utils.clipping import clip_norm, clip_values

__all__ = [
    "Steps",
    "Weights",
    "add_pixels",
    "clip_norm",
    "clip_values",
    "gather_pixels",
    "has_hooks",
    "is_module",
    "is_module_of_torch",
    "move_running",
]
