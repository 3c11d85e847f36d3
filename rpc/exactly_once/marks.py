"""``exactly_once``: the mark of functions whose calls count once, also over deaths."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ...base.errors import ArgumentTypeError
from ..functions.calling import EXACTLY_ONCE_MARK, is_async_execution

F = TypeVar("F", bound=Callable[..., Any])


def exactly_once(function: F) -> F:
    """Mark a function whose calls have their effect once, also if the callee or the caller dies and is started again.

    ``rpc_async`` and ``rpc_sync`` call it so by themselves. The callee runs such functions one at a time, those of one caller
    in the order of its calls, once ``rpc.call_journal().open()`` was called there. Its arguments are tensors, arrays, numbers,
    texts, bytes, ``None``, and lists, tuples and dicts of these; tensors arrive without their graph.

    Args:
        function: of a module that both workers can import, or of their common main script. It changes the callee's own state,
            which a checkpoint of the callee has together with the journal.

    Raises:
        ArgumentTypeError: it is no plain function, or one whose effect may come after it has returned: ``async def``, a
            generator, or marked by ``functions.async_execution``.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> total = []
        >>> @rpc.exactly_once
        ... def add(number):
        ...     total.append(number)
        ...     return sum(total)
    """
    if not inspect.isfunction(function):
        raise ArgumentTypeError(f"exactly_once marks a function; you gave {function!r}")
    later = inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
    if later or inspect.isasyncgenfunction(function) or is_async_execution(function):
        raise ArgumentTypeError(
            f"exactly_once marks a function that has done its work when it returns, and {function.__qualname__} has not: "
            "let it return the result itself"
        )
    setattr(function, EXACTLY_ONCE_MARK, True)
    return function
