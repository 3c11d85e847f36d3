"""Start of a job's workers, their supervision, and the summary that names the root cause of a failure."""

from .errors import LogDirError, ProcessException, ProcessExitedException, ProcessRaisedException
from .job import JobResult, WorkerResult, launch
from .local_cluster import LocalCluster, local_cluster
from .place import launched
from .spawn import ProcessContext, spawn
from .spec import JobSpec

__all__ = [
    "spawn",
    "ProcessContext",
    "LocalCluster",
    "local_cluster",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "launch",
    "launched",
    "LogDirError",
    "JobSpec",
    "JobResult",
    "WorkerResult",
]
