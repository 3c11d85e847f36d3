"""Job of a contender, as rank 0 sees it: the other ranks, each a process that takes turns when asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

EXIT_TIMEOUT_S = 60.0


class Job:
    """Other ranks of a job. They are started on entry of a block, asked to leave at its end, and then killed.

    Args:
        arguments: of this process; the others get them too, and a rank of their own.
        ranks: those to start.
    """

    def __init__(self, arguments: Sequence[str], ranks: Sequence[int]) -> None:
        self._commands = [[sys.executable, sys.argv[0], "contender", *arguments, "--rank", str(rank)] for rank in ranks]
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Job:
        pipe = subprocess.PIPE
        for command in self._commands:
            self._processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                for process in self._processes:
                    process.wait(timeout=EXIT_TIMEOUT_S)
        finally:
            for process in self._processes:
                process.kill()

    def await_all(self) -> None:
        """Wait until every rank has joined."""
        for index in range(len(self._processes)):
            self._read(index)

    def let_leave(self) -> None:
        """Tell every rank to leave."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()

    def ask(self, ranks: int, request: dict[str, Any]) -> None:
        """Ask the ranks 1, 2, … to take a turn, ``ranks`` of them."""
        for process in self._processes[:ranks]:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()

    def answers(self, ranks: int) -> list[dict[str, Any]]:
        """Return their answers."""
        return [self._read(index) for index in range(ranks)]

    def _read(self, index: int) -> dict[str, Any]:
        stdout = self._processes[index].stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"rank {index + 1} has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer
