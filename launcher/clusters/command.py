"""``telegrad run --engine``: what the options say, as a job for the cluster that they name."""

from typing import Any, NoReturn

import typer

from ..errors import NodeError
from ..run_command import JobRequest, refuse, worker_names
from ..spec import parse_variable, role_of
from .job import Cluster, ClusterJob
from .kubernetes import KubernetesCluster
from .mpi import MpiCluster
from .ray import RayCluster
from .slurm import SlurmCluster

ENGINES: dict[str, type[Cluster]] = {
    "mpi": MpiCluster,
    "slurm": SlurmCluster,
    "kubernetes": KubernetesCluster,
    "ray": RayCluster,
}
NOT_FOR_NODES = (
    *("script", "args", "job", "engine", "hosts", "image", "dry_run"),
    *("nnodes", "node_rank", "rdzv_endpoint", "token_file", "host", "listen_host"),
)
"""Parameters of the command that say where the job runs, or what: launchers of single machines do not get them."""


def options_given(context: typer.Context) -> tuple[str, ...]:
    """Return the options of this command line, and of its job file, that the launcher of each machine is to get, too."""
    found: list[str] = []
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params.get(str(parameter.name))
        source = context.get_parameter_source(name)
        if name in NOT_FOR_NODES or value is None or source is None or source.name == "DEFAULT":
            continue
        long = next(name for name in parameter.opts if name.startswith("--"))
        if isinstance(value, bool):
            found.append(long if value else parameter.secondary_opts[0])
        else:
            found += [word for each in (value if isinstance(value, list) else [value]) for word in (long, str(each))]
    return tuple(found)


def run_on_cluster(
    request: JobRequest,
    script: str,
    args: tuple[str, ...],
    options: tuple[str, ...],
    program: dict[str, Any],
    env: list[str],
    dry_run: bool,
) -> NoReturn:
    """Run a job on the engine's machines; print what it starts instead if ``dry_run``.

    Args:
        request: the workers, and the engine.
        script: the program.
        args: its arguments.
        options: what ``options_given`` returned.
        program: further attributes of ``JobSpec``.
        env: variables, as ``--env`` states them.
        dry_run: only print it.
    """
    try:
        cluster = _cluster(request)
        cluster.check_restarts(program["restarts"], str(request.engine))
        for option in ("rank", "own_host", "listen_host"):
            if request.nodes[option] is not None:
                raise ValueError(
                    f"--node-rank, --host and --listen-host are for machines that you start by hand: --engine {request.engine} "
                    f"knows its own"
                )
        workers = worker_names(request.count, request.name, request.roles, alone=True)
        program["restarts"].check_roles({role_of(worker) for worker in workers})
        job = ClusterJob(
            script,
            args,
            options,
            workers,
            request.roles is not None,
            program,
            tuple(map(parse_variable, env)),
            request.nnodes,
            request.endpoint,
            request.nodes["token_file"],
            tuple(name.strip() for name in (request.hosts or "").split(",") if name.strip()),
            request.image,
            request.nodes["timeout"],
        )
        if dry_run:
            print(cluster.describe(job))
            raise typer.Exit
        cluster.run(job)
    except (ValueError, OSError, NodeError) as error:
        refuse(str(error))


def _cluster(request: JobRequest) -> Cluster:
    found = ENGINES.get(request.engine or "")
    if found is None:
        given = "you gave --hosts or --image without it" if request.engine is None else f"you gave {request.engine!r}"
        raise ValueError(f"--engine must be one of {', '.join(ENGINES)}; {given}")
    return found()
