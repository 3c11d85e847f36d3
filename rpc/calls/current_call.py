"""``rpc.current_call``: the remote call for which a function runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import RpcError
from ..running import call_variable

if TYPE_CHECKING:
    from ...core.futures import Future
    from ..links.worker_info import WorkerInfo
    from .server_call import ServerCall


class CurrentCall:
    """Remote call for which a function, a coroutine or a generator runs.

    Example:
        >>> from telegrad import rpc
        >>> def count_until_cancelled():
        ...     call = rpc.current_call()
        ...     number = 0
        ...     while not call.cancelled:
        ...         number += 1
    """

    __slots__ = ("_call",)

    def __init__(self, call: ServerCall) -> None:
        self._call = call

    @property
    def caller(self) -> WorkerInfo:
        """The worker that made the call."""
        return self._call.caller

    @property
    def cancelled(self) -> bool:
        """True when the answer is not needed any more: the caller cancelled the call, timed out or is lost."""
        return self._call.cancelled or self._call.left == 0.0

    @property
    def cancellation(self) -> Future[bool]:
        """Future that completes with True when the call is cancelled, and with False when it is answered."""
        return self._call.cancellation()

    @property
    def time_left(self) -> float:
        """Seconds until the caller's deadline; infinite if it has none."""
        return self._call.left


def current_call() -> CurrentCall:
    """Return the remote call for which this function runs.

    Raises:
        RpcError: it does not run for a call.
    """
    call = call_variable.get()
    if call is None:
        raise RpcError(
            "no remote call runs here; use rpc.current_call() in a function that another worker called, and in its thread"
        )
    return CurrentCall(call)
