"""Start of a job's workers, their supervision, and the summary that names the root cause of a failure."""

from typing import TYPE_CHECKING

from .errors import LogDirError, ProcessException, ProcessExitedException, ProcessRaisedException
from .job import JobResult, WorkerResult, launch
from .place import launched
from .spawn import ProcessContext, spawn
from .spec import JobSpec

if TYPE_CHECKING:
    from .local_workers import LocalCluster, local_cluster
else:
    # They need the agent, which a launcher does not: it starts without gRPC.
    _LATER = {"LocalCluster", "local_cluster"}

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(".local_workers", __name__), name)
        return value


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
