"""MPI: ``mpiexec`` starts the workers themselves, on this machine or on those of ``--hosts``.

``init_rpc`` finds the others through MPI. An exception that ends a worker's program ends all. The exit code is mpiexec's.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import typer

from ..engines.log import make_log_dir
from ..environment import WORKER_VARIABLE, helpful_defaults, option_variables, own_environment
from ..progress import counted, listed, report
from ..restarts.rules import RestartPolicy
from ..run_command import finish
from ..spec import JobSpec
from .job import Cluster, ClusterJob, become
from .mpi_job import MpiJob

VERSION_SECONDS = 30.0
WORKER = "telegrad.launcher.clusters.mpi_worker"


class MpiCluster(Cluster):
    """Machines that ``mpiexec`` of MPICH, or of a relative of it, reaches."""

    policies = (RestartPolicy.NEVER,)

    def describe(self, job: ClusterJob) -> str:
        return shlex.join(command(job, "mpiexec"))

    def run(self, job: ClusterJob) -> NoReturn:
        words = command(job, _mpiexec())
        share = -(-len(job.workers) // max(1, len(job.hosts)))
        environment = {**helpful_defaults(share), **own_environment()}
        if job.program.get("no_python"):
            become(words, environment)
        log_dir = make_log_dir(_spec(job))
        report(f"starts {counted(len(job.workers))} with mpiexec: {listed(job.workers)}; logs: {log_dir}/")
        result = MpiJob(job.workers, log_dir, report).run(words, environment)
        if result.exit_code and result.cause is None and result.interrupted_by is None:
            report(f"mpiexec exited with code {result.exit_code}; its messages are in {log_dir}/mpiexec.log")
            raise typer.Exit(result.exit_code)
        finish(result)


def _spec(job: ClusterJob) -> JobSpec:
    """Return the spec of all workers.

    Raises:
        ValueError: an option is not for MPI.
    """
    job.refuse("mpi", "mpiexec knows the machines, name them with --hosts a,b", "nnodes", "endpoint", "image")
    if job.program.get("pin"):
        raise ValueError("--pin is not for --engine mpi, whose workers mpiexec starts")
    return JobSpec(job.script, job.args, job.workers, variables=job.variables, **job.program)


def command(job: ClusterJob, mpiexec: str) -> list[str]:
    """Return the command that starts a job: a part for each worker, because each has variables of its own.

    Args:
        job: the job.
        mpiexec: the program.

    Raises:
        ValueError: an option is not for MPI.
    """
    spec = _spec(job)
    result = [mpiexec, "-prepend-rank"]
    if job.hosts:
        result += ["-hosts", ",".join(job.hosts), "-ppn", str(-(-len(job.workers) // len(job.hosts)))]
    for rank, worker in enumerate(spec.workers):
        own = {"RANK": str(rank), "WORLD_SIZE": str(len(spec.workers)), WORKER_VARIABLE: worker}
        variables = {**option_variables(spec, worker), **own}
        result += [":"] * (rank > 0) + ["-n", "1"]
        result += [word for name, value in variables.items() for word in ("-env", name, value)]
        result += _program(spec)
    return result


def _program(spec: JobSpec) -> list[str]:
    if spec.no_python:
        return spec.command
    interpreter, *program = spec.command
    return [interpreter, "-m", WORKER, *program]


def find_mpiexec() -> str | None:
    """Return the program, that of this environment first: it fits the library that mpi4py uses here; None if there is none."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return shutil.which("mpiexec", path=path)


def _mpiexec() -> str:
    """Return the program.

    Raises:
        ValueError: there is none, or it does not understand our options.
    """
    found = find_mpiexec()
    if found is None:
        raise ValueError("--engine mpi needs mpiexec, and there is none here: pip install mpi4py mpich")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS)
    if "Open MPI" in told.stdout or "open-mpi" in told.stdout:
        raise ValueError(
            f"{found} is Open MPI's, and --engine mpi knows the options of MPICH's; start it yourself, `mpiexec -n 4 python "
            f"script.py`: init_rpc finds the others"
        )
    return found
