"""Description of what a job would start, for ``telegrad run --dry-run``."""

import shlex
from functools import partial
from itertools import groupby

from .cores import shared_cores
from .environment import helpful_defaults, option_variables, rank_environment
from .nodes.options import NodeOptions
from .progress import counted, listed
from .restarts.rules import RestartPolicy
from .spec import JobSpec


def describe(spec: JobSpec, nodes: NodeOptions | None, roles: str | None) -> str:
    """Return what would start on this machine: for each worker its variables and its command.

    Args:
        spec: the job, or this machine's part of it.
        nodes: options of a job on several machines; None for one.
        roles: ``--roles``; None without.
    """
    restarts = [] if spec.restarts.widest is RestartPolicy.NEVER else [f"restarts: {spec.restarts}"]
    return "\n".join([*(_job(spec) if nodes is None else _node(spec, nodes, roles)), *restarts])


def _job(spec: JobSpec) -> list[str]:
    count = len(spec.workers)
    cores = shared_cores(count) if spec.pin else []
    lines = [f"{counted(count)} on this machine; rank 0 at 127.0.0.1, a free port"]
    for rank, worker in enumerate(spec.workers):
        own = {
            **rank_environment(rank, worker),
            "WORLD_SIZE": "0" if spec.elastic else str(count),
            **_variables(spec, worker),
        }
        at = f" on cores {','.join(map(str, sorted(cores[rank])))}" if cores else ""
        lines.append(f"{worker}{at}: {_command(spec, own)}")
    return lines


def _node(spec: JobSpec, nodes: NodeOptions, roles: str | None) -> list[str]:
    fewest, most = nodes.nodes
    count = str(most) if fewest == most else f"{fewest} to {most}"
    number = "of the next number" if nodes.rank is None else str(nodes.rank)
    share = f"its share of --roles {roles}" if roles else counted(len(spec.workers))
    which = f"machine {number} of {count}: {share}; rendezvous of the launchers at {nodes.host}:{nodes.port}"
    alike = [(own, list(names)) for own, names in groupby(spec.workers, partial(_variables, spec))]
    return [
        which,
        *(f"{'each worker' if len(alike) == 1 else listed(names)}: {_command(spec, own)}" for own, names in alike),
    ]


def _variables(spec: JobSpec, worker: str) -> dict[str, str]:
    threads = helpful_defaults(len(spec.workers))["OMP_NUM_THREADS"]
    return {"OMP_NUM_THREADS": threads, **option_variables(spec, worker)}


def _command(spec: JobSpec, variables: dict[str, str]) -> str:
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(spec.command)])
