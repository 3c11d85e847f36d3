"""Runner of one contender: starts it as a process group, has it measure one case at a time, and always ends it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from .results import Results, Source

START_TIMEOUT_S = 180.0
CASE_TIMEOUT_S = 180.0
EXIT_TIMEOUT_S = 60.0
TAIL_CHARACTERS = 2000


class ContenderError(Exception):
    """A contender ended, did not answer in time, or could not be started; the message has the end of its stderr."""


class Contender:
    """Contender of a run. Its processes are started on entry of a block and ended on exit.

    Args:
        source: entry of the results that describes it.
        results: where measurements go.
        command: to start it; it answers with JSON, first its versions and then a line for every request.
        environment: variables beside those that the processes inherit.
        spins: its processes are stopped while they are not asked, since they would use the processor.
    """

    def __init__(
        self,
        source: Source,
        results: Results,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        spins: bool = False,
    ) -> None:
        self.source = source
        self.results = results
        self.command = list(command)
        self.environment = {**os.environ, **(environment or {})}
        self.alive = False
        self._spins = spins
        self._reason = ""

    def __enter__(self) -> Contender:
        # A file for stderr: a full pipe that is not read would stop the contender.
        self._stderr = tempfile.TemporaryFile("w+")
        pipe = subprocess.PIPE
        self._launched = time.monotonic()
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
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.alive and kind is None:
            self._leave()
        self._kill()
        self._stderr.close()

    def await_ready(self) -> None:
        """Wait until it can be asked. One that cannot start is not asked."""
        try:
            self.source.versions = self._read(START_TIMEOUT_S)["ready"]
            self._let_run(False)
        except ContenderError as error:
            if self.source.versions:
                self._give_up(f"a later job did not start: {error}")
            else:
                self.source.missing = str(error)
                self._give_up("")

    def ask(self, case: str, seconds: float) -> None:
        """Measure one round of a case and record the outcome; a case that failed once is not measured again."""
        if self.source.missing:
            return
        entry = self.results.record(case, self.source.name)
        if entry.error or entry.absent:
            return
        if not self.alive:
            entry.error = self._reason
            return
        try:
            self._let_run(True)
            answer = self._request({"case": case, "seconds": seconds, "launched": self._launched})
            self._let_run(False)
        except ContenderError as error:
            entry.error = str(error)
            self._give_up(f"it ended in the case {case}")
            return
        entry.absent, entry.error = answer.get("absent", ""), answer.get("error", "")
        entry.rounds += [answer["figures"]] if "figures" in answer else []

    def _request(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ContenderError(f"{self.source.name} ended by itself:\n{self._tail()}") from None
        return self._read(CASE_TIMEOUT_S)

    def _read(self, timeout: float) -> dict[str, Any]:
        """Return the next answer. Each request has one line, so nothing is ever left in the reader's buffer."""
        stdout = self._process.stdout
        assert stdout is not None
        deadline = time.monotonic() + timeout
        if select.select([stdout], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            line = stdout.readline()
            if not line:
                raise ContenderError(f"{self.source.name} ended by itself:\n{self._tail()}")
            answer: dict[str, Any] = json.loads(line)
            return answer
        raise ContenderError(f"{self.source.name} did not answer within {timeout:g} s:\n{self._tail()}")

    def _give_up(self, reason: str) -> None:
        self._reason = reason
        self.alive = False
        self._kill()

    def _let_run(self, runs: bool) -> None:
        """Stop the processes of one that spins, or let them go on."""
        if self._spins:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGCONT if runs else signal.SIGSTOP)

    def _leave(self) -> None:
        assert self._process.stdin is not None
        self._let_run(True)
        self._process.stdin.close()
        try:
            code = self._process.wait(timeout=EXIT_TIMEOUT_S)
            problem = f"ended with status {code}" if code else ""
        except subprocess.TimeoutExpired:
            problem = f"did not end within {EXIT_TIMEOUT_S:g} s"
        if problem:
            self.results.record("exit", self.source.name).error = f"{self.source.name} {problem}:\n{self._tail()}"

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


def _close(stream: Any) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        pass  # a buffered request to a process that has ended
