"""Workers of an elastic job that come and leave: ``telegrad scale``, ``join`` and ``leave`` ask its launcher at a socket."""

import json
import os
import selectors
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ..base.processes import peer_process
from .progress import listed
from .spec import JobSpec, role_of
from .supervisor import Supervisor

MOST_SCALING_BYTES = 1 << 16
MOST_COMMANDS = 16  # further commands wait to be accepted


class Workers(Protocol):
    """Workers of a launcher, as ``Scaling`` sees them."""

    supervisor: Supervisor

    @property
    def spec(self) -> JobSpec:
        """The job, with the workers that have been added."""

    def add(self, name: str) -> None:
        """Start one more worker, or a new one in the place of one that has ended well."""

    def ask_to_leave(self, name: str) -> None:
        """Ask a worker to end between two steps."""

    def tell(self, line: str) -> None:
        """Tell the user of a change of the workers."""


class Scaling:
    """Changes of the workers of one job.

    Args:
        workers: of the job.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._asked: set[str] = set()  # names of those that were asked to leave, and have not been started again

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a command asks for; return the names of the workers that were started and of those asked to leave.

        Args:
            request: ``scale``: the number of workers of some roles; ``join``: a role, of which one more is started, empty for
                the only one; or ``leave``: names of workers.

        Raises:
            ValueError: it cannot be done.
        """
        self._check_job()
        match request:
            case {"scale": dict(counts)}:
                return self._scale({self._role(role): count for role, count in counts.items()})
            case {"join": str(given)}:
                role = self._role(given)
                return self._scale({role: len(self._staying(role)) + 1})
            case {"leave": [*names]}:
                return self._change([], self._leaving(names))
        raise ValueError("the launcher runs another version of telegrad, and does not know this command")

    def _scale(self, counts: dict[str, int]) -> dict[str, Any]:
        started, asked = [], []
        for role, count in counts.items():
            staying = self._staying(role)
            if count < 1:
                raise ValueError(f"{role}={count} leaves no worker of the role {role!r}; `telegrad kill` ends a job")
            asked += staying[count:]
            started += self._free_names(role, count - len(staying))
        return self._change(started, asked)

    def _change(self, started: Sequence[str], asked: Sequence[str]) -> dict[str, Any]:
        for name in started:
            self._asked.discard(name)
            self._workers.add(name)
        for name in asked:
            self._asked.add(name)
            self._workers.ask_to_leave(name)
        for names, what in ((started, "started"), (asked, "asked to leave")):
            if names:
                self._workers.tell(f"{listed(names)} {'is' if len(names) == 1 else 'are'} {what}, by a command")
        return {"started": list(started), "asked": list(asked)}

    def _check_job(self) -> None:
        supervisor, names = self._workers.supervisor, self._workers.spec.workers
        if not supervisor.goes_on:
            raise ValueError("the job is ending, so its workers change no more")
        over = [name for rank, name in enumerate(names) if not supervisor.present(rank) and name not in self._asked]
        if over:
            raise ValueError(
                f"the job is ending: {listed(over)} has finished; start it again with the number that you want"
            )

    def _role(self, given: str) -> str:
        roles = sorted({role_of(name) for name in self._workers.spec.workers})
        if not given and len(roles) == 1:
            return roles[0]
        if given not in roles:
            missing = f"no role {given!r}" if given else "several roles; name one with --role"
            raise ValueError(f"the job has {missing}; its roles are {', '.join(roles)}")
        return given

    def _leaving(self, names: Sequence[str]) -> list[str]:
        known = self._present()
        for name in names:
            if name not in known:
                raise ValueError(f"no worker {name!r} of this launcher runs; it has {', '.join(known)}")
        return [name for name in names if name not in self._asked]

    def _present(self) -> list[str]:
        supervisor = self._workers.supervisor
        return [name for rank, name in enumerate(self._workers.spec.workers) if supervisor.present(rank)]

    def _staying(self, role: str) -> list[str]:
        return [name for name in self._present() if role_of(name) == role and name not in self._asked]

    def _free_names(self, role: str, count: int) -> list[str]:
        """Return names for more workers of a role: first those whose workers have left, then new ones."""
        names = [name for name in self._workers.spec.workers if role_of(name) == role]
        present = self._present()
        free = [name for name in names if name not in present]
        new = (f"{role}{number}" for number in range(len(names), len(names) + max(count, 0)))
        return [*free, *new][: max(count, 0)]


class LauncherSocket:
    """Socket at which commands of this user ask a launcher. It must be closed.

    A request and its answer are one line of JSON each; the answer has ``error`` where a request cannot be done.

    Args:
        path: where it is; its folder is this user's alone.
        selector: tells of connections and requests.
        answer: called with each request; a ``ValueError`` becomes the answer.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(
        self, path: Path, selector: selectors.BaseSelector, answer: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> None:
        self._selector = selector
        self._answer = answer
        self._received: dict[socket.socket, bytes] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.setblocking(False)
        self._listener.bind(str(path))
        self._listener.listen()
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Close it, and all connections."""
        for connection in [*self._received]:
            self._end(connection)
        self._selector.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        if len(self._received) >= MOST_COMMANDS or peer_process(connection)[1] != os.geteuid():
            connection.close()
            return
        connection.setblocking(False)
        self._received[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ, partial(self._read, connection))

    def _read(self, connection: socket.socket) -> None:
        data = b""
        with suppress(OSError):
            data = connection.recv(MOST_SCALING_BYTES)
        self._received[connection] += data
        line, end, _ = self._received[connection].partition(b"\n")
        if end:
            with suppress(OSError):  # an answer is smaller than the socket's buffer
                connection.sendall(json.dumps(self._reply(line)).encode() + b"\n")
        if end or not data or len(line) > MOST_SCALING_BYTES:
            self._end(connection)

    def _reply(self, line: bytes) -> dict[str, Any]:
        try:
            return self._answer(json.loads(line))
        except (ValueError, OSError) as error:
            return {"error": str(error)}

    def _end(self, connection: socket.socket) -> None:
        del self._received[connection]
        self._selector.unregister(connection)
        connection.close()
