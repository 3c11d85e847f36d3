"""Names for extenders: functions that ``compile`` records as one call."""

from .utils.clipping import clip_norm, clip_values

__all__ = ["clip_norm", "clip_values"]
