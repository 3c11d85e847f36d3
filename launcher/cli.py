"""Command ``telegrad``: reads its arguments, runs a job, prints the summary, exits with the code of the root cause."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from .errors import LogDirError
from .job import launch
from .spec import JobSpec, numbered, parse_count, parse_roles
from .summary import summary

BAD_INPUT = 2
DEMO = "telegrad.examples.parameter_server"

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",  # joins the lines of a paragraph
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
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


@app.command(context_settings={"allow_interspersed_args": False}, no_args_is_help=True)
def run(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="Script that every worker runs.")],
    args: Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="Arguments of the script.")] = None,
    count: Annotated[str | None, typer.Option("-n", metavar="N", help="Number of workers; 1 if not given.")] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the workers: NAME0, NAME1, ...")] = "worker",
    roles: Annotated[
        str | None, typer.Option(metavar="ROLES", help="Instead of -n: ps,trainer=2 starts ps, trainer0 and trainer1.")
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", metavar="", help="SCRIPT is the name of a module, as in `python -m`.")
    ] = False,
    python: Annotated[
        str, typer.Option(metavar="PATH", help="Python of the workers; this one if not given.", show_default=False)
    ] = sys.executable,
    log_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the logs; telegrad_runs/TIME-SCRIPT if not given.")
    ] = None,
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time between asking workers to end (TERM) and killing them (KILL)."),
    ] = 3.0,
    preload: Annotated[
        bool,
        typer.Option(
            "--preload/--no-preload",
            help="Fork the workers from one process that has imported Telegrad, NumPy and gRPC; without, each imports them.",
        ),
    ] = True,
) -> None:
    """Run SCRIPT in several worker processes on this machine.

    For example `telegrad run -n 4 train.py --epochs 10`: options of `telegrad run` come before SCRIPT, all that follows goes
    to the script.

    The output of each worker is shown behind its name, and written to its log. The first worker that fails ends the others;
    the summary names it, and its exit code is that of `telegrad run`.

    Each worker finds RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, TELEGRAD_WORKER (its name) and
    TELEGRAD_CREDENTIALS (a folder with the secret of the job) in its environment, so that `init_rpc` needs only a name.
    """
    try:
        spec = JobSpec(script, tuple(args or ()), _workers(count, name, roles), module, python, log_dir, grace, preload)
    except (ValueError, OSError, ImportError) as error:
        _refuse(str(error))
    _run(spec)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def demo(context: typer.Context) -> None:
    """Run a parameter server and two trainers that learn handwritten digits.

    Options go to the example: `telegrad demo --out DIR`.
    """
    _run(JobSpec(DEMO, tuple(context.args), parse_roles("ps,trainer=2"), module=True))


@app.command(no_args_is_help=True)
def migrate(
    scripts: Annotated[list[Path], typer.Argument(metavar="SCRIPT...", help="Programs written for PyTorch.")],
    diff: Annotated[bool, typer.Option("--diff", help="Only show what would change.")] = False,
) -> None:
    """Change the imports of PyTorch programs so that they run with Telegrad.

    What has to be changed by hand is listed, with lines. docs/migrating.md says what differs.
    """
    try:
        from ..compat.migrate import migrate_file
    except ImportError as error:
        _refuse(f"migrate needs {error.name}, which is not installed: pip install 'telegrad[migrate]'")
    for script in scripts:
        try:
            lines = migrate_file(script, diff)
        except (OSError, ValueError) as error:
            _refuse(str(error))
        print(*lines, sep="\n", end="\n" if lines else "")


def main() -> None:
    """Run the command with the arguments of this process."""
    app(prog_name="telegrad")


def _workers(count: str | None, name: str, roles: str | None) -> tuple[str, ...]:
    size = None if count is None else parse_count(count)
    if roles is None:
        return numbered(name, size or 1)
    workers = parse_roles(roles)
    if size is not None and size != len(workers):
        raise ValueError(
            f"-n {size} and --roles {roles!r} disagree, the roles make {len(workers)} workers: leave -n out"
        )
    return workers


def _run(spec: JobSpec) -> None:
    try:
        result = launch(spec)
    except LogDirError as error:
        _refuse(f"{error}. Name another folder with --log-dir DIR")
    _report(summary(result))
    _silence_broken_output()
    raise typer.Exit(result.exit_code)


def _refuse(why: str) -> NoReturn:
    _report(why)
    raise typer.Exit(BAD_INPUT)


def _report(text: str) -> None:
    print(f"telegrad: {text}", file=sys.stderr)


def _silence_broken_output() -> None:
    """Keep Python from an error at exit when the reader of standard output is gone (``| head``)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
