"""Slurm: inside an allocation ``srun`` starts a launcher on each node, which start the workers and use mutual TLS.

The token reaches the other nodes in the environment, as Slurm transports it.
"""

import os
import shlex
import subprocess
from typing import NoReturn

from ..environment import own_environment
from ..nodes.token import TOKEN_VARIABLE
from .job import Cluster, ClusterJob, become

FIRST_PORT, PORTS = 20000, 10000  # two jobs on a node have different numbers
COMMAND_SECONDS = 60.0


class SlurmCluster(Cluster):
    """Nodes of a Slurm cluster."""

    def describe(self, job: ClusterJob) -> str:
        """Return a script for ``sbatch``, which runs the same command inside the allocation.

        Args:
            job: the job.
        """
        nodes = job.nodes(otherwise=1)
        inside = [*job.launcher(["--engine", "slurm"]), *job.command]
        lines = [
            "#!/bin/sh",
            f"#SBATCH --job-name={job.title}",
            f"#SBATCH --nodes={nodes}",
            "#SBATCH --ntasks-per-node=1",
            f"#SBATCH --cpus-per-task={job.workers_of_a_node(nodes)}",
            f"exec {shlex.join(inside)}",
        ]
        return "\n".join(lines)

    def run(self, job: ClusterJob) -> NoReturn:
        if job.hosts or job.image:
            raise ValueError("--hosts and --image are not for --engine slurm: Slurm chooses the nodes")
        number, nodes = (os.environ.get(name) for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"))
        if number is None or nodes is None:
            raise ValueError(
                "this is not inside an allocation of Slurm: get one with `salloc --nodes 2 telegrad run --engine slurm ...`, "
                "or write a batch script with --dry-run, and give it to `sbatch`"
            )
        names = _told("scontrol", "show", "hostnames", nodes).split()
        count = job.nodes(otherwise=len(names))
        if count > len(names):
            raise ValueError(
                f"--nnodes {count} is more than the {len(names)} nodes of this allocation: ask Slurm for more"
            )
        endpoint = job.endpoint or f"{_address(names[0])}:{FIRST_PORT + int(number) % PORTS}"
        become(srun(job, count, endpoint, names), {**own_environment(), TOKEN_VARIABLE: job.token()})


def srun(job: ClusterJob, nodes: int, endpoint: str, names: list[str]) -> list[str]:
    """Return the command that starts one launcher on each node.

    Args:
        job: the job.
        nodes: how many nodes take part.
        endpoint: of the launchers' rendezvous, on the first of them.
        names: of the nodes.
    """
    launcher = job.launcher(["--nnodes", str(nodes), "--rdzv-endpoint", endpoint])
    line = f'exec {shlex.join(launcher)} --node-rank "$SLURM_NODEID" {shlex.join(job.command)}'
    cores = os.environ.get("SLURM_CPUS_PER_TASK")  # srun does not take it from there by itself
    return [
        "srun",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        f"--nodelist={','.join(names[:nodes])}",
        *([f"--cpus-per-task={cores}"] if cores else []),
        *("sh", "-c", line),
    ]


def _address(node: str) -> str:
    """Return the address at which Slurm itself reaches a node."""
    told = dict(word.partition("=")[::2] for word in _told("scontrol", "--oneliner", "show", "node", node).split())
    return told.get("NodeAddr") or node


def _told(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    except FileNotFoundError:
        raise ValueError(f"--engine slurm needs {command[0]}, and there is none on this machine") from None
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"`{shlex.join(command)}` gave no answer within {COMMAND_SECONDS:g} s: is slurmctld up?"
        ) from None
    if done.returncode:
        raise ValueError(f"`{shlex.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
