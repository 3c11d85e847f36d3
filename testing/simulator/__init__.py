"""Real agents and their drivers on one thread, with a simulated clock and network, and faults drawn from a seed.

Nothing of an agent is replaced but its clock, its threads and its lanes. The same seed gives the same run.
"""

from .faults import FaultPlan
from .simulation import Result, Simulation, Violation
from .worker import Worker, current_worker
from .workload import Workload

__all__ = ["FaultPlan", "Result", "Simulation", "Violation", "Worker", "Workload", "current_worker"]
