"""Plugin of pytest: lets it report an error with a frame whose line Python does not know.

Python gives some instructions no line, such as those of generated code: ``tb_lineno`` is ``None`` there. Pytest computes with
that number. Without this plugin, the failure of one such test is an internal error, which ends the whole run.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

import pytest

NO_INSTRUCTION = -1  # for ``traceback``: nothing is known of the columns, too


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> None:
    """Give all frames of a test's error a line, before its report is made."""
    if call.excinfo is None:
        return
    for error in _all_errors(call.excinfo.value):
        error.__traceback__ = with_lines(error.__traceback__)
    if call.excinfo.value.__traceback__ is not call.excinfo.tb:
        call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)


def _all_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes and contexts, and those of groups, each once."""
    todo, seen = [error], set()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [other for other in (each.__cause__, each.__context__) if other is not None]
        todo += getattr(each, "exceptions", ())  # of a group, which is new in Python 3.11


def with_lines(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback all of whose frames have a line: that of their function, where Python knows none."""
    entries = []
    following = traceback
    while following is not None:
        entries.append(following)
        following = following.tb_next
    if all(each.tb_lineno is not None for each in entries):
        return traceback
    for each in reversed(entries):
        place = (each.tb_lasti, each.tb_lineno)
        if each.tb_lineno is None:
            place = (NO_INSTRUCTION, each.tb_frame.f_code.co_firstlineno)
        following = TracebackType(following, each.tb_frame, *place)
    return following
