"""Ray: each worker is an actor with one core, on a machine of the Ray cluster that is at hand, or of one made for the job."""

import os
import shlex
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from ..engines.log import log_folder
from ..nodes.options import NODES_TIMEOUT
from ..progress import report
from ..restarts.rules import RestartPolicy
from ..run_command import INTERRUPTED_CODE
from ..spec import JobSpec
from .job import Cluster, ClusterJob

if TYPE_CHECKING:
    from .ray_job import RayJob


class RayCluster(Cluster):
    """Machines of a Ray cluster."""

    policies = (RestartPolicy.NEVER,)

    def describe(self, job: ClusterJob) -> str:
        spec = _spec(job)
        where = os.environ.get("RAY_ADDRESS") or "the cluster that runs here, else a new one on this machine"
        first = f"{len(spec.workers)} actors of one core each; Ray: {where}"
        return "\n".join([first, *(f"{worker}: {shlex.join(spec.command)}" for worker in spec.workers)])

    def run(self, job: ClusterJob) -> NoReturn:
        from .ray_job import RayJob  # jobs elsewhere do without it

        spec = _spec(job)
        ray = _connected(len(spec.workers))
        spec = replace(spec, log_dir=log_folder(spec))
        sys.exit(_run(RayJob(ray, spec, os.getcwd(), job.timeout or NODES_TIMEOUT), spec))


def _run(ray_job: "RayJob", spec: JobSpec) -> int:
    with closing(ray_job):
        try:
            ray_job.start()
            verdict = ray_job.follow()
        except KeyboardInterrupt:
            ray_job.end("interrupted by SIGINT (2)")
            ray_job.follow()
            report("interrupted by SIGINT (2)")
            return INTERRUPTED_CODE
    if verdict is None:
        report(
            f"{len(spec.workers)} worker{'s' * (len(spec.workers) > 1)} finished; logs, where each ran: {spec.log_dir}/"
        )
        return 0
    _, outcome = verdict
    report("\n".join([f"root cause: {outcome.cause}", *outcome.details]))
    return outcome.exit_code


def _spec(job: ClusterJob) -> JobSpec:
    job.refuse("ray", "Ray knows the machines", "nnodes", "endpoint", "image", "hosts")
    if job.program.get("pin"):
        raise ValueError("--pin is not for --engine ray, which shares the cores out itself")
    return JobSpec(job.script, job.args, job.workers, variables=job.variables, **job.program)


def _connected(workers: int) -> Any:
    """Return the package ``ray``, connected to the cluster at hand, or to a new one with a core for each worker.

    Args:
        workers: how many there are.

    Raises:
        ValueError: Ray is not installed, or its cluster does not answer.
    """
    try:
        import ray
    except ImportError as error:
        raise ValueError(f"--engine ray needs Ray, which is not here ({error}): pip install ray") from None
    quiet = {"log_to_driver": False, "logging_level": "warning"}
    try:
        ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), **quiet)
    except ConnectionError as error:
        if "RAY_ADDRESS" in os.environ:
            raise ValueError(
                f"Ray does not answer at RAY_ADDRESS={os.environ['RAY_ADDRESS']} ({error}); is it up, and have you set its "
                f"RAY_AUTH_TOKEN, if it has one?"
            ) from error
        ray.init(num_cpus=max(workers, os.cpu_count() or 1), include_dashboard=False, **quiet)
    return ray
