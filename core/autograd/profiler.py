"""``telegrad.profiler`` under its name in PyTorch."""

from ..profiler import profile, record_function

__all__ = ["profile", "record_function"]
