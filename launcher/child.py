"""What runs in a process that ``spawn`` started: the function, and the means to tell its failure to the parent."""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

INTERRUPTED = 128 + signal.SIGINT


def main(fn: Callable[..., object], i: int, args: tuple[Any, ...], failures: Connection) -> None:
    """Calls ``fn(i, *args)``; if it raises, sends the traceback and exits with code 1."""
    os.setpgid(0, 0)  # so that grandchildren end with it, and a terminal's Ctrl-C comes through the parent only
    threading.Thread(target=_die_with_parent, name="telegrad-parent-watch", daemon=True).start()
    try:
        fn(i, *args)
    except KeyboardInterrupt:  # asked to end by the parent, which tells its user
        sys.exit(INTERRUPTED)
    except Exception:
        failures.send(traceback.format_exc())
        sys.exit(1)


def _die_with_parent() -> None:
    # Not PR_SET_PDEATHSIG: that fires when the *thread* that called `spawn` ends.
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.killpg(0, signal.SIGKILL)
