"""Reports of a worker of ``mpiexec`` to its launcher: marked lines of its output, which mpiexec brings from any machine."""

import json
import os

from ...base.worker_reports import Reporter

REPORT_MARK = "\x1etelegrad-report "
MOST_TRACEBACK_CHARACTERS = 1 << 12  # the end is kept: mpiexec cuts very long lines


class LineReporter(Reporter):
    """Reporter of one rank, which writes to this process's standard error.

    Args:
        rank: this process's rank.
    """

    def __init__(self, rank: int) -> None:
        super().__init__(os.dup(2), rank)  # as tracebacks: mpiexec keeps no order between two streams
        self._write({"kind": "began", "pid": os.getpid()})

    def ended(self, code: object) -> None:
        """Report how the program ended: with the argument of ``SystemExit``, or ``None`` if it came to its end."""
        self._write({"kind": "ended", "code": code if isinstance(code, int) else int(code is not None)})

    def _write(self, report: dict[str, object]) -> None:
        if "traceback" in report:
            report = {**report, "traceback": str(report["traceback"])[-MOST_TRACEBACK_CHARACTERS:]}
        if self.is_own_process:
            line = f"{REPORT_MARK}{json.dumps({'rank': self._rank, **report})}\n"
            os.write(self._descriptor, line.encode())
