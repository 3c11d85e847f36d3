"""Command ``telegrad`` and its parts."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from . import torchrun
from .checkpoints import add_checkpoint_commands
from .clusters.command import ENGINES, options_given, run_on_cluster
from .errors import NodeError
from .job_file import hyphenated, read_job_file
from .nodes.options import DEFAULT_JOIN_SECONDS, LISTEN_SECONDS, NODES_TIMEOUT
from .nodes.token import DEFAULT_DAYS, new_token
from .progress import report
from .restarts import options as restart_options
from .restarts.rules import parse_restarts
from .run_command import BAD_INPUT, JobRequest, refuse, run_here, run_request
from .spec import MOST_SECONDS, JobSpec, parse_roles
from .watching.commands import add_commands

NODES = "Several machines"
CLUSTERS = "Clusters"
DEMO = "telegrad.examples.parameter_server"

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",  # joins the lines of a paragraph
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version as installed_version  # loads much, for one line

        print(f"telegrad {installed_version('telegrad')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, metavar="", help="Print the version.")
    ] = False,
) -> None:
    """Distributed training with RPC and remote references.

    `telegrad demo` shows a job, `telegrad run -n 2 script.py` runs yours.
    """


@app.command(
    context_settings={"allow_interspersed_args": False, "token_normalize_func": hyphenated},
    no_args_is_help=True,
)
def run(
    context: typer.Context,
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="Script that every worker runs.")],
    args: Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="Arguments of the script.")] = None,
    job: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            is_eager=True,
            callback=read_job_file,
            help="TOML file with these options by their long names.",
        ),
    ] = None,
    count: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--nproc-per-node",
            metavar="N",
            help="Number of workers on this machine, 1 if not given; `auto`: one for each core.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", "--role", metavar="NAME", help="Name of the workers: NAME0, NAME1, ...")
    ] = "worker",
    roles: Annotated[
        str | None,
        typer.Option(metavar="ROLES", help="Instead of -n: ps,trainer=2 starts ps, trainer0 and trainer1."),
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", "--module", metavar="", help="SCRIPT is the name of a module, as in `python -m`.")
    ] = False,
    no_python: Annotated[bool, typer.Option("--no-python", metavar="", help="SCRIPT is a program of its own.")] = False,
    python: Annotated[
        str, typer.Option(metavar="PATH", help="Python of the workers; this one if not given.", show_default=False)
    ] = sys.executable,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="[ROLE:]NAME=VALUE", help="Environment variable of all workers, or of those of a role."),
    ] = None,
    pin: Annotated[
        bool, typer.Option("--pin", metavar="", help="Give each worker cores of its own, if there are enough.")
    ] = False,
    log_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the logs; telegrad_runs/TIME-SCRIPT if not given.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", metavar="", help="Show lines only: no live view below them on a terminal.")
    ] = False,
    tensorboard: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for TensorBoard's event files of what each worker logs with tg.log."),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            "--shutdown-timeout",
            metavar="SECONDS",
            help="Time between asking workers to end (TERM) and killing them (KILL).",
        ),
    ] = 3.0,
    preload: Annotated[
        bool,
        typer.Option(
            "--preload/--no-preload",
            help="Fork the workers from one process that has imported Telegrad, NumPy and gRPC; without, each imports them.",
        ),
    ] = True,
    elastic: Annotated[
        bool,
        typer.Option(
            "--elastic",
            metavar="",
            help="Let workers join and leave while the job runs: `telegrad scale`, `join`, `leave`.",
        ),
    ] = False,
    restart: restart_options.Restart = None,
    max_restarts: restart_options.MaxRestarts = None,
    within: restart_options.Within = None,
    post_mortem: Annotated[
        bool,
        typer.Option(
            "--post-mortem", metavar="", help="Hold the first thread that an exception ends, for `telegrad debug`."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show what would start, and start nothing.")
    ] = False,
    nnodes: Annotated[
        str | None,
        typer.Option(
            metavar="N|MIN:MAX", rich_help_panel=NODES, help="Number of machines; with MIN:MAX those that come in time."
        ),
    ] = None,
    node_rank: Annotated[
        int | None,
        typer.Option(
            metavar="RANK", min=0, rich_help_panel=NODES, help="Number of this machine; the next if not given."
        ),
    ] = None,
    rdzv_endpoint: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", rich_help_panel=NODES, help="Where machine 0 is reached.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=NODES, help="The job's token; else in TELEGRAD_TOKEN."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            "--local-addr",
            metavar="HOST",
            rich_help_panel=NODES,
            help="Where others reach this machine, if not where it reaches machine 0.",
        ),
    ] = None,
    listen_host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", rich_help_panel=NODES, help="Where to listen instead, behind NAT: 0.0.0.0."),
    ] = None,
    rdzv_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", rich_help_panel=NODES, help=f"Time in which all machines must come; {NODES_TIMEOUT:g}."
        ),
    ] = None,
    join_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            rich_help_panel=NODES,
            help=f"With MIN:MAX: time to wait for one more than MIN; {DEFAULT_JOIN_SECONDS:g}.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=CLUSTERS, help=f"Who finds the machines: {', '.join(ENGINES)}."),
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(metavar="A,B,...", rich_help_panel=CLUSTERS, help="With mpi: the machines.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(metavar="IMAGE", rich_help_panel=CLUSTERS, help="With kubernetes: of the containers.")
    ] = None,
    standalone: torchrun.Standalone = False,
    master_addr: torchrun.MasterAddr = None,
    master_port: torchrun.MasterPort = None,
    monitor_interval: torchrun.MonitorInterval = None,
    start_method: torchrun.StartMethod = None,
    run_path: torchrun.RunPath = False,
    rdzv_id: torchrun.RdzvId = None,
    rdzv_backend: torchrun.RdzvBackend = None,
    rdzv_conf: torchrun.RdzvConf = None,
    tee: torchrun.Tee = None,
    redirects: torchrun.Redirects = None,
    local_ranks_filter: torchrun.LocalRanksFilter = None,
    duplicate_stdout_filters: torchrun.DuplicateStdoutFilters = None,
    duplicate_stderr_filters: torchrun.DuplicateStderrFilters = None,
    logs_specs: torchrun.LogsSpecs = None,
    event_log_handler: torchrun.EventLogHandler = None,
    numa_binding: torchrun.NumaBinding = None,
    signals_to_handle: torchrun.SignalsToHandle = None,
    virtual_local_rank: torchrun.VirtualLocalRank = False,
) -> None:
    """Run SCRIPT in several worker processes, on this machine or on several.

    For example `telegrad run -n 4 train.py --epochs 10`: options of `telegrad run` come before SCRIPT, all that follows goes
    to the script.

    The output of each worker is shown behind its name, and written to its log. The first worker that fails ends the others;
    the summary names it, and its exit code is that of `telegrad run`. With --restart it is started again.

    Each worker finds RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, TELEGRAD_WORKER (its name) and
    TELEGRAD_CREDENTIALS (a folder with the secret of the job) in its environment, so that `init_rpc` needs no arguments.

    For several machines start the same command on each, with --nnodes and --rdzv-endpoint, and a token from
    `telegrad token`; or name who starts it there with --engine.

    Options of `torchrun` are accepted, also with underscores (`--nproc_per_node`); those that have no effect here say so.
    """
    nodes: dict[str, Any] = {"rank": node_rank, "token_file": token_file, "own_host": host, "listen_host": listen_host}
    nodes |= {"timeout": rdzv_timeout, "join_seconds": join_seconds}
    program: dict[str, Any] = {
        "module": module,
        "interpreter": python,
        "no_python": no_python,
        "log_dir": log_dir,
        "tensorboard": tensorboard,
        "plain": plain,
        "grace": grace,
        "pin": pin,
        "preload": preload,
        "elastic": elastic,
    }
    variables = [*(env or []), *(["TELEGRAD_POST_MORTEM=1"] if post_mortem else [])]
    cluster = {"engine": engine, "hosts": hosts, "image": image}
    try:
        program["restarts"] = parse_restarts(restart, max_restarts, within)
        request = JobRequest(
            script,
            tuple(args or ()),
            count=count,
            name=name,
            roles=roles,
            nnodes=nnodes,
            endpoint=rdzv_endpoint,
            nodes=nodes,
            cluster=cluster if any(cluster.values()) else None,
            program=program,
            variables=variables,
            dry_run=dry_run,
        )
        request = torchrun.translated(request, context.params)
    except ValueError as error:
        refuse(str(error))
    if request.cluster is not None:
        run_on_cluster(request, options_given(context))
    run_request(request)


@app.command()
def token(
    days: Annotated[float, typer.Option(metavar="DAYS", help="Time for which it lets machines in.")] = DEFAULT_DAYS,
) -> None:
    """Print a new token for a job on several machines.

    Give it to `telegrad run` on each of them, in TELEGRAD_TOKEN or with --token-file, and to nobody else.
    """
    try:
        print(new_token(days))
    except ValueError as error:
        refuse(str(error))


@app.command()
def doctor(
    endpoint: Annotated[
        str | None, typer.Argument(metavar="HOST:PORT", help="Another machine; with --listen this one.")
    ] = None,
    listen: Annotated[bool, typer.Option("--listen", metavar="", help="Wait there for the other machine.")] = False,
    token_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The token; else in TELEGRAD_TOKEN.")] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, max=MOST_SECONDS, help="With --listen: how long it waits.")
    ] = LISTEN_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the findings as one JSON object.")] = False,
) -> None:
    """Check this machine, the way to another, and the two against each other.

    `telegrad doctor` looks at this machine. `telegrad doctor --listen node0:29400` on one and `telegrad doctor node0:29400` on
    the other, with the same token, compare their versions and clocks. The exit code is 1 if jobs would fail.
    """
    from .doctor.command import examine

    try:
        well = examine(endpoint, listen, token_file, timeout, as_json)
    except (ValueError, NodeError) as error:
        refuse(str(error))
    raise typer.Exit(0 if well else 1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def demo(context: typer.Context) -> None:
    """Run a parameter server and two trainers that learn handwritten digits.

    Options go to the example: `telegrad demo --out DIR`.
    """
    run_here(JobSpec(DEMO, tuple(context.args), parse_roles("ps,trainer=2"), module=True))


@app.command(no_args_is_help=True)
def migrate(
    scripts: Annotated[list[Path], typer.Argument(metavar="SCRIPT...", help="Programs written for PyTorch.")],
    diff: Annotated[bool, typer.Option("--diff", help="Only show what would change.")] = False,
    keep_torch: Annotated[
        bool, typer.Option("--keep-torch", help="Change remote calls only; tensors and models stay PyTorch's.")
    ] = False,
) -> None:
    """Change the imports of PyTorch programs so that they run with Telegrad.

    What has to be changed by hand is listed, with lines. docs/migrating.md says what differs.
    """
    try:
        from . import migrate_file
    except ImportError as error:
        refuse(f"migrate needs {error.name}, which is not installed: pip install libcst")
    failed = False
    for script in scripts:
        try:
            lines = migrate_file(script, diff, keep_torch)
        except (OSError, ValueError) as error:
            failed = True
            report(str(error))
        else:
            print(*lines, sep="\n", end="\n" if lines else "")
    if failed:
        raise typer.Exit(BAD_INPUT)


add_commands(app)
add_checkpoint_commands(app)


def main() -> None:
    """Run the command with the arguments of this process."""
    _open_standard_files()
    app(prog_name="telegrad")


def _open_standard_files() -> None:
    """Open the null device in the place of standard files that are closed (``>&-``): a log would get their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # until this process ends
