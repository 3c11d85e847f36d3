"""Reports of a worker to the process that launched it: it joined a job, it lost another worker, it left, its program failed.

An exit code alone comes too late and says too little. A worker that fails says goodbye to its peers before its process ends, so
a peer may exit first because of that failure. Therefore a launcher gives its workers one anonymous file, to which each report
is appended, as a line of JSON, *before* the goodbye. A reader of the file sees a failure before its consequences. Appending
never blocks, however long the line is, and with or without a reader.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum

from .errors import WorkerLostError
from .last_events import LastEvents, launched_last_events
from .multiprocessing_children import is_multiprocessing_child

VARIABLE = "TELEGRAD_REPORTS"  # descriptor of the inherited file:its inode:the worker's rank
MOST_TRACEBACK_CHARACTERS = 1 << 22  # the end is kept


class Leaving(str, Enum):
    """Way in which a worker left its job."""

    AGREED = "agreed"  # all workers shut down together
    ALONE = "alone"  # it shut down without waiting for the others
    EXIT = "exit"  # its process ended without rpc.shutdown()


class Reporter:
    """Writer of this process's reports. Calls in a forked child do nothing.

    Args:
        descriptor: of the launcher's file.
        rank: this process's rank among the launcher's workers.

    Attributes:
        expelled: the job counts this worker as lost; its process must fail.
        last_events: where the launcher finds the last events of this process, however it ends; None without.
    """

    def __init__(self, descriptor: int, rank: int) -> None:
        os.set_inheritable(descriptor, False)
        self.expelled = False
        self._descriptor = descriptor
        self._rank = rank
        self._process_id = os.getpid()
        self._failed = self._exiting = self._watching = False
        self.last_events: LastEvents | None = launched_last_events()

    @property
    def is_own_process(self) -> bool:
        """Return whether this is the process that was launched, not one that was forked from it."""
        return os.getpid() == self._process_id

    def joined(self, name: str, together: bool = False) -> None:
        """Report that this process is now a worker of a job.

        Args:
            name: the worker's.
            together: its workers begin and end together: one alone waits for the others.
        """
        if not self._watching:
            # rpc/ has registered its exit handler before, so this one is called first.
            self._watching = True
            atexit.register(self._process_exits)
            # Exit handlers run when all threads that are not daemons have ended, and one may never do that.
            with suppress(RuntimeError):  # the main thread has ended already
                threading._register_atexit(self._report_uncaught)  # type: ignore[attr-defined]  # as concurrent.futures does
        self._note(f"joined the job as {name!r}")
        self._write({"kind": "joined", "name": name, "together": together})

    def lost(self, worker: str, reason: str) -> None:
        """Report that the job counts another worker as lost. The launcher tells its user, once for all that report it."""
        self._note(f"lost {worker!r}: {reason}")
        self._write({"kind": "lost", "worker": worker, "reason": reason})

    def left(self, agreed: bool) -> None:
        """Report that this worker is about to say goodbye to its peers."""
        if not threading.main_thread().is_alive():
            # The interpreter ends; earlier, the last uncaught exception may be that of an interactive session.
            self._report_uncaught()
        how = Leaving.AGREED if agreed else Leaving.EXIT if self._exiting else Leaving.ALONE
        self._note("left the job")
        self._write({"kind": "left", "how": how})

    def failed(self, error: BaseException) -> None:
        """Report that this worker's program ends with ``error``; later calls do nothing."""
        if not self._failed:
            self._failed = True
            text = _formatted(error)
            self._write({"kind": "failed", "traceback": text[-MOST_TRACEBACK_CHARACTERS:], "lost": lost_workers(error)})

    def _note(self, text: str) -> None:
        if self.last_events is not None and self.is_own_process:
            self.last_events.add(text)

    def _process_exits(self) -> None:
        self._exiting = True
        self._report_uncaught()

    def _report_uncaught(self) -> None:
        # The interpreter sets these before it calls sys.excepthook, so a hook of the user's own does not matter.
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if isinstance(error, BaseException):
            self.failed(error)

    def _write(self, report: dict[str, object]) -> None:
        if self.is_own_process:
            line = json.dumps({"rank": self._rank, **report}) + "\n"
            # Without memory for it, the launcher has the exit code only.
            with suppress(OSError):
                os.write(self._descriptor, line.encode())


def lost_workers(error: BaseException) -> list[str]:
    """Return the names of the workers whose loss caused ``error``, the nearest cause first."""
    names = (each.worker for each in _chain(error) if isinstance(each, WorkerLostError) and each.worker)
    return list(dict.fromkeys(names))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its causes and contexts, and the members of groups, the nearest first."""
    waiting, seen = [error], set()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        causes = (each.__cause__, each.__context__, *getattr(each, "exceptions", ()))
        waiting += [cause for cause in causes if isinstance(cause, BaseException)]


def _formatted(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except BaseException as broken:  # a user's __str__ may raise anything, and the report must be sent
        return f"{type(error).__name__} (its text is missing: its __str__ raised {type(broken).__name__})\n"


_reporter: Reporter | None = None


def attach(descriptor: int, rank: int) -> Reporter:
    """Make this process report to the file ``descriptor`` as the worker of that rank."""
    global _reporter
    _reporter = Reporter(descriptor, rank)
    return _reporter


def report_by(reporter: Reporter) -> None:
    """Make this process report by a reporter of another kind."""
    global _reporter
    _reporter = reporter


def reporter() -> Reporter | None:
    """Return this process's reporter; None if no launcher started this process itself."""
    if _reporter is None and VARIABLE in os.environ and not is_multiprocessing_child():
        _attach_inherited(os.environ[VARIABLE])
    return _reporter if _reporter is not None and _reporter.is_own_process else None


def last_events() -> LastEvents | None:
    """Return where this process notes its states and events; None if no launcher reads them."""
    launcher = reporter()
    return None if launcher is None else launcher.last_events


def _attach_inherited(text: str) -> None:
    """Attach to the launcher's file. Its inode tells it from another file of that number, in a worker's child."""
    descriptor, inode, rank = (int(part) for part in text.split(":"))
    with suppress(OSError):  # not inherited
        if os.fstat(descriptor).st_ino == inode:
            attach(descriptor, rank)
