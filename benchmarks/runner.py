"""Runner of contenders: starts each as a process group, has it measure one case at a time, and always ends it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from rich.console import Console

START_TIMEOUT_S = 90.0
CASE_TIMEOUT_S = 180.0
EXIT_TIMEOUT_S = 15.0
TAIL_CHARACTERS = 2000


class ContenderError(Exception):
    """A contender ended, did not answer in time, or could not be started; the message has the end of its stderr."""


@dataclass
class Results:
    """Results of one contender: seconds for each case, one entry for each round, or its errors."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class Contender:
    """Contender: one library with one transport. Its processes are started on entry and ended on exit of a block.

    ``environment`` is added to the variables that the processes inherit.
    """

    def __init__(self, label: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.label = label
        self.command = list(command)
        self.environment = {**os.environ, **(environment or {})}
        self.versions: dict[str, str] = {}
        self.results = Results()
        self.alive = False

    def __enter__(self) -> Contender:
        # A file for stderr: a full pipe that is not read would stop the contender.
        self._stderr = tempfile.TemporaryFile("w+")
        pipe = subprocess.PIPE
        # A session of its own: killing the group ends all its processes, also when the first is already dead.
        self._process = subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=pipe,
            stdout=pipe,
            stderr=self._stderr,
            text=True,
            start_new_session=True,
        )
        self.alive = True
        try:
            self.versions = self._read(START_TIMEOUT_S)["ready"]
        except ContenderError as error:
            self._give_up("start", error)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.alive and kind is None:
            self._leave()
        self._kill()
        self._stderr.close()

    def ask(self, case: str) -> None:
        """Measure one round of ``case`` and record the outcome; a case that failed once is not measured again."""
        if not self.alive or case in self.results.errors:
            return
        try:
            answer = self._request(case)
        except ContenderError as error:
            self._give_up(case, error)
            return
        if "error" in answer:
            self.results.errors[case] = answer["error"]
        else:
            self.results.seconds.setdefault(case, []).append(answer["seconds"])

    def _request(self, case: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(case + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ContenderError(f"{self.label} ended by itself:\n{self._tail()}") from None
        return self._read(CASE_TIMEOUT_S)

    def _read(self, timeout: float) -> dict[str, Any]:
        """Return the next answer. Each request has one line, so nothing is ever left in the reader's buffer."""
        stdout = self._process.stdout
        assert stdout is not None
        deadline = time.monotonic() + timeout
        while select.select([stdout], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            line = stdout.readline()
            if not line:
                raise ContenderError(f"{self.label} ended by itself:\n{self._tail()}")
            if line.startswith("{"):  # a library may print other lines
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise ContenderError(f"{self.label} did not answer within {timeout:g} s:\n{self._tail()}")

    def _give_up(self, case: str, error: ContenderError) -> None:
        self.results.errors[case] = str(error)
        self.alive = False
        self._kill()

    def _leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(timeout=EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.results.errors["exit"] = f"{self.label} did not end within {EXIT_TIMEOUT_S:g} s:\n{self._tail()}"
            return
        if code:
            self.results.errors["exit"] = f"{self.label} ended with status {code}:\n{self._tail()}"

    def _kill(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the whole group has ended already
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                _close(stream)

    def _tail(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read()[-TAIL_CHARACTERS:].strip() or "(it wrote nothing to stderr)"


def measure_in_turn(contenders: list[Contender], cases: list[str], rounds: int, console: Console) -> None:
    """Start every contender and ask round by round, case by case, contender by contender."""
    with ExitStack() as stack, console.status("starting") as status:
        for contender in contenders:
            status.update(f"starting {contender.label}")
            stack.enter_context(contender)
        for turn in range(rounds):
            for case in cases:
                for contender in contenders:
                    status.update(f"round {turn + 1} of {rounds}: {case}, {contender.label}")
                    contender.ask(case)


def _close(stream: Any) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        pass  # a buffered request to a process that has ended
