"""Question to one worker at its socket. Its answer is bounded, and must come from the process that its record names."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...core.errors import SerializationError
from ...core.printable import printable
from ...rpc.observing import (
    DEBUG,
    OTHERS,
    CommandAnswer,
    CommandRequest,
    Observation,
    decode_record,
    encode_record,
    peer_process,
)
from .jobs import LocalJob, LocalWorker

MOST_ANSWER_LINE = 16 << 20
MOST_OBSERVATIONS = 1 << 16
LATER_SECONDS = 2.0  # for what comes after the time that the other workers have


class NoAnswerError(Exception):
    """A worker did not answer, or not as it should."""


class LateError(NoAnswerError):
    """A worker did not answer in time: something may keep it from answering."""


def ask(worker: LocalWorker, request: CommandRequest, timeout: float) -> tuple[CommandAnswer, list[Observation]]:
    """Return a worker's answer, and the observations that come with it.

    Args:
        worker: the worker.
        request: the question.
        timeout: seconds for all.

    Raises:
        NoAnswerError: it did not answer in time, refused, or sent something else.
    """
    deadline = time.monotonic() + timeout
    try:
        with worker.connect(timeout) as connection:
            _check_peer(worker, connection)
            connection.sendall(encode_record(request) + b"\n")
            lines = _Lines(connection, deadline)
            answer = decode_record(CommandAnswer, lines.next(), MOST_ANSWER_LINE)
            if answer.error:
                raise NoAnswerError(answer.error)
            if not 0 <= answer.observations <= MOST_OBSERVATIONS:
                raise NoAnswerError(f"it announces {answer.observations} observations")
            return answer, [
                decode_record(Observation, lines.next(), MOST_ANSWER_LINE) for _ in range(answer.observations)
            ]
    except (TimeoutError, BlockingIOError):  # or so many have asked and left that no more can wait
        raise LateError(f"no answer came within {timeout:g} s") from None
    except SerializationError as error:
        raise NoAnswerError(f"its answer cannot be read: {error}") from None
    except OSError as error:
        raise NoAnswerError(f"its socket cannot be used: {error.strerror or error}") from None


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
            answer = json.loads(ask(through, message, timeout + LATER_SECONDS)[0].text)
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
            return [each.name for each in ask(worker, CommandRequest(OTHERS, [], timeout), timeout)[0].members]
    return [each.record.worker for each in job.workers]


def _check_peer(worker: LocalWorker, connection: socket.socket) -> None:
    process, user = peer_process(connection)
    if user != os.geteuid() or process != worker.record.process_id:
        raise NoAnswerError(f"process {process} of user {user} answers in its place")


class _Lines:
    """Lines that come on a connection until a deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self._data = bytearray()

    def next(self) -> bytes:
        """Return the next line.

        Raises:
            NoAnswerError: it is too long, or the connection ends before it does.
            TimeoutError: it did not come in time.
        """
        looked = 0
        while (end := self._data.find(b"\n", looked)) < 0:
            looked = len(self._data)
            if looked > MOST_ANSWER_LINE:
                raise NoAnswerError(f"its answer has a line of more than {MOST_ANSWER_LINE:,} bytes")
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            part = self._connection.recv(1 << 18)
            if not part:
                raise NoAnswerError("it closed the connection: it ends, or too many commands ask it")
            self._data += part
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        return line
