"""``StepRequests``: the requests of the replays of one captured step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.extend import Array
from ...core.futures import Future, wait_for_outcomes
from ...rpc.extend import UNSET_RPC_TIMEOUT, current_call
from ..numbers import GradientMethod
from .messages import laid_out, pack
from .replays import NO_OWNERS, OwnReplay, Replay, ReplayNews, served_call

if TYPE_CHECKING:
    from ...rpc.extend import Peer
    from .parts import CapturedParts


END_OF_REPLAY = "the end of a replay that another worker cannot take part in"
SHORTEST_SECONDS = 1e-3  # a time-out of 0 is none


class StepRequests:
    """Requests of the replays of one captured step, or of a part of one that calls other workers.

    Args:
        parts: the captured parts of this worker.
        joined: whether it is a part that another worker calls.

    Attributes:
        agent: this worker's agent.
        valid: whether no replay has failed; after one that has, the step is recorded anew.
        owners: the optimizers that step at other workers.
    """

    def __init__(self, parts: CapturedParts, joined: bool = False) -> None:
        self._parts, self.agent, self.joined, self.valid = parts, parts.agent, joined, True
        self.owners = NO_OWNERS

    def begin(self) -> Replay:
        """Begin a replay, or a run of a part in one."""
        number = next(self._parts.replay_numbers)
        if not self.joined:
            return OwnReplay(self._parts.replays, number, ReplayNews(self.owners))
        served = served_call.get()
        assert served is not None  # set where such a part is replayed
        replay = Replay.within(served, number)
        served.undoing.runs.append(partial(self.withdraw, replay))
        return replay

    def oldest(self, replay: Replay) -> int:
        """Return the number of the oldest replay that is not over, of the worker that has begun this one.

        Args:
            replay: the replay.
        """
        if self.joined:
            return replay.oldest
        with suppress(RuntimeError, StopIteration):  # another thread is just ending it
            return next(iter(self._parts.replays))
        return 0

    def seconds(self, timeout: float = UNSET_RPC_TIMEOUT) -> float:
        """Return the time-out of a request in seconds: in a part for another worker, no more than that waits.

        Args:
            timeout: as in ``rpc.rpc_sync``.
        """
        seconds = self.agent.rpc_timeout if timeout == UNSET_RPC_TIMEOUT else timeout
        if not self.joined:
            return seconds
        left = max(current_call().time_left, SHORTEST_SECONDS)
        return min(seconds or left, left) if left < math.inf else seconds

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

    def withdraw(self, replay: Replay) -> None:
        """Let the workers that a run has called put back what they have drawn for it. Its calls are over then.

        Args:
            replay: the run.
        """
        wait_for_outcomes(replay.open)
        body, seconds = pack((replay.number, *replay.words), ()), self.seconds()
        for peer in reversed(dict.fromkeys(replay.called)):
            with suppress(RpcError):  # the eager step tells what is wrong with it
                self.agent.caller.request(peer, GradientMethod.WITHDRAW, body, seconds, END_OF_REPLAY).wait()

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
