"""The profiler (``torch.autograd.profiler``): ``profile``, ``record_function``, and what they record."""

from .events import FunctionEvent, Interval, MemoryEvent
from .merging import merge_traces
from .ranges import record_function
from .recorder import profile
from .table import EventList, FunctionEventAvg

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "MemoryEvent",
    "merge_traces",
    "profile",
    "record_function",
]
