"""Main function of a process that ``spawn`` started: runs the user's function and reports its failure to the parent."""

import multiprocessing
import os
import signal
import sys
import threading

from ..core.worker_reports import attach
from .passing import PassedDescriptor, Work

INTERRUPTED = 128 + signal.SIGINT


def main(work: Work, i: int, reports: PassedDescriptor, variables: dict[str, str]) -> None:
    """Call ``fn(i, *args)``; if it raises, report the exception and exit with code 1."""
    os.setpgid(0, 0)  # so that grandchildren end with it, and a terminal's Ctrl-C comes through the parent only
    os.environ.update(variables)
    reporter = attach(reports.number, i)
    threading.Thread(target=_die_with_parent, name="telegrad-parent-watch", daemon=True).start()
    try:
        work.fn(i, *work.args)
    except KeyboardInterrupt:  # asked to end by the parent, which tells its user
        sys.exit(INTERRUPTED)
    except SystemExit:
        raise
    except BaseException as error:  # others too: multiprocessing would write them to the terminal only
        reporter.failed(error)
        sys.exit(1)


def _die_with_parent() -> None:
    # Not PR_SET_PDEATHSIG: that fires when the *thread* that called `spawn` ends.
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.killpg(0, signal.SIGKILL)
