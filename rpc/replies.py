"""Answers of the callee: what they are on the way out, and checks of what functions returned."""

from __future__ import annotations

import sys
from typing import Any

from ..core.errors import ArgumentTypeError, SerializationError
from ..core.futures import Future
from .messages import Outgoing
from .timers import Timer
from .wire.failures import describe_failure
from .wire.header import Flag
from .wire.payload import pack


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


def pack_failure(reply: Reply, error: BaseException, worker: str, limit: int) -> None:
    """Make a reply that carries an exception; it is replaced by a small one if it is too large.

    Args:
        reply: the reply.
        error: the exception.
        worker: name of the worker that answers.
        limit: most bytes of a message.
    """
    reply.flags |= Flag.ERROR
    description = describe_failure(error, worker)
    if sum(len(part) for part in description if part) > limit:
        description = describe_failure(_too_large(description[1]), worker)
    # No limit: an error that is too large for it, whatever it is, was replaced above.
    pack(reply, description, (), True, lambda body: [("the exception", body)], sys.maxsize)
    reply.flags &= ~Flag.PLAIN


def _too_large(kind: str) -> SerializationError:
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
