"""The lines of the user's program that a call came from."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple

PACKAGE = __name__.rpartition(".capture")[0]


class Place(NamedTuple):
    """Place in the user's program.

    Attributes:
        text: the innermost line that is not the library's, as ``file.py:12``.
        line: of the recorded function, where its innermost call is; ``None`` if it does not run.
    """

    text: str
    line: int | None


def place_in(code: CodeType | None) -> Place:
    """Return where a function is; when it has ended, its first line.

    Args:
        code: of the function, if it is one of Python.
    """
    line = line_in(code)
    ended = code is not None and line is None
    return Place(_line_of(code, code.co_firstlineno) if code is not None and ended else user_line(code), line)


def user_line(last: CodeType | None = None) -> str:
    """Return the innermost line on the stack that is not the library's, as ``file.py:12``.

    Args:
        last: code where the search ends, if it is one of the library.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code is not last:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith((f"{PACKAGE}.", "contextlib", "numpy")):
            break
        frame = frame.f_back
    return _line_of(frame.f_code, frame.f_lineno)


def _line_of(code: CodeType, line: int) -> str:
    return f"{os.path.basename(code.co_filename)}:{line}"


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
