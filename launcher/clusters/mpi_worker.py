"""``python -m telegrad.launcher.clusters.mpi_worker SCRIPT ARGS``: run a program so that an exception in it ends all MPI ranks.

That is ``python -m mpi4py``, with output line by line, so that mpiexec can put a rank before each, and reports to the launcher.
"""

import io
import os
import sys
from types import TracebackType

from mpi4py.run import main

from ...base.worker_reports import report_by
from .mpi_reports import LineReporter

RUNNERS = ("mpi4py.run", "runpy")


def run() -> None:
    """Run the program of the command line, and report how it ended."""
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(line_buffering=True, write_through=False)
    reporter = LineReporter(int(os.environ["RANK"]))
    report_by(reporter)
    try:
        main()
    except SystemExit as end:
        reporter.ended(end.code)
        raise
    except BaseException as error:
        error.__traceback__ = _frames_of_program(error.__traceback__)
        sys.last_value = sys.last_exc = error  # type: ignore[attr-defined]  # as the interpreter does; last_exc: Python 3.12
        sys.excepthook(type(error), error, error.__traceback__)
        reporter.failed(error)  # now, for the launcher shows no tracebacks after the first failure
        sys.exit(1)
    reporter.ended(None)


def _frames_of_program(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames that run the program; all of it if the program has not begun."""
    rest = trace
    while rest is not None and (
        rest.tb_frame.f_globals is globals() or rest.tb_frame.f_globals.get("__name__") in RUNNERS
    ):
        rest = rest.tb_next
    return rest or trace


if __name__ == "__main__":
    run()
