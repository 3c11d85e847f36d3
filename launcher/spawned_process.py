"""Process that ``spawn`` starts: the pickling of the call that it makes, and its main function.

A new process imports the module of a function. It cannot import the main module of an interactive session, of ``python -c`` or
of a program on standard input: what is defined there travels by value, with cloudpickle.
"""

import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import cloudpickle

from ..base import job_credentials
from ..base.process_title import title_worker
from ..base.worker_reports import attach
from .environment import WORKER_VARIABLE

UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError)
FAILED_CODE = 1
INTERRUPTED_CODE = 128 + signal.SIGINT


class SpawnedWork:
    """Call ``fn(rank, *args)`` that a new process is to make."""

    def __init__(self, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.fn = fn
        self.args = args

    def __reduce__(self) -> tuple[Any, ...]:
        if _importable_main():
            return SpawnedWork, (self.fn, self.args)
        return _load_by_value, (_dump_by_value((self.fn, self.args)),)


class PassedDescriptor:
    """File descriptor that a new process inherits; it may have another number there."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self.number),)


def main(work: SpawnedWork, rank: int, reports: PassedDescriptor, variables: dict[str, str]) -> None:
    """Make the call; if it raises, report the exception. The process then exits with a code other than 0.

    Args:
        work: the call.
        rank: this worker's rank, the call's first argument.
        reports: file for this worker's reports.
        variables: added to the environment.
    """
    os.setpgid(0, 0)  # so that what it starts ends with it, and a terminal's Ctrl-C comes through the parent only
    os.environ.update(variables)
    title_worker(variables[WORKER_VARIABLE])
    reporter = attach(reports.number, rank)
    credentials = variables.get(job_credentials.VARIABLE)
    threading.Thread(target=_die_with_parent, args=(credentials,), name="telegrad-parent-watch", daemon=True).start()
    try:
        work.fn(rank, *work.args)
    except KeyboardInterrupt:  # the parent has asked it to end, and tells its user
        sys.exit(INTERRUPTED_CODE)
    except SystemExit:
        raise
    except BaseException as error:  # others too: multiprocessing would write them to the terminal only
        reporter.failed(error)
        sys.exit(FAILED_CODE)
    finally:
        if (
            reporter.expelled
        ):  # forked processes end with os._exit, which runs no exit handler of rpc/losses/expulsion.py
            sys.exit(FAILED_CODE)


def explain_unpicklable(fn: Callable[..., object], error: Exception) -> str:
    """Return why ``multiprocessing`` could not send a function and its arguments, and what to do."""
    try:
        ForkingPickler.dumps(SpawnedWork(fn, ()))
    except UNPICKLABLE:
        return (
            f"`fn` {fn!r} cannot be sent to a new process: {error}. Define it at the top level of a module, "
            'or pass start_method="fork"'
        )
    return f'`args` cannot be sent to a new process: {error}. Leave that out, or pass start_method="fork"'


@contextmanager
def main_module_stays_here() -> Iterator[None]:
    """Keep ``multiprocessing`` from running "<stdin>" in the processes that are started in this block."""
    main_module = vars(sys.modules["__main__"])
    if "__file__" not in main_module or _importable_main():
        yield
        return
    file = main_module.pop("__file__")
    try:
        yield
    finally:
        main_module["__file__"] = file


class _ByValue(cloudpickle.Pickler):  # type: ignore[misc]  # it is untyped
    """Pickler by value; connections, locks and the like travel as ``multiprocessing`` sends them."""

    @property
    def dispatch_table(self) -> ChainMap[type, Any]:
        """Reducers by type, looked up anew because importing more of ``multiprocessing`` adds some."""
        return ChainMap(ForkingPickler(io.BytesIO()).dispatch_table, cloudpickle.Pickler.dispatch_table)


def _die_with_parent(credentials: str | None) -> None:
    # Not PR_SET_PDEATHSIG: that fires when the *thread* that called `spawn` ends.
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    if credentials is not None:
        job_credentials.remove_job(Path(credentials))  # the parent would have
    os.killpg(0, signal.SIGKILL)


def _importable_main() -> bool:
    """Return whether a new process can import this one's main module."""
    main_module = sys.modules["__main__"]
    if getattr(main_module, "__spec__", None) is not None:
        return True
    return Path(getattr(main_module, "__file__", None) or "").is_file()


def _dump_by_value(value: object) -> bytes:
    buffer = io.BytesIO()
    _ByValue(buffer).dump(value)
    return buffer.getvalue()


def _load_by_value(dumped: bytes) -> SpawnedWork:
    return SpawnedWork(*pickle.loads(dumped))


def _received(duplicate: Any) -> PassedDescriptor:
    return PassedDescriptor(duplicate.detach())
