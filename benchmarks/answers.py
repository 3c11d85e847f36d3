"""Answers of a contender: lines of JSON on what was its stdout. The libraries' own output goes to stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


class Answers:
    """Writer of answers: it takes the process's stdout for itself."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def say(self, **answer: Any) -> None:
        """Write one line."""
        print(json.dumps(answer), file=self._file, flush=True)
