"""Start of a job's workers, their supervision, and the summary that names the root cause of a failure."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .errors import LogDirError, ProcessException, ProcessExitedException, ProcessRaisedException
from .job import launch
from .place import launched
from .restarts.rules import RestartPolicy, RestartRules
from .result import JobResult, WorkerResult
from .spawn import ProcessContext, spawn
from .spec import JobSpec

if TYPE_CHECKING:
    from ..compat.migrate import migrate_file as migrate_file
    from .local_workers import LocalCluster, local_cluster
else:
    # They need the agent, which a launcher does not: it starts without gRPC. The package's root adds migrate_file.
    __getattr__ = late_imports(__name__, {"LocalCluster": ".local_workers", "local_cluster": ".local_workers"})


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
    "RestartPolicy",
    "RestartRules",
]
