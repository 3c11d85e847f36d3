"""Answers of workers to commands, as lines that come on a connection; their sizes and numbers are bounded."""

from __future__ import annotations

import socket
from typing import NamedTuple

from ...rpc.observing import CommandAnswer, Observation, decode_record

MOST_ANSWER_LINE = 16 << 20
MOST_OBSERVATIONS = 1 << 16


class NoAnswerError(Exception):
    """A worker did not answer, or not as it should."""


class WorkerAnswer(NamedTuple):
    """Answer of a worker: its ``first`` line, the ``observations`` that come with it, and the ``seconds`` that it took."""

    first: CommandAnswer
    observations: list[Observation]
    seconds: float = 0.0


class AnswerReader:
    """Reader of one answer."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._looked = 0  # there is no end of a line before
        self._first: CommandAnswer | None = None
        self._observations: list[Observation] = []

    @property
    def is_empty(self) -> bool:
        """Return whether nothing of the answer has come."""
        return self._first is None and not self._data

    def read(self, connection: socket.socket) -> WorkerAnswer | None:
        """Take what has come; return the answer when it is whole.

        Raises:
            BlockingIOError: nothing has come.
            OSError: the connection is broken.
            NoAnswerError: the worker refused, or closed it, or its answer is too long.
            SerializationError: it is no answer.
        """
        part = connection.recv(1 << 18)
        if not part:
            raise NoAnswerError("it closed the connection: it ends, or too many commands ask it")
        self._data += part
        while (end := self._data.find(b"\n", self._looked)) >= 0:
            line = bytes(self._data[:end])
            del self._data[: end + 1]
            self._looked = 0
            if self._take(line):
                assert self._first is not None
                return WorkerAnswer(self._first, self._observations)
        self._looked = len(self._data)
        if self._looked > MOST_ANSWER_LINE:
            raise NoAnswerError(f"its answer has a line of more than {MOST_ANSWER_LINE:,} bytes")
        return None

    def _take(self, line: bytes) -> bool:
        """Take a line; return whether the answer is whole."""
        if self._first is None:
            first = self._first = decode_record(CommandAnswer, line, MOST_ANSWER_LINE)
            if first.error:
                raise NoAnswerError(first.error)
            if not 0 <= first.observations <= MOST_OBSERVATIONS:
                raise NoAnswerError(f"it announces {first.observations} observations")
        else:
            self._observations.append(decode_record(Observation, line, MOST_ANSWER_LINE))
        return len(self._observations) == self._first.observations
