"""The profiler (``torch.autograd.profiler``): ``profile``, ``record_function``, and what they record."""

from .events import FunctionEvent, Interval, MemoryEvent
from .ranges import record_function
from .recorder import profile
from .table import EventList, FunctionEventAvg

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "MemoryEvent",
    "profile",
    "record_function",
]
