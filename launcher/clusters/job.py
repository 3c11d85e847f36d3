"""Job for a cluster, as the command line states it, and the seam between ``telegrad run`` and each kind of cluster."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ..nodes.options import parse_nodes
from ..nodes.token import TOKEN_VARIABLE, new_token, read_token
from ..restarts.rules import RestartPolicy, RestartRules


@dataclass(frozen=True)
class ClusterJob:
    """Job whose machines a cluster chooses.

    Attributes:
        script: the program.
        args: its arguments.
        options: further options of ``telegrad run``, as they were given: those that do not say where the job runs.
        workers: names of all workers, if ``shared`` or over MPI; else of those of each machine.
        shared: ``--roles`` names the workers, and the machines share them out.
        program: further attributes of ``JobSpec``.
        variables: of the workers, as ``JobSpec`` has them.
        nnodes: ``--nnodes``; None without.
        endpoint: ``--rdzv-endpoint``; None without.
        token_file: ``--token-file``; None without.
        hosts: ``--hosts``; empty without.
        image: ``--image``; None without.
        timeout: ``--rdzv-timeout``; None without.
    """

    script: str
    args: tuple[str, ...]
    options: tuple[str, ...]
    workers: tuple[str, ...]
    shared: bool
    program: dict[str, Any]
    variables: tuple[tuple[str, str, str], ...] = ()
    nnodes: str | None = None
    endpoint: str | None = None
    token_file: Path | None = None
    hosts: tuple[str, ...] = ()
    image: str | None = None
    timeout: float | None = None

    @property
    def title(self) -> str:
        """Short name of the program."""
        return self.script.rpartition(".")[2] if self.program.get("module") else Path(self.script).stem

    def refuse(self, engine: str, why: str, *attributes: str) -> None:
        """Check that options which are not for an engine were not given.

        Args:
            engine: its name.
            why: it needs none of them.
            attributes: those of this job that hold them.

        Raises:
            ValueError: one was given.
        """
        options = {"endpoint": "rdzv-endpoint"}
        for name in attributes:
            if getattr(self, name):
                raise ValueError(f"--{options.get(name, name)} is not for --engine {engine}: {why}")

    def nodes(self, otherwise: int) -> int:
        """Return the number of machines.

        Args:
            otherwise: the number if the user has given none.

        Raises:
            ValueError: it cannot be read, or is a range.
        """
        if self.nnodes is None:
            return otherwise
        fewest, most = parse_nodes(self.nnodes)
        if fewest != most:
            raise ValueError(f"a cluster gives a job as many machines as it asks for: write --nnodes {most}")
        return most

    def workers_of_a_node(self, nodes: int) -> int:
        """Return how many workers a machine has at most, if there are so many machines."""
        return -(-len(self.workers) // nodes) if self.shared else len(self.workers)

    def launcher(self, options: Sequence[str], interpreter: str = sys.executable) -> list[str]:
        """Return the command that starts the launcher of one machine, up to its script.

        Args:
            options: of ``telegrad run`` beside the user's.
            interpreter: the Python there.
        """
        return [interpreter, "-m", "telegrad.launcher", "run", *self.options, *options]

    @property
    def command(self) -> list[str]:
        """The script and its arguments."""
        return [self.script, *self.args]

    def token(self) -> str:
        """Return the user's token if there is one, else a new one.

        Raises:
            TokenError: others can read the file, or the text is no token.
        """
        if self.token_file is None and TOKEN_VARIABLE not in os.environ:
            return new_token()
        return read_token(self.token_file).decode()


class Cluster(ABC):
    """One kind of cluster.

    Attributes:
        policies: of restarts that what runs on its machines can follow.
    """

    policies: Collection[RestartPolicy] = (RestartPolicy.NEVER, RestartPolicy.ONE, RestartPolicy.ALL)

    def check_restarts(self, rules: RestartRules, engine: str) -> None:
        """Check that the machines' launchers can follow the rules.

        Raises:
            ValueError: a policy is not for this cluster.
        """
        for policy in sorted(rules.policies - set(self.policies), key=lambda each: each.value):
            allowed = ", ".join(each.value for each in self.policies)
            raise ValueError(f"--restart {policy.value} is not for --engine {engine}, which can follow {allowed}")

    @abstractmethod
    def describe(self, job: ClusterJob) -> str:
        """Return what ``--dry-run`` prints: a command, a batch script or a manifest."""

    @abstractmethod
    def run(self, job: ClusterJob) -> NoReturn:
        """Run the job; this process ends with its exit code.

        Raises:
            ValueError: the cluster is not at hand, or an option is not for it.
        """


def become(command: list[str], environment: dict[str, str]) -> NoReturn:
    """Replace this process by another program, which so receives our signals and gives our exit code.

    Raises:
        ValueError: there is no such program.
    """
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError:
        raise ValueError(f"there is no program {command[0]!r} on this machine") from None
