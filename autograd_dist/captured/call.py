"""``CapturedCall``: the call of another worker in a captured step, at its caller.

A replay has two round trips: arrays there and results back; gradients there, where the backward pass and the optimizer's step
run, and gradients back.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ...capture.extend import GivenUp
from ...core.errors import RpcError
from ...core.extend import Array, Tensor, profiles
from ...core.futures import Future
from ...rpc.extend import UNSET_RPC_TIMEOUT, current_agent
from ..current_context import current_context
from ..local_optimizer import LocalOptimizer
from ..numbers import GradientMethod, GradientTopic
from .messages import laid_out, pack, refused, unpack

if TYPE_CHECKING:
    from ...rpc.extend import Agent, Peer
    from .parts import CapturedParts


class Sent:
    """A replay after the first round trip. The caller's oldest one that lives bounds what its callee keeps.

    Args:
        replays: numbers of the caller's replays that are not over.
        number: its number.
        arrays: the results.
    """

    __slots__ = ("_replays", "arrays", "number")

    def __init__(self, replays: dict[int, None], number: int, arrays: Sequence[Array]) -> None:
        self._replays, self.number, self.arrays = replays, number, arrays

    def __del__(self) -> None:
        self._replays.pop(self.number, None)


class Returned:
    """The answer to gradients.

    Args:
        sent: the replay.
        failed: whether the optimizer's step of the callee has raised an error.
        arrays: gradients of the tensors that were sent.
    """

    __slots__ = ("arrays", "failed", "sent")

    def __init__(self, sent: Sent, failed: bool, arrays: Sequence[Array | None]) -> None:
        self.sent, self.failed, self.arrays = sent, failed, arrays


class CapturedCall:
    """Call of another worker in a captured step.

    Args:
        parts: the captured parts of this worker.
        number: names the callee's part there.
        name: of the function, for readers.
        timeout: seconds for the call, as in ``rpc.rpc_sync``.
    """

    def __init__(self, parts: CapturedParts, number: int, name: str, timeout: float) -> None:
        self._parts, self._agent, self.number, self.name, self._timeout = parts, parts.agent, number, name, timeout
        self.peer: Peer | None = None
        self.optimizer: int | None = None
        self._valid = True
        self._results: Sequence[Array] = ()
        self._arrived: Sequence[Array | None] = ()

    def __del__(self) -> None:
        if self.peer is not None:
            _forget(self._agent, self.peer, self.number)

    def goes_to(self, peer: Peer) -> None:
        """Note the callee."""
        self.peer = peer

    def is_like(self, results: Sequence[Array], arrived: Sequence[Array | None]) -> None:
        """Note the arrays of the recorded call: results, and gradients that came back."""
        self._results, self._arrived = results, arrived

    @property
    def callee(self) -> Peer:
        """The worker that is called."""
        assert self.peer is not None
        return self.peer

    # -- a part of a plan

    def fits(self) -> bool:
        """Return whether a replay can begin: this worker's agent calls the recorded callee, and nothing watches its calls."""
        if not self._valid or self.callee.gone or current_context.get() is not None or profiles.get():
            return False
        with suppress(RpcError):
            return current_agent() is self._agent and not self._agent.closed
        return False

    @property
    def text(self) -> str:
        """A line for readers."""
        there, back = _bytes(self._results), _bytes(self._arrived)
        step = "" if self.optimizer is None else " and its optimizer's step"
        return (
            f"hop to {self.callee.info.name!r}: {self.name} is plan {self.number} there, {there:,} bytes of results; backward"
            f"{step} there, {back:,} bytes of gradients; 2 round trips"
        )

    # -- replays

    def forward(self, *arrays: Array) -> Sent:
        """Send the arguments, and return the results.

        Raises:
            GivenUp: the callee has no plan for them; nothing has happened.
            Exception: what the call raises.
        """
        number, replays = next(self._parts.replay_numbers), self._parts.replays
        replays[number] = None
        sent = Sent(replays, number, ())
        words = self.number, number, self._parts.oldest_replay()
        seconds = self._agent.rpc_timeout if self._timeout == UNSET_RPC_TIMEOUT else self._timeout
        what = f"the call of {self.name} on worker {self.callee.info.name!r}"
        body = self._ask(GradientMethod.FORWARD, pack(words, arrays), seconds, what)
        if (why := refused(body)) is not None:
            raise GivenUp(f"worker {self.callee.info.name!r}: {why[0]}", why[1])
        _, tensors = unpack(body)
        sent.arrays = self._checked(tensors, self._results)
        return sent

    def backward(self, sent: Sent, *gradients: Array | None) -> Returned:
        """Send the gradients of the results, for a backward pass and a step; return those of the arguments.

        Raises:
            Exception: what the backward pass raises.
        """
        words = [sent.number] + ([] if self.optimizer is None else [self.optimizer])
        what = f"the backward of a captured step with {self.callee.info.name!r}"
        body = self._ask(GradientMethod.BACKWARD, pack(words, gradients), self._agent.rpc_timeout, what)
        (failed,), tensors = unpack(body)
        return Returned(sent, failed == "1", self._checked(tensors, self._arrived))

    def step(self, returned: Returned, steps: Sequence[tuple[LocalOptimizer, Sequence[Array | None]]]) -> None:
        """Step the optimizers of this worker, and raise the error of the callee's, if there is one.

        Raises:
            Exception: the error of an optimizer's step.
        """
        agent = self._agent
        name = agent.name
        for optimizer, gradients in steps:
            done = agent.threads.new_context().run(optimizer.step_with, gradients)
            agent.caller.waits.with_deadline(done, agent.rpc_timeout, f"the optimizer's step on worker {name!r}").wait()
        if returned.failed:
            what = f"the optimizer's step on worker {self.callee.info.name!r}"
            self._ask(GradientMethod.FAILURE, pack([returned.sent.number], ()), agent.rpc_timeout, what)

    def _ask(self, method: int, body: Any, seconds: float, what: str) -> Any:
        answer: Future[Any] = self._agent.caller.request(self.callee, method, body, seconds, what)
        try:
            return answer.wait()
        except BaseException:
            self._valid = False  # recorded anew
            raise
        finally:
            del answer

    def _checked(self, tensors: Sequence[Tensor | None], like: Sequence[Array | None]) -> list[Any]:
        arrays = [None if each is None else each._array for each in tensors]
        if [_kind(each) for each in arrays] != [_kind(each) for each in like]:
            self._valid = False
            raise RpcError(
                f"worker {self.callee.info.name!r} answered a replay of {self.name} with other arrays than recorded"
            )
        return [None if one is None or other is None else laid_out(one, other) for one, other in zip(arrays, like)]


def _kind(array: Array | None) -> Any:
    return None if array is None else (array.shape, array.dtype)


def _bytes(arrays: Sequence[Array | None]) -> int:
    return sum(each.nbytes for each in arrays if each is not None)


def _forget(agent: Agent, peer: Peer, number: int) -> None:
    """Tell a worker that its part will not be named again. A finalizer calls this: the I/O loop sends it."""
    if not (agent.closed or peer.gone):
        agent.timers.soon(partial(agent.control.post, peer, GradientTopic.FORGET, str(number).encode()))
