"""``StepRequests``: the requests of the replays of one captured step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.extend import Array
from ...core.futures import Future
from ...rpc.extend import UNSET_RPC_TIMEOUT
from .messages import laid_out

if TYPE_CHECKING:
    from ...rpc.extend import Peer
    from .parts import CapturedParts


class Replay:
    """One replay. The oldest that lives bounds what callees keep.

    Args:
        replays: numbers of the worker's replays that are not over.
        number: its number.
    """

    __slots__ = ("_replays", "number")

    def __init__(self, replays: dict[int, None], number: int) -> None:
        replays[number] = None
        self._replays, self.number = replays, number

    def __del__(self) -> None:
        self._replays.pop(self.number, None)


class StepRequests:
    """Requests of the replays of one captured step.

    Args:
        parts: the captured parts of this worker.

    Attributes:
        agent: this worker's agent.
        valid: whether no replay has failed; after one that has, the step is recorded anew.
    """

    def __init__(self, parts: CapturedParts) -> None:
        self._parts, self.agent, self.valid = parts, parts.agent, True

    def begin(self) -> Replay:
        """Begin a replay."""
        return Replay(self._parts.replays, next(self._parts.replay_numbers))

    def oldest_replay(self) -> int:
        """Return the number of this worker's oldest replay that is not over; 0 if another thread is just ending it."""
        with suppress(RuntimeError, StopIteration):
            return next(iter(self._parts.replays))
        return 0

    def seconds(self, timeout: float) -> float:
        """Return the time-out of a call in seconds.

        Args:
            timeout: as in ``rpc.rpc_sync``.
        """
        return self.agent.rpc_timeout if timeout == UNSET_RPC_TIMEOUT else timeout

    def ask(self, peer: Peer, method: int, body: Any, seconds: float, what: str) -> Future[Any]:
        """Send a request; return the future of the answer.

        Args:
            peer, method, body, seconds, what: as for ``Caller.request``.
        """
        try:
            return self.agent.caller.request(peer, method, body, seconds, what)
        except BaseException:
            self.valid = False
            raise

    def wait(self, answer: Future[Any]) -> Any:
        """Wait for an answer, and return its body.

        Raises:
            Exception: its error.
        """
        try:
            return answer.wait()
        except BaseException:
            self.valid = False
            raise
        finally:
            del answer

    def checked(self, arrays: Sequence[Array | None], like: Sequence[Array | None], peer: Peer) -> list[Any]:
        """Return the arrays of an answer, laid out as the recorded ones.

        Args:
            arrays: those of the answer.
            like: the recorded arrays.
            peer: the worker that has answered.

        Raises:
            RpcError: they have other shapes or dtypes.
        """
        if [_kind(each) for each in arrays] != [_kind(each) for each in like]:
            self.valid = False
            raise RpcError(f"worker {peer.info.name!r} answered the replay of a step with other arrays than recorded")
        return [None if one is None or other is None else laid_out(one, other) for one, other in zip(arrays, like)]


def _kind(array: Array | None) -> Any:
    return None if array is None else (array.shape, array.dtype)
