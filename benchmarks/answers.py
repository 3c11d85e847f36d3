"""Answers of a contender: lines of JSON on stdout. It imports no library, so that every contender can import it."""

from __future__ import annotations

import json
from typing import Any


def say(answer: dict[str, Any]) -> None:
    """Write one line of JSON to stdout."""
    print(json.dumps(answer), flush=True)
