"""The profiler (``torch.autograd.profiler``): ``profile``, ``record_function``, and what they record."""

from typing import TYPE_CHECKING

from ...base.late_imports import late_imports

if TYPE_CHECKING:
    from .events import FunctionEvent, Interval, MemoryEvent
    from .merging import merge_traces
    from .ranges import record_function
    from .recorder import profile
    from .table import EventList, FunctionEventAvg
else:  # each call asks whether it is profiled, by parts of this package; few are
    __getattr__ = late_imports(
        __name__,
        {
            **dict.fromkeys(("FunctionEvent", "Interval", "MemoryEvent"), ".events"),
            "merge_traces": ".merging",
            "record_function": ".ranges",
            "profile": ".recorder",
            **dict.fromkeys(("EventList", "FunctionEventAvg"), ".table"),
        },
    )

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
