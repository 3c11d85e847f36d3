"""Process of one library in the local benchmark: it measures a case for each line on stdin that names one.

``local_contender.py telegrad`` or ``torch``, with the interpreter that has it. Answers are lines of JSON on stdout: the
versions, then one for every round of a case. A case is built when it is first named, and stays warm.
"""

from __future__ import annotations

import importlib
import platform
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import say
    from .local_cases import CASES, Step, measure
else:
    # A script's own folder is on its path; the package is not, in an interpreter that has only the other library.
    from answers import say
    from local_cases import CASES, Step, measure

WARM_UP_S = 0.1


def main(name: str, seconds: float) -> None:
    """Answer until stdin ends; each round takes about ``seconds``."""
    lib = importlib.import_module(name)
    if hasattr(lib, "set_num_threads"):
        lib.set_num_threads(1)
    say({"ready": {"Python": platform.python_version(), name: lib.__version__}})
    steps: dict[str, Step] = {}
    for line in sys.stdin:
        case = line.strip()
        try:
            say({"case": case, "seconds": measure(steps.get(case) or built(lib, case, steps), seconds)})
        except Exception as error:  # reported to the runner, which shows it
            say({"case": case, "error": f"{type(error).__name__}: {error}"})


def built(lib: Any, name: str, steps: dict[str, Step]) -> Step:
    """Return the step of the case called ``name``, warmed up."""
    (case,) = (case for case in CASES if case.name == name)
    steps[name] = case.build(lib)
    measure(steps[name], WARM_UP_S)
    return steps[name]


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
