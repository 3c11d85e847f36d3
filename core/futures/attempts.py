"""``attempt`` and ``attempt_async``: call code that may raise anything, such as a user's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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


async def attempt_async(function: Callable[[], Awaitable[T]]) -> tuple[T | None, BaseException | None]:
    """Return what awaiting the result of a function gives, as ``attempt`` does.

    Args:
        function: what to call.
    """
    try:
        return await function(), None
    except BaseException as error:
        return None, error
