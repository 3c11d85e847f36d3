"""Run of a job from its options to its end: prints the summary, exits with the code of the root cause."""

import os
import signal
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

import typer

from .dry_run import describe
from .errors import LogDirError, NodeError
from .job import launch
from .nodes.options import NODE_OPTIONS, NodeOptions, parse_endpoint, parse_nodes
from .nodes.running import run_on_node
from .progress import report
from .restarts.rules import RestartPolicy
from .result import JobResult, summary
from .spec import JobSpec, check_roles, numbered, parse_count, parse_roles, parse_variable

COUNTS = (("-n",), ("--nproc-per-node",), ("--roles",))
BAD_INPUT = 2
INTERRUPTED_CODE = 128 + signal.SIGINT


@dataclass(frozen=True)
class JobRequest:
    """Request for a job, as the options of ``telegrad run`` state it.

    Attributes:
        script: the program.
        args: its arguments.
        count: ``-n``; None without.
        name: beginning of the workers' names.
        roles: ``--roles``; None without.
        nnodes: ``--nnodes``; None without.
        endpoint: ``--rdzv-endpoint``; None without.
        nodes: further options of a job on several machines, by their names in ``NodeOptions``; None where one was not given.
        cluster: ``engine``, ``hosts`` and ``image``, by which a cluster finds the machines; None if none of them was given.
        program: further attributes of ``JobSpec``.
        variables: of the workers, as ``--env`` states them.
        dry_run: only print what would start.
    """

    script: str
    args: tuple[str, ...]
    count: str | None
    name: str
    roles: str | None
    nnodes: str | None
    endpoint: str | None
    nodes: dict[str, Any]
    cluster: dict[str, str | None] | None
    program: dict[str, Any]
    variables: list[str]
    dry_run: bool


def run_request(request: JobRequest) -> NoReturn:
    """Run what was asked for, print the summary, and exit."""
    args = request.args
    try:
        nodes = _nodes(request.nnodes, request.endpoint, request.nodes)
        workers = worker_names(request.count, request.name, request.roles, alone=nodes is None)
        if request.count is None and request.roles is None and nodes is None and args[:1] in COUNTS:
            report(
                f"one worker: {' '.join(args[:2])} goes to {request.script}; what is for telegrad run comes before the script"
            )
        variables = tuple(map(parse_variable, request.variables))
        spec = JobSpec(request.script, args, workers, variables=variables, **request.program)
        check_roles(spec.restarts, workers)
        if nodes is not None:
            _check_nodes(spec)
        if request.dry_run:
            print(describe(spec, nodes, request.roles))
            raise typer.Exit
        result = launch(spec, tell=report) if nodes is None else _run_node(spec, nodes, request)
    except LogDirError as error:
        _refuse_logs(error)
    except (ValueError, OSError, ImportError, NodeError) as error:
        refuse(str(error))
    finish(result)


def _check_nodes(spec: JobSpec) -> None:
    """Check that a job can run on several machines: its launchers begin again together, or each with its own workers."""
    if spec.elastic:
        raise ValueError("--elastic is for a job on one machine; on several leave it out")
    if RestartPolicy.REST in spec.restarts.policies:
        raise ValueError("--restart rest is for a job on one machine; on several write --restart one, or --restart all")


def run_here(spec: JobSpec) -> NoReturn:
    """Run a job on this machine, print its summary, and exit."""
    try:
        finish(launch(spec, tell=report))
    except LogDirError as error:
        _refuse_logs(error)


def _run_node(spec: JobSpec, nodes: NodeOptions, request: JobRequest) -> JobResult:
    report(f"machines meet at {nodes.host}:{nodes.port}; waits {nodes.timeout:g} s at most until all are there")
    try:
        return run_on_node(spec, nodes, request.roles, request.name, report)
    except KeyboardInterrupt:
        report("interrupted by SIGINT (2) while the other machines were waited for")
        raise typer.Exit(INTERRUPTED_CODE) from None


def _refuse_logs(error: LogDirError) -> NoReturn:
    refuse(f"{error}. Name another folder with --log-dir DIR")


def finish(result: JobResult) -> NoReturn:
    """Print the summary, and exit with the job's code."""
    _silence_broken_output()
    report(summary(result))
    raise typer.Exit(result.exit_code)


def worker_names(count: str | None, name: str, roles: str | None, alone: bool) -> tuple[str, ...]:
    """Return the names of this machine's workers; on one of several, their number is what counts.

    Args:
        count: ``-n``; None without.
        name: beginning of the names.
        roles: ``--roles``; None without.
        alone: this is the only machine.

    Raises:
        ValueError: they cannot be read, or disagree.
    """
    size = None if count is None else parse_count(count)
    if roles is None:
        return numbered(name, size or 1)
    workers = parse_roles(roles)
    if size is not None and (size != len(workers) or not alone):
        raise ValueError(
            f"-n {size} and --roles {roles!r} disagree, the roles make {len(workers)} workers: leave -n out"
        )
    return workers


def _nodes(nnodes: str | None, endpoint: str | None, given: dict[str, Any]) -> NodeOptions | None:
    """Return the options of a job on several machines; None for a job on this one."""
    if nnodes is None and endpoint is None:
        if others := [option for option, value in given.items() if value is not None]:
            raise ValueError(f"{NODE_OPTIONS[others[0]]} is for a job on several machines: give --nnodes, too")
        return None
    if nnodes is None or endpoint is None:
        raise ValueError(
            "a job on several machines needs both --nnodes N and --rdzv-endpoint HOST:PORT, where HOST is machine 0, the same "
            "on all of them"
        )
    host, port = parse_endpoint(endpoint)
    return NodeOptions(
        parse_nodes(nnodes), host, port, **{name: value for name, value in given.items() if value is not None}
    )


def refuse(why: str) -> NoReturn:
    """Print why a command cannot be carried out, and exit."""
    report(why)
    raise typer.Exit(BAD_INPUT)


def _silence_broken_output() -> None:
    """Keep Python from an error at exit when the reader of standard output is gone (``| head``)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
