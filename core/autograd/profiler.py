"""``telegrad.profiler`` under its older name."""

from ..profiler import profile, record_function

__all__ = ["profile", "record_function"]
