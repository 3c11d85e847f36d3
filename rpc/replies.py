"""Answers of the callee: what they are on the way out, and checks of what functions returned."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentTypeError, SerializationError
from ..core.futures import Future
from .messages import Outgoing
from .timers import Timer


class Reply(Outgoing):
    """Answer to a request. ``timer``, set when it is queued, drops it at the deadline of its call."""

    __slots__ = ("timer",)

    timer: Timer | None

    def dequeued(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


def label_result(value: Any) -> list[tuple[str, Any]]:
    """Name the parts of an answer, for error messages."""
    return [("the result", value)]


def too_large(kind: str) -> SerializationError:
    """Return the error that is sent in the place of one that is too large to send."""
    return SerializationError(
        f"the call raised {kind}, which is larger than GrpcRpcBackendOptions(max_message_bytes=) of the callee; raise it there"
    )


def check_future(result: Any) -> Future[Any]:
    """Return the result of a function marked with ``async_execution``, which must be a future.

    Raises:
        ArgumentTypeError: it is no future.
    """
    if not isinstance(result, Future):
        raise ArgumentTypeError(
            f"a function marked with async_execution must return a Future; it returned {type(result).__name__}"
        )
    return result
