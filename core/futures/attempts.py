"""``attempt``: calls code that may raise anything, such as a user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def attempt(function: Callable[..., T], *args: Any) -> tuple[T | None, BaseException | None]:
    """Return the result of a function and ``None``, or ``None`` and what it raised, which may be ``SystemExit``.

    Args:
        function: what to call.
        args: its arguments.
    """
    try:
        return function(*args), None
    except BaseException as error:
        return None, error
