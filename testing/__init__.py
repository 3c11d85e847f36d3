"""Tools for tests of programs and of extensions: workers in one process, lanes, orders of messages, leaks."""

from .check_lane import check_lane
from .cluster import in_process_cluster
from .leaks import Watch
from .schedules import Mesh, every_order, replayable, seeds

__all__ = ["Mesh", "Watch", "check_lane", "every_order", "in_process_cluster", "replayable", "seeds"]
