"""``CapturedStep``: the distributed part of a captured step, at the worker that makes it.

In a replay arrays go to the callees and results come back. Then gradients go to each callee when they are complete, and
gradients come back. A callee steps its optimizer when it has all gradients of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.extend import Array, profiles
from ...core.futures import Future, wait_for_outcomes
from ...rpc.extend import current_agent
from ..current_context import current_context
from ..local_optimizer import LocalOptimizer
from ..numbers import GradientMethod
from ..optimizer import results_of
from .call import Arrays, CapturedCall
from .messages import pack, unpack
from .requests import Replay, StepRequests

if TYPE_CHECKING:
    from ...rpc.extend import Peer


class CapturedStep:
    """Distributed part of a captured step.

    Args:
        requests: its requests.

    Attributes:
        calls: of other workers, in order.
        messages: those with gradients, in order.
        optimizers: numbers of the optimizers of other workers, by their owners.
    """

    def __init__(self, requests: StepRequests) -> None:
        self._requests, self._agent = requests, requests.agent
        self.calls: list[CapturedCall] = []
        self.messages: list[GradientMessage] = []
        self.optimizers: dict[Peer, int] = {}

    # -- a part of a plan

    def fits(self) -> bool:
        """Return whether a replay can begin: this worker's agent makes it, and nothing watches its calls."""
        if not self._requests.valid or current_context.get() is not None or profiles.get():
            return False
        with suppress(RpcError):
            return current_agent() is self._agent and not self._agent.closed
        return False

    @property
    def text(self) -> str:
        """A line for readers."""
        where = ", ".join(sorted(repr(peer.info.name) for peer in self.optimizers))
        step = f"; the optimizer steps at {where} with backward" if where else ""
        return f"distributed step: {len(self.calls) + len(self.messages)} round trips{step}"

    def description(self) -> None:
        """Return nothing: no other worker records this."""

    # -- replays

    def step(
        self,
        replay: Replay,
        answers: Sequence[Arrays],
        optimizers: Mapping[str, tuple[LocalOptimizer, Sequence[Array | None]] | None],
    ) -> None:
        """Step the optimizers of this worker, and raise the errors of all.

        Args:
            replay: the replay.
            answers: those to its gradients.
            optimizers: by the name of the owner, in order: this worker's optimizer and its gradients; ``None`` for others.

        Raises:
            Exception: the error of an optimizer's step, as ``DistributedOptimizer.step`` raises it.
        """
        failed = {answer.failed for answer in answers}
        steps = {
            name: self._own_step(*mine) if mine is not None else self._failure(name, replay)
            for name, mine in optimizers.items()
            if mine is not None or name in failed
        }
        if failed != {""} or any(not each.known() for each in steps.values()):
            wait_for_outcomes(steps.values())
            results_of(steps, "the step")

    def _own_step(self, optimizer: LocalOptimizer, gradients: Sequence[Array | None]) -> Future[None]:
        agent = self._agent
        done = agent.threads.new_context().run(optimizer.step_with, gradients)
        if done.known():
            return done
        return agent.caller.waits.with_deadline(
            done, agent.rpc_timeout, f"the optimizer's step on worker {agent.name!r}"
        )

    def _failure(self, name: str, replay: Replay) -> Future[Any]:
        self._requests.valid = False
        peer = next(each for each in self.optimizers if each.info.name == name)
        body = pack([replay.number], ())
        what = f"the optimizer's step on worker {name!r}"
        return self._requests.ask(peer, GradientMethod.FAILURE, body, self._agent.rpc_timeout, what)


class GradientMessage:
    """Message with the gradients of the results of some calls of one worker, which are complete at the same time.

    Args:
        requests: of the step.
        optimizers: numbers of the optimizers of other workers, by their owners.
        calls: the calls.
    """

    def __init__(self, requests: StepRequests, optimizers: Mapping[Peer, int], calls: Sequence[CapturedCall]) -> None:
        self._requests, self._optimizers = requests, optimizers
        self.peer, self._places = calls[0].callee, [each.place for each in calls]
        self._arrived = [each for call in calls for each in call.arrived]
        self._what = f"the backward of a captured step with {self.peer.info.name!r}"

    @property
    def where(self) -> str:
        """Name of the callee, for readers."""
        return repr(self.peer.info.name)

    def send(self, replay: Replay, *gradients: Array | None) -> Future[Any]:
        """Send the gradients, for a backward pass there; return the future of the answer."""
        requests = self._requests
        words = replay.number, self._optimizers.get(self.peer, 0), *self._places
        seconds = requests.agent.rpc_timeout
        return requests.ask(self.peer, GradientMethod.BACKWARD, pack(words, gradients), seconds, self._what)

    def take(self, answer: Future[Any]) -> Arrays:
        """Return the gradients of the arguments, one call after the other.

        Raises:
            Exception: what the backward pass raises.
        """
        (failed,), tensors = unpack(self._requests.wait(answer))
        failing = self.peer.info.name if failed == "1" else ""
        return Arrays(self._requests.checked(tensors, self._arrived, self.peer), failing)
