"""Answers of a contender: lines of JSON. The libraries' own output goes elsewhere."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


class Answers:
    """Writer of answers.

    Args:
        path: file to write to; None takes the process's stdout, and what else is written there goes to stderr.
    """

    def __init__(self, path: str | None = None) -> None:
        self._file = open(path, "w") if path else os.fdopen(os.dup(1), "w")  # noqa: SIM115
        if path is None:
            os.dup2(2, 1)
            sys.stdout = sys.stderr

    def say(self, **answer: Any) -> None:
        """Write one line."""
        print(json.dumps(answer), file=self._file, flush=True)
