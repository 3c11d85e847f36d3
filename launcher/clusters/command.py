"""``telegrad run --engine``: what the options say, as a job for the cluster that they name."""

from typing import NoReturn

import typer

from ..errors import NodeError
from ..run_command import JobRequest, refuse, worker_names
from ..spec import check_roles, parse_variable
from ..torchrun import WITHOUT_EFFECT
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
        if (
            name in NOT_FOR_NODES
            or name in WITHOUT_EFFECT
            or value is None
            or source is None
            or source.name == "DEFAULT"
        ):
            continue
        long = next(name for name in parameter.opts if name.startswith("--"))
        if isinstance(value, bool):
            found.append(long if value else parameter.secondary_opts[0])
        else:
            found += [word for each in (value if isinstance(value, list) else [value]) for word in (long, str(each))]
    return tuple(found)


def run_on_cluster(request: JobRequest, options: tuple[str, ...]) -> NoReturn:
    """Run a job on the engine's machines.

    Args:
        request: the job; if it is a dry run, what would start is only printed.
        options: what ``options_given`` returned.
    """
    given = request.cluster or {}
    engine, rules = given.get("engine"), request.program["restarts"]
    try:
        cluster = _cluster(engine)
        cluster.check_restarts(rules, str(engine))
        for option in ("rank", "own_host", "listen_host"):
            if request.nodes[option] is not None:
                raise ValueError(
                    f"--node-rank, --host and --listen-host are for machines that you start by hand: --engine {engine} "
                    f"knows its own"
                )
        workers = worker_names(request.count, request.name, request.roles, alone=True)
        check_roles(rules, workers)
        job = ClusterJob(
            request.script,
            request.args,
            options,
            workers,
            request.roles is not None,
            request.program,
            tuple(map(parse_variable, request.variables)),
            request.nnodes,
            request.endpoint,
            request.nodes["token_file"],
            tuple(name.strip() for name in (given.get("hosts") or "").split(",") if name.strip()),
            given.get("image"),
            request.nodes["timeout"],
        )
        if request.dry_run:
            print(cluster.describe(job))
            raise typer.Exit
        cluster.run(job)
    except (ValueError, OSError, NodeError) as error:
        refuse(str(error))


def _cluster(engine: str | None) -> Cluster:
    found = ENGINES.get(engine or "")
    if found is None:
        given = "you gave --hosts or --image without it" if engine is None else f"you gave {engine!r}"
        raise ValueError(f"--engine must be one of {', '.join(ENGINES)}; {given}")
    return found()
