"""Workers of tests that are forked from one process, which has imported Telegrad, as those of ``telegrad run`` are."""

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import closing

from helpers.programs import PROGRAMS, Job
from telegrad.launcher.engines.forked import ForkServer


class ForkedProcess:
    """Process that a fork server started, with the methods of ``subprocess.Popen`` that ``Job`` calls."""

    def __init__(self, process):
        self._process = process
        self.pid, self.returncode = process.pid, None
        self._descriptor = os.pidfd_open(self.pid)  # its number is not given to another before it is reaped

    def wait(self, seconds):
        if self.returncode is None:
            if not select.select([self._descriptor], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(self._process, seconds)
            os.close(self._descriptor)
            self.returncode = self._process.wait()
        return self.returncode

    def poll(self):
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, signum):
        if self.poll() is None:
            signal.pidfd_send_signal(self._descriptor, signum)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class ForkedJob(Job):
    """Job whose processes are forked; they start in milliseconds."""

    def __init__(self, server, *args):
        self.server = server
        super().__init__(*args)

    def start(self, rank, *args):
        program = json.dumps([self.script, *map(str, args)])
        variables = {**self.environment, "RANK": str(rank), "PROGRAM_OF_TEST": program}
        with open(self.log(rank), "ab") as log:
            return ForkedProcess(self.server.start(variables, log.fileno(), ()))


def fork_server():
    """A server for ``ForkedJob``, to be closed."""
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    return closing(ForkServer(sys.executable, [str(PROGRAMS / "forked.py")], environment, sys.__stderr__.fileno()))
