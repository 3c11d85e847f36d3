"""Floor 4: starts a job's workers, supervises them, shows what they write, and tells why they failed."""

from .errors import LogDirError, ProcessException, ProcessExitedException, ProcessRaisedException
from .job import JobResult, WorkerResult, launch
from .spawn import ProcessContext, spawn
from .spec import JobSpec

__all__ = [
    "spawn",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "launch",
    "LogDirError",
    "JobSpec",
    "JobResult",
    "WorkerResult",
]
