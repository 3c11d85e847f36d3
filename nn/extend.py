"""Names for extenders: functions that ``compile`` records as one call, and classes of their arguments."""

from .functional.normalization import move_running
from .functional.recurrence import Steps, Weights
from .utils.clipping import clip_norm, clip_values

__all__ = ["Steps", "Weights", "clip_norm", "clip_values", "move_running"]
