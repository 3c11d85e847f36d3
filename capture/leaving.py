"""Uses of what a call has returned: ``only_leaves``: a number can only become a part of the function's result; ``drops``: none.

Python's numbers do not tell who looks at them. So the rest of the function's code is looked at: it may put the number into
local variables, tuples, lists and dictionaries, read other numbers, and return.
"""

from __future__ import annotations

import dis
from types import FrameType

# Prefixes of the instructions' names, which differ from version to version of Python.
_LOADS = ("LOAD_FAST", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_DEREF", "LOAD_GLOBAL")
_HARMLESS = (
    *_LOADS,
    *("STORE_FAST", "POP_TOP", "COPY", "SWAP", "NOP", "NOT_TAKEN", "BUILD_TUPLE", "BUILD_LIST", "BUILD_MAP"),
    "BUILD_CONST_KEY_MAP",
)
_SILENT = ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG")
_METHODS = ("item", "detach")  # a number has none of these


def only_leaves(frame: FrameType) -> bool:
    """Return whether what the call that a function is in returns can only become a part of the function's result.

    Args:
        frame: of the function.
    """
    method = False
    for each in dis.get_instructions(frame.f_code):
        if each.offset <= frame.f_lasti or each.opname in _SILENT:
            continue
        if each.opname.startswith("RETURN_"):
            return True
        if each.opname in ("LOAD_METHOD", "LOAD_ATTR"):
            method = each.argval in _METHODS
            if not method:
                return False
        elif each.opname == "CALL" and method and each.arg == 0:
            method = False
        elif method or not each.opname.startswith(_HARMLESS):
            return False
    return False


def drops(frame: FrameType | None) -> bool:
    """Return whether a function does not use what the call that it is in returns, which is a statement of its own.

    Args:
        frame: of the function.
    """
    if frame is None:
        return False
    rest = (each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti)
    return next((each.opname for each in rest if each.opname not in _SILENT), "") == "POP_TOP"
