"""Questions to workers of this machine at their sockets, many at a time, on connections that may be kept for the next question.

An answer is bounded, and must come from the process that the worker's record names.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

from ...base.errors import SerializationError
from ...base.printable import printable
from ...base.processes import peer_process
from ...rpc.observing import DEBUG, OTHERS, CommandRequest, encode_record
from .answers import AnswerReader, NoAnswerError, WorkerAnswer
from .jobs import LocalJob, LocalWorker

LATER_SECONDS = 2.0  # for what comes after the time that the other workers have
ASK_WHY_SECONDS = 0.05  # a worker that has not answered then is asked about
MOST_OPEN = 512  # connections: a process may have a thousand files open
CONNECT_SECONDS = 0.1  # for a worker's loop to accept, if as many as may wait do


class LateError(NoAnswerError):
    """A worker did not answer in time: something may keep it from answering."""


class Asker:
    """Asker of workers of this machine. It keeps its connections, and must be closed. Not for several threads at a time."""

    def __init__(self) -> None:
        self._open: dict[str, _KeptConnection] = {}  # by the name of the worker's files

    def close(self) -> None:
        """Close the connections."""
        self.keep([])

    def keep(self, workers: Iterable[LocalWorker]) -> None:
        """Close the connections to all workers but these."""
        for stem in self._open.keys() - {each.record.stem for each in workers}:
            self._open.pop(stem).close()

    def ask(
        self,
        workers: Sequence[LocalWorker],
        request: CommandRequest,
        timeout: float,
        late: Callable[[LocalWorker], float] | None = None,
    ) -> list[WorkerAnswer | NoAnswerError]:
        """Return the answer of each worker, or why there is none.

        Args:
            workers: the workers.
            request: the question.
            timeout: seconds that each has to answer.
            late: called with each worker that has not answered after a moment; returns the seconds that it has in all.
        """
        data = encode_record(request) + b"\n"
        found: list[WorkerAnswer | NoAnswerError] = []
        for first in range(0, len(workers), MOST_OPEN):
            found += self._ask(workers[first : first + MOST_OPEN], data, timeout, late)
            if len(workers) > MOST_OPEN:
                self.close()
        return found

    def _ask(
        self,
        workers: Sequence[LocalWorker],
        data: bytes,
        timeout: float,
        late: Callable[[LocalWorker], float] | None,
    ) -> list[WorkerAnswer | NoAnswerError]:
        round_ = _Round(self._open, data, timeout)
        for each in workers:
            round_.begin(each)
        if not round_.read_until(min(timeout, ASK_WHY_SECONDS)):
            for stem, waiting in list(round_.waiting.items()):
                seconds = late(waiting.worker) if late else timeout
                if seconds < timeout:
                    round_.read_until(seconds, stem)
            round_.read_until(timeout)
        round_.give_up()
        return [round_.found[each.record.stem] for each in workers]


class _KeptConnection:
    """Connection to a worker.

    Args:
        worker: the worker.

    Raises:
        OSError: it does not accept.
        NoAnswerError: another process listens there.
    """

    def __init__(self, worker: LocalWorker) -> None:
        self.worker = worker
        self.used = False  # it has answered before: it may have ended since
        self.socket = worker.connect(CONNECT_SECONDS)
        process, user = peer_process(self.socket)
        if user != os.geteuid() or process != worker.record.process_id:
            self.socket.close()
            raise NoAnswerError(f"process {process} of user {user} answers in its place")
        self.reader = AnswerReader()

    def send(self, data: bytes, timeout: float) -> None:
        self.reader = AnswerReader()
        self.socket.settimeout(timeout)
        self.socket.sendall(data)
        self.socket.setblocking(False)

    def close(self) -> None:
        self.socket.close()


class _Round:
    """One question to several workers.

    Attributes:
        waiting: by the name of the worker's files, the connections on which an answer is to come.
        found: likewise, the answers, and why there is none.
    """

    def __init__(self, kept: dict[str, _KeptConnection], data: bytes, timeout: float) -> None:
        self.waiting: dict[str, _KeptConnection] = {}
        self.found: dict[str, WorkerAnswer | NoAnswerError] = {}
        self._kept = kept
        self._data = data
        self._timeout = timeout
        self._began = time.monotonic()
        self._poll = select.poll()
        self._by_descriptor: dict[int, _KeptConnection] = {}

    def begin(self, worker: LocalWorker) -> None:
        """Ask a worker, on the connection that is kept, or else on a new one."""
        stem = worker.record.stem
        try:
            connection = self._kept.get(stem)
            if connection is None or not self._is_sent(connection):
                connection = self._kept[stem] = _KeptConnection(worker)
                connection.send(self._data, self._timeout)
        except (NoAnswerError, OSError, ValueError) as error:
            self._fail(worker, error)
            return
        self.waiting[stem] = connection
        self._by_descriptor[connection.socket.fileno()] = connection
        self._poll.register(connection.socket, select.POLLIN)

    def _is_sent(self, kept: _KeptConnection) -> bool:
        """Send the question on a connection that is kept; return whether it could be: the worker may have closed it."""
        try:
            kept.send(self._data, self._timeout)
            return True
        except OSError:
            kept.close()
            return False

    def read_until(self, seconds: float, stem: str = "") -> bool:
        """Read answers, until all have come or so many seconds have passed since the beginning; return whether all have.

        Args:
            seconds: the time.
            stem: of the one answer that is waited for; all if empty.
        """
        while stem in self.waiting if stem else self.waiting:
            left = self._began + seconds - time.monotonic()
            if left <= 0:
                return False
            for descriptor, _ in self._poll.poll(max(left * 1000, 1)):
                self._read(self._by_descriptor[descriptor])
        return True

    def give_up(self) -> None:
        """End the waits for answers that have not come. They may come later, so their connections are closed."""
        for connection in list(self.waiting.values()):
            self._forget(connection)
            self._fail(connection.worker, LateError(f"no answer came within {self._timeout:g} s"))

    def _read(self, connection: _KeptConnection) -> None:
        try:
            answer = connection.reader.read(connection.socket)
        except BlockingIOError:
            return
        except (NoAnswerError, SerializationError, OSError) as error:
            self._forget(connection)
            if connection.used and connection.reader.is_empty:  # the worker has closed it since the last question
                self._kept.pop(connection.worker.record.stem).close()
                self.begin(connection.worker)
            else:
                self._fail(connection.worker, error)
            return
        if answer is not None:
            self._forget(connection)
            connection.used = True
            self.found[connection.worker.record.stem] = answer._replace(seconds=time.monotonic() - self._began)

    def _forget(self, connection: _KeptConnection) -> None:
        del self.waiting[connection.worker.record.stem], self._by_descriptor[connection.socket.fileno()]
        self._poll.unregister(connection.socket)

    def _fail(self, worker: LocalWorker, error: Exception) -> None:
        if kept := self._kept.pop(worker.record.stem, None):
            kept.close()
        self.found[worker.record.stem] = _no_answer(error, self._timeout)


def _no_answer(error: Exception, timeout: float) -> NoAnswerError:
    if isinstance(error, NoAnswerError):
        return error
    if isinstance(error, (TimeoutError, BlockingIOError)):  # so many have asked and left that no more can wait
        return LateError(f"no answer came within {timeout:g} s")
    if isinstance(error, SerializationError):
        return NoAnswerError(f"its answer cannot be read: {error}")
    return NoAnswerError(f"its socket cannot be used: {getattr(error, 'strerror', None) or error}")


def ask(worker: LocalWorker, request: CommandRequest, timeout: float) -> WorkerAnswer:
    """Return one worker's answer.

    Args:
        worker: the worker.
        request: the question.
        timeout: seconds for all.

    Raises:
        NoAnswerError: it did not answer in time, refused, or sent something else.
    """
    with closing(Asker()) as asker:
        (answer,) = asker.ask([worker], request, timeout)
    if isinstance(answer, NoAnswerError):
        raise answer
    return answer


def question(job: LocalJob, worker: str, request: Mapping[str, Any], timeout: float) -> Any:
    """Return what a worker's debugger answers to a request; it is asked itself if it runs here, else through one that does.

    Args:
        job: the job.
        worker: its name.
        request: see ``Debugger`` (``rpc/debugging/debugger.py``).
        timeout: seconds that it has to answer.

    Raises:
        NoAnswerError: it did not answer in time, or refused.
    """
    own = job.worker(worker)
    why = NoAnswerError(f"no worker of this machine can ask {printable(worker)}")
    for through in [own] if own else job.workers:
        try:
            message = CommandRequest(DEBUG, [worker], timeout, request=json.dumps(request))
            answer = json.loads(ask(through, message, timeout + LATER_SECONDS).first.text)
        except NoAnswerError as error:
            why = error
            continue
        except ValueError:
            raise NoAnswerError(f"worker {printable(worker)} said something else") from None
        if isinstance(answer, dict) and "error" in answer:
            raise NoAnswerError(str(answer["error"]))
        return answer
    raise why


def names_of(job: LocalJob, timeout: float) -> list[str]:
    """Return the names of the workers of a job that have not left, as one of this machine knows them.

    Args:
        job: the job.
        timeout: seconds that each worker has to answer.
    """
    for worker in job.workers:
        with suppress(NoAnswerError):
            return [each.name for each in ask(worker, CommandRequest(OTHERS, [], timeout), timeout).first.members]
    return [each.record.worker for each in job.workers]
