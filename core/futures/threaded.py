"""Futures of functions that block: each runs in a thread of its own, so that a program in asyncio can await it."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from .attempts import attempt
from .future import Future, complete_once

T = TypeVar("T")


def in_thread(function: Callable[..., T], *args: Any) -> Future[T]:
    """Run a function in a new thread, with this one's context variables, and return the future of its result.

    A future that is given up does not stop it: what blocks has deadlines of its own.

    Args:
        function: what blocks.
        args: its arguments.
    """
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        complete_once(future, *attempt(context.run, function, *args))

    threading.Thread(target=run, name=f"telegrad-{function.__name__}", daemon=True).start()
    return future
