"""The profiler (``torch.autograd.profiler``): ``profile``, ``record_function``, and what they record."""

from .events import FunctionEvent, MemoryEvent
from .recorder import profile, record_function
from .table import EventList, FunctionEventAvg

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "MemoryEvent", "profile", "record_function"]
