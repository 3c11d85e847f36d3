"""``idempotent``: the mark of functions that may run twice with the same arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ...base.errors import ArgumentTypeError, ArgumentValueError

F = TypeVar("F", bound=Callable[..., Any])
IDEMPOTENT_MARK = "_telegrad_idempotent"


def idempotent(function: F) -> F:
    """Mark a function that has the same effect if it runs twice: calls of it may have ``retry=``.

    Put this decorator above ``@staticmethod`` or ``@classmethod``. Functions of C and types have no room for
    the mark: wrap them.

    Raises:
        ArgumentTypeError: it is no function, or has no room for the mark.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> @rpc.idempotent
        ... def double(number):
        ...     return 2 * number
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     print(rpc.rpc_sync("server", double, (21,), retry=rpc.RetryPolicy(attempts=3)))
        42
    """
    target = getattr(function, "__func__", function)
    if not callable(target):
        raise ArgumentTypeError(f"idempotent marks a function; you gave {function!r}")
    try:
        setattr(target, IDEMPOTENT_MARK, True)
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            f"{function!r} has no room for the mark of idempotent; write a function that calls it, and mark that"
        ) from None
    return function


def is_idempotent(function: Any) -> bool:
    """Return whether ``idempotent`` marked a function, or the function of a ``functools.partial``."""
    while isinstance(function, partial):
        function = function.func
    return bool(getattr(function, IDEMPOTENT_MARK, False))


def check_idempotent(function: Any) -> None:
    """Raise an error unless a function may be called with ``retry=``.

    Raises:
        ArgumentValueError: it has no mark.
    """
    if not is_idempotent(function):
        name = getattr(function, "__qualname__", None) or repr(function)
        raise ArgumentValueError(
            f"retry= may run {name} twice; if that has the same effect as once, mark it with @rpc.idempotent, else call it "
            f"without retry="
        )
