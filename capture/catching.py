"""``catches``: whether an error of a call would be caught in the recorded function; a replay raises it from that function."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from types import CodeType, FrameType

_SILENT = ("CACHE", "NOT_TAKEN", "NOP")
_SUPPRESSES = "suppress"  # of contextlib


def catches(frame: FrameType | None, last: CodeType | None, package: str) -> bool:
    """Return whether a ``try`` statement is around a call that runs.

    Args:
        frame: of the code that calls.
        last: code of the function that is recorded, where the search ends.
        package: whose own code is not looked at, and neither is Python's.
    """
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        ours = module.startswith(package) or module.partition(".")[0] in sys.stdlib_module_names
        if (not ours or module == "__main__") and _tries(frame.f_code, frame.f_lasti):
            return True
        if frame.f_code is last or module == f"{package}capture.recording":
            return False
        frame = frame.f_back
    return False


@functools.lru_cache(1024)
def _tries(code: CodeType, at: int) -> bool:
    """Return whether there is a statement around an instruction that catches errors."""
    instructions = [each for each in dis.get_instructions(code) if each.opname not in _SILENT]
    return any(
        start <= at < stop and (_is_try(instructions, handler) or _SUPPRESSES in code.co_names)
        for start, stop, handler in _blocks(code, instructions)
    )


def _blocks(code: CodeType, instructions: list[dis.Instruction]) -> Iterator[tuple[int, int, int]]:
    """Yield where blocks begin and end whose errors go to a handler, and where that begins."""
    for each in getattr(dis.Bytecode(code), "exception_entries", ()):
        yield each.start, each.end, each.target
    for each in instructions:
        if each.opname == "SETUP_FINALLY":  # Python 3.10
            yield each.offset, each.argval, -1


def _is_try(instructions: list[dis.Instruction], handler: int) -> bool:
    """Return whether a handler is that of a ``try`` statement: not of ``with``, a generator or a comprehension."""
    if handler < 0:
        return True
    names = [each.opname for each in instructions if each.offset >= handler][:2]
    return names[:1] == ["PUSH_EXC_INFO"] and names[1:] != ["WITH_EXCEPT_START"]
