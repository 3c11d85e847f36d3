"""The lines of the user's program that a call came from."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType

PACKAGE = __name__.rpartition(".capture")[0]


def user_line() -> str:
    """Return the innermost line on the stack that is not the library's, as ``file.py:12``."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith((f"{PACKAGE}.", "contextlib", "numpy")):
            break
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def line_in(code: CodeType | None) -> int | None:
    """Return the line at which the innermost call of a function is; ``None`` if it does not run."""
    frame = None if code is None else sys._getframe(1)
    while frame is not None:
        if frame.f_code is code:
            return frame.f_lineno
        frame = frame.f_back
    return None


def is_outermost(frame: FrameType) -> bool:
    """Return whether a call of a function is in no other call of it."""
    outer = frame.f_back
    while outer is not None and outer.f_code is not frame.f_code:
        outer = outer.f_back
    return outer is None
