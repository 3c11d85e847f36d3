"""Tools for tests of programs and of extensions: workers in one process, lanes, orders of messages, leaks, counts of costs."""

from .check_lane import check_lane
from .cluster import cluster, in_process_cluster
from .counts import Counts, count, count_system_calls
from .leaks import Watch
from .schedules import Mesh, every_order, replayable, seeds

__all__ = [
    "Counts",
    "Mesh",
    "Watch",
    "check_lane",
    "cluster",
    "count",
    "count_system_calls",
    "every_order",
    "in_process_cluster",
    "replayable",
    "seeds",
]
