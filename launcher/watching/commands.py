"""Commands that watch jobs, with their options; what each does is loaded when it runs."""

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..run_command import INTERRUPTED_CODE, refuse
from ..spec import MOST_SECONDS

WATCHING = "Running jobs"
METRICS_PORT = 9464  # which the exporters of OpenTelemetry have
MOST_WAIT = min(60.0, MOST_SECONDS)


def _workers(incomplete: str) -> list[str]:
    from .jobs import find_jobs

    names = (each.record.worker for job in find_jobs() for each in job.workers)
    return sorted({name for name in names if name.startswith(incomplete)})


def _jobs(incomplete: str) -> list[str]:
    from .jobs import find_jobs

    return [job.key for job in find_jobs() if job.key.startswith(incomplete)]


Workers = Annotated[
    list[str] | None,
    typer.Argument(metavar="WORKER...", help="Names of workers; all if not given.", autocompletion=_workers),
]
Job = Annotated[
    str | None,
    typer.Option(
        "--job",
        metavar="ID",
        help="Beginning of the job's id; the latest of this folder if not given.",
        autocompletion=_jobs,
    ),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON object.")]
Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.01, max=MOST_WAIT, help="Time that a worker has to answer.")
]


def _run(show: Callable[..., bool | None], *args: Any) -> None:
    """Do what a command does, and exit with 1 if it returns False; errors become words and an exit code of 2."""
    from .jobs import NoJobError

    try:
        good = show(*args)
        sys.stdout.flush()
    except (NoJobError, PermissionError) as error:
        refuse(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_CODE) from None
    except BrokenPipeError:  # | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if good is False:
        raise typer.Exit(1)


def ps(job: Job = None, as_json: Json = False) -> None:
    """List your running jobs on this machine, with their workers.

    Jobs are found however they were started: by `telegrad run`, `spawn`, a notebook, mpiexec or a cluster.
    """
    from .ps import show_jobs

    _run(show_jobs, job, as_json)


def why(workers: Workers = None, job: Job = None, timeout: Timeout = 2.0, as_json: Json = False) -> None:
    """Say why a job waits: deadlocks, stopped workers, and what calls and threads wait for in the end."""
    from .why import show_causes

    _run(show_causes, workers or [], job, timeout, as_json)


def stack(
    workers: Workers = None,
    job: Job = None,
    timeout: Timeout = 2.0,
    with_all: Annotated[
        bool,
        typer.Option("--all", metavar="", help="Also threads without code of the program, and frames of libraries."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the stacks of the Python threads of a job's workers; equal stacks once.

    A worker whose interpreter is held by code outside Python writes its stacks itself, at a signal.
    """
    from .stack import show_stacks

    _run(show_stacks, workers or [], job, timeout, with_all, as_json)


def top(
    job: Job = None,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="Time between two looks.")
    ] = 2.0,
    timeout: Timeout = 2.0,
    once: Annotated[bool, typer.Option("--once", metavar="", help="Look once.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object a look, each in a line.")
    ] = False,
) -> None:
    """Watch a job's workers: processor time, memory, calls, progress, and what the job waits for.

    On a terminal the table is renewed in place; Ctrl-C ends it. Else one table follows the other.
    """
    from .top import watch_job

    _run(watch_job, job, interval, timeout, once, as_json)


def memory(
    workers: Workers = None,
    job: Job = None,
    timeout: Timeout = 2.0,
    most: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of references to show, the largest first.")
    ] = 20,
    where: Annotated[
        bool,
        typer.Option("--where", metavar="", help="Also the lines that made them, if TELEGRAD_RREF_PLACES=1 was set."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the memory of a job's workers: processes, references by owner and size, shared segments."""
    from .memory import show_memory

    _run(show_memory, workers or [], job, timeout, most, where, as_json)


def logs(
    workers: Workers = None,
    job: Job = None,
    lines: Annotated[
        int | None, typer.Option("-n", "--lines", metavar="N", min=0, help="Only the last N lines of each worker.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", metavar="", help="Print what comes, too, until the workers have ended.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the names of the files as a JSON object.")
    ] = False,
) -> None:
    """Print what a job's workers have written, each line behind its worker's name."""
    from .logs import show_logs

    _run(show_logs, workers or [], job, lines, follow, as_json)


def kill(
    workers: Workers = None,
    job: Job = None,
    grace: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, max=MOST_WAIT, help="Time between SIGTERM and SIGKILL; 0 kills at once."
        ),
    ] = 3.0,
    as_json: Json = False,
) -> None:
    """End a job's workers on this machine; without --job, the latest job of this folder.

    Of a job of `telegrad run`, the launcher ends all workers when one has ended.
    """
    from .kill import end_workers

    _run(end_workers, workers or [], job, grace, as_json)


def scale(
    counts: Annotated[
        list[str],
        typer.Argument(metavar="[JOB] ROLE=COUNT...", help="The job's id; numbers of workers, such as trainer=4."),
    ],
    as_json: Json = False,
) -> None:
    """Change how many workers of a role a job of `telegrad run --elastic` has.

    More are started at once. To fewer, those of the highest numbers are asked to leave between two steps.
    """
    from .scale import scale_job

    job, roles = (counts[0], counts[1:]) if "=" not in counts[0] else (None, counts)
    if not roles:
        refuse("say how many workers of a role you want, for example `telegrad scale worker=4`")
    _run(scale_job, job, roles, as_json)


def join(
    job: Annotated[
        str | None,
        typer.Argument(metavar="[JOB]", help="Beginning of the job's id; the latest of this folder if not given."),
    ] = None,
    role: Annotated[str, typer.Option(metavar="ROLE", help="Its role; the only one if not given.")] = "",
    as_json: Json = False,
) -> None:
    """Start one more worker in a job of `telegrad run --elastic`."""
    from .scale import join_job

    _run(join_job, job, role, as_json)


def leave(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Beginning of the job's id.", autocompletion=_jobs)],
    workers: Annotated[
        list[str], typer.Argument(metavar="WORKER...", help="Names of workers.", autocompletion=_workers)
    ],
    as_json: Json = False,
) -> None:
    """Ask workers of a job of `telegrad run --elastic` to leave between two steps."""
    from .scale import leave_job

    _run(leave_job, job, workers, as_json)


def debug(
    workers: Workers = None,
    job: Job = None,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", metavar="TEXT", help="Give this command, and do not ask for more."),
    ] = None,
    to_all: Annotated[
        bool, typer.Option("--all", metavar="", help="Give the commands to all threads that are held.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for a thread, if none is held.")] = True,
    dap: Annotated[
        bool, typer.Option("--dap", metavar="", help="Be the debug adapter of an IDE, at standard input and output.")
    ] = False,
    dap_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="The same at a port of this machine, for you alone."),
    ] = None,
    timeout: Timeout = 2.0,
    as_json: Json = False,
) -> None:
    """Type into a thread that `breakpoint()` or `rpc.set_trace()` holds, with the commands of pdb.

    `where` shows the stack across workers. Ctrl-C leaves the terminal, not the program: the thread is still held.

    With --dap or --dap-port an IDE debugs WORKER, which needs debugpy (the extra `debugpy`).
    """
    if dap or dap_port is not None:
        from .dap import serve_ide

        _run(serve_ide, workers or [], job, dap_port, timeout)
        return
    from .debug import DebugOptions, debug_job

    _run(debug_job, workers or [], job, DebugOptions(command or [], to_all, wait, timeout, as_json))


def metrics(
    job: Job = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port at which to listen; 0 for a free one.")
    ] = METRICS_PORT,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address at which to listen. There is no password.")
    ] = "127.0.0.1",
    timeout: Timeout = 2.0,
) -> None:
    """Serve metrics of a job for Prometheus, until Ctrl-C, and print their address.

    Each scrape asks the workers. Without a job there are no values; the next job has some.
    """
    try:
        from .metrics import serve_job_metrics

        serve_job_metrics(job, port, host, timeout)
    except (ImportError, OSError) as error:
        refuse(str(error))


def dashboard(
    job: Job = None,
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0 for a free one.")] = 0,
    timeout: Timeout = 2.0,
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", metavar="", help="The page may end workers; else it only reads.")
    ] = False,
    opens: Annotated[bool, typer.Option("--open", metavar="", help="Open the page in your browser.")] = False,
) -> None:
    """Show a running job on a page in the browser: workers, links, calls, references, curves, logs, stacks.

    The page is served on the loopback interface, at an address with a secret token. It needs the extra `dashboard`.
    """
    try:
        from ..dashboard.server import serve_page
    except ModuleNotFoundError as error:
        refuse(f"{error.name} is not installed: pip install starlette uvicorn")
    _run(serve_page, job, port, timeout, allow_actions, opens)


def add_commands(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (ps, top, why, stack, memory, logs, dashboard, debug, metrics, scale, join, leave, kill):
        app.command(rich_help_panel=WATCHING)(command)
