"""Workers that a fork server starts (``fork_server.py``): the launcher's end.

If the server dies, they become orphans: processes whose parent has ended. The launcher adopts them, so that no exit code is
lost.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from . import fork_server

IMPORT_SECONDS = 120.0  # it may have to import first, on a machine that starts many jobs
FORK_SECONDS = 30.0
FORK_SERVER_END_SECONDS = 5.0
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
UNKNOWN = 255  # exit code of a worker that this process could not adopt: no other process can tell it


class ForkServer:
    """Fork server of one job. If it ends, its workers go on, and their launcher learns their exit codes if it adopts orphans.

    Args:
        interpreter: the Python that runs it, and so the workers.
        program: a script, or "-m" and a module, and the arguments.
        environment: variables that all workers share.
        descriptor: file that they inherit.

    Attributes:
        pid: its process id.
        pidfd: becomes readable when it has ended.
        answered: it has started a worker.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self, interpreter: str, program: Sequence[str], environment: Mapping[str, str], descriptor: int
    ) -> None:
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.settimeout(IMPORT_SECONDS)
        with theirs:
            self._process = subprocess.Popen(
                [interpreter, fork_server.__file__, str(theirs.fileno()), *program],
                env=environment,
                pass_fds=[theirs.fileno(), descriptor],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.pidfd = os.pidfd_open(self.pid)
        self.answered = False

    def end(self) -> int:
        """Hang up, and return its exit code when it has ended; minus the number, for a signal. Workers go on."""
        self._connection.close()  # a late answer must not be taken for that to the next request
        try:
            return self._process.wait(FORK_SERVER_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def start(self, variables: Mapping[str, str], output: int, cores: Collection[int]) -> "ForkedProcess":
        """Start a worker.

        Args:
            variables: added to its environment.
            output: file for its standard output and error.
            cores: numbers of those that it may use; empty for all.

        Raises:
            ConnectionError: the fork server has ended, or is of no use any more.
            OSError: the worker cannot be started.
        """
        answer = self._ask({"variables": variables, "cores": list(cores)}, [output])
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        self.answered = True
        self._connection.settimeout(FORK_SECONDS)
        return ForkedProcess(self, answer)

    def exit_code(self, pid: int) -> int:
        """Return the exit code of a worker that has ended, or will soon; minus the number, for a signal."""
        try:
            return self._ask(pid, [])
        except OSError:
            return _adopted_exit_code(pid)

    def close(self) -> None:
        """End the fork server; workers go on."""
        os.close(self.pidfd)
        self.end()

    def _ask(self, request: Any, files: list[int]) -> int:
        try:
            socket.send_fds(self._connection, [json.dumps(request).encode()], files)
            answer = self._connection.recv(fork_server.ANSWER.size)
        except OSError as error:
            self.end()
            raise ConnectionError(f"the fork server of the job does not answer ({error})") from error
        if not answer:
            self.end()
            raise ConnectionResetError("the fork server of the job has ended")
        return int(fork_server.ANSWER.unpack(answer)[0])


class ForkedProcess:
    """Worker's process: what the engine needs of ``subprocess.Popen``.

    Args:
        server: the fork server that started it.
        pid: its process id.

    Attributes:
        returncode: its exit code, after ``wait``.
    """

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server

    def wait(self) -> int:
        """Return the exit code of the process, which has ended."""
        if self.returncode is None:
            self.returncode = self._server.exit_code(self.pid)
        return self.returncode

    def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):  # reaped, because its fork server has ended
            os.kill(self.pid, signal.SIGKILL)


@contextmanager
def adoption() -> Iterator[None]:
    """Be the parent of each process below this one whose own parent ends, in the block (``PR_SET_CHILD_SUBREAPER``)."""
    libc, before = ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def _adopted_exit_code(pid: int) -> int:
    """Return the exit code of an adopted process, which has ended; minus the number, for a signal."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return UNKNOWN


def reap_orphans() -> None:
    """Reap what is dead of the adopted processes, but for those that lead a session: these may have an owner that waits."""
    for pid in _children():
        with suppress(OSError):  # it was reaped meanwhile
            state, _parent, _group, session = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:4]
            if state == b"Z" and int(session) not in (pid, os.getsid(0)):
                os.waitpid(pid, os.WNOHANG)


def _children() -> Iterator[int]:
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):  # the thread has ended, or the kernel has no such file
            yield from map(int, Path(f"/proc/self/task/{thread}/children").read_bytes().split())
