"""Options of ``torchrun`` that ``telegrad run`` takes, too: some mean the same as one of ours, the others are accepted."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from .nodes.options import NODE_OPTIONS, parse_nodes
from .nodes.token import TOKEN_VARIABLE
from .progress import report
from .run_command import JobRequest

PANEL = "From torchrun"
MASTER_PORT = 29500  # torchrun's


WITHOUT_EFFECT: dict[str, str] = {}
"""Options that are accepted, by the names of their parameters: why they have no effect."""


def _accepted(name: str, *others: str, why: str) -> Any:
    WITHOUT_EFFECT[name.lstrip("-").replace("-", "_")] = why
    return typer.Option(name, *others, hidden=True)


_LOGS = "a worker's output is always shown, and written to its log"
_TOKEN = "the launchers of a job find one another by its token"
_WATCHED = "the launcher is told of an exit at once"

MonitorInterval = Annotated[str | None, _accepted("--monitor-interval", why=_WATCHED)]
StartMethod = Annotated[
    str | None, _accepted("--start-method", why="workers are forked; with --no-preload each starts an interpreter")
]
RunPath = Annotated[bool, _accepted("--run-path", why="a script of Python is always run so")]
RdzvId = Annotated[str | None, _accepted("--rdzv-id", why=_TOKEN)]
RdzvBackend = Annotated[str | None, _accepted("--rdzv-backend", why=_TOKEN)]
RdzvConf = Annotated[str | None, _accepted("--rdzv-conf", why="write --rdzv-timeout and --join-seconds")]
Tee = Annotated[str | None, _accepted("--tee", "-t", why=_LOGS)]
Redirects = Annotated[str | None, _accepted("--redirects", "-r", why=_LOGS)]
LocalRanksFilter = Annotated[str | None, _accepted("--local-ranks-filter", why=_LOGS)]
DuplicateStdoutFilters = Annotated[str | None, _accepted("--duplicate-stdout-filters", why=_LOGS)]
DuplicateStderrFilters = Annotated[str | None, _accepted("--duplicate-stderr-filters", why=_LOGS)]
LogsSpecs = Annotated[str | None, _accepted("--logs-specs", why=_LOGS)]
EventLogHandler = Annotated[str | None, _accepted("--event-log-handler", why="the summary tells how each worker ended")]
NumaBinding = Annotated[str | None, _accepted("--numa-binding", why="--pin gives each worker cores of its own")]
SignalsToHandle = Annotated[
    str | None, _accepted("--signals-to-handle", why="INT, TERM and HUP end the job, others are not passed on")
]
VirtualLocalRank = Annotated[bool, _accepted("--virtual-local-rank", why="there are no GPUs to number")]

Standalone = Annotated[
    bool,
    typer.Option("--standalone", metavar="", rich_help_panel=PANEL, help="This machine alone, as without --nnodes."),
]
MasterAddr = Annotated[
    str | None, typer.Option(metavar="HOST", rich_help_panel=PANEL, help="With --nnodes: host of --rdzv-endpoint.")
]
MasterPort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT", min=1, max=65535, rich_help_panel=PANEL, help=f"With --nnodes: its port; {MASTER_PORT}."
    ),
]


def translated(request: JobRequest, given: Mapping[str, Any]) -> JobRequest:
    """Return the request in our words, and tell which of the options given have no effect.

    Without a rendezvous if this is the only machine, else with its endpoint.

    Args:
        request: what our own options say.
        given: all options of the command, by the names of their parameters.

    Raises:
        ValueError: the options disagree about the number of machines.
    """
    for name, why in WITHOUT_EFFECT.items():
        if given[name]:
            report(f"--{name.replace('_', '-')} has no effect: {why}")
    if request.count == "gpu":
        report("-n gpu starts a worker for each core, as -n cpu does: Telegrad computes on the CPU")
    standalone, master_addr, master_port = given["standalone"], given["master_addr"], given["master_port"]
    master = {"--master-addr": master_addr, "--master-port": master_port}
    if request.cluster is not None:
        if standalone or any(master.values()):
            raise ValueError(
                "--standalone, --master-addr and --master-port are not for --engine, which knows the machines"
            )
        return request
    if _alone(request, standalone):
        return _without_rendezvous(request, master)
    if request.endpoint is not None:
        _say_without_effect(master, "--rdzv-endpoint says where machine 0 is")
        return request
    return request if master_addr is None else replace(request, endpoint=_endpoint(master_addr, master_port))


def _alone(request: JobRequest, standalone: bool) -> bool:
    """Return whether this is the job's only machine; one with a token joins a rendezvous all the same."""
    one = request.nnodes is not None and parse_nodes(request.nnodes) == (1, 1)
    if standalone and not (one or request.nnodes is None):
        raise ValueError(f"--standalone and --nnodes {request.nnodes} disagree: leave one of them out")
    has_token = request.nodes["token_file"] is not None or TOKEN_VARIABLE in os.environ
    return standalone or (one and not has_token) or (request.nnodes is None and request.endpoint is None)


def _without_rendezvous(request: JobRequest, master: dict[str, Any]) -> JobRequest:
    named = request.nnodes is not None or request.endpoint is not None  # else our own check of the options decides
    own = {NODE_OPTIONS[name]: value for name, value in request.nodes.items()} if named else {}
    if own.get("--node-rank"):
        raise ValueError(f"--node-rank {own['--node-rank']} is not on a job's only machine: it is 0, or give --nnodes")
    given = {**master, "--rdzv-endpoint": request.endpoint, **own}
    _say_without_effect(given, "on one machine the workers find one another at a free port")
    nodes = dict.fromkeys(request.nodes) if named else request.nodes
    return replace(request, nnodes=None, endpoint=None, nodes=nodes)


def _say_without_effect(options: dict[str, Any], why: str) -> None:
    if given := [name for name, value in options.items() if value is not None]:
        report(f"{', '.join(given)} {'has' if len(given) == 1 else 'have'} no effect: {why}")


def _endpoint(host: str, port: int | None) -> str:
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{bracketed}:{port or MASTER_PORT}"
