"""Process of one library in the local benchmark: it measures a case for each line on stdin that names one.

``start.py local_contender telegrad`` or ``torch``, with the interpreter that has it. A case is built when it is first
named, and stays warm.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys
from collections.abc import Sequence
from typing import Any

from .answers import Answers
from .captured_cases import CASES as CAPTURED
from .local_cases import CASES, Step, measure
from .sweep_cases.all import CASES as OPERATIONS

WARM_UP_S = 0.1


def main(arguments: Sequence[str]) -> None:
    """Answer until stdin ends."""
    answers, (name,) = Answers(), arguments
    lib = importlib.import_module(name)
    if hasattr(lib, "set_num_threads"):
        lib.set_num_threads(1)
    answers.say(ready={"Python": platform.python_version(), name: lib.__version__})
    steps: dict[str, Step] = {}
    for line in sys.stdin:
        request = json.loads(line)
        case = request["case"]
        try:
            step = steps.get(case) or built(lib, case, steps)
            answers.say(figures={"p50": measure(step, request["seconds"])})
        except Exception as error:  # reported to the runner, which shows it
            answers.say(error=f"{type(error).__name__}: {error}")


def built(lib: Any, name: str, steps: dict[str, Step]) -> Step:
    """Return the step of the case called ``name``, warmed up."""
    (case,) = (case for case in (*CASES, *CAPTURED, *OPERATIONS) if case.name == name)
    steps[name] = case.build(lib)
    measure(steps[name], WARM_UP_S)
    return steps[name]
