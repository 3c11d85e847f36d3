"""``CapturedStep``: the distributed part of a captured step, at the worker that makes it.

In a replay arrays go to the callees and results come back. Then gradients go to each callee when they are complete, and
gradients come back. A callee steps its optimizer when it has all gradients of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from ...base.errors import RpcError
from ...core.extend import Array, profiles
from ...core.futures import Future, wait_for_outcomes
from ...rpc.extend import current_agent
from ...rref.extend import is_released
from ..current_context import current_context
from ..local_optimizer import LocalOptimizer
from ..numbers import GradientMethod
from ..optimizer import check_outcomes
from .call import Arrays, CapturedCall
from .messages import pack, unpack
from .plain import PlainCall
from .replays import Replay, as_text
from .requests import StepRequests

if TYPE_CHECKING:
    from ...rpc.extend import Peer
    from ...rref import RRef


class CapturedStep:
    """Distributed part of a captured step.

    Args:
        requests: its requests.

    Attributes:
        references: to the objects whose methods it calls, and those among the arguments. It keeps none alive.
        calls: of other workers, in order.
        plain: those outside of the context.
        messages: those with gradients, in order.
        optimizers: the other workers whose optimizers step.
        far: those of them that this worker does not call itself.
        arrivals: gradients that came in the recorded pass of a part for another worker, in order: places of calls, and arrays.
    """

    def __init__(self, requests: StepRequests) -> None:
        self._requests, self._agent = requests, requests.agent
        self.references: list[ReferenceType[RRef[Any]]] = []
        self.calls: list[CapturedCall] = []
        self.plain: list[PlainCall] = []
        self.messages: list[GradientMessage] = []
        self.optimizers: list[Peer] = []
        self.far: list[Peer] = []
        self.arrivals: list[list[tuple[int, list[Array | None]]]] = []

    # -- a part of a plan

    def fits(self) -> bool:
        """Return whether a replay can begin: with this agent and these references, and nothing watches its calls."""
        if not self._requests.valid or current_context.get() is not None or profiles.get():
            return False
        for each in self.references:
            if (reference := each()) is not None and is_released(reference):
                return False
        with suppress(RpcError):
            return current_agent() is self._agent and not self._agent.closed
        return False

    @property
    def text(self) -> str:
        """A line for readers."""
        where = ", ".join(sorted(repr(peer.info.name) for peer in self.optimizers))
        step = f"; the optimizer steps at {where} with backward" if where else ""
        kind = "part of a distributed step" if self._requests.joined else "distributed step"
        trips = len(self.calls) + len(self.messages) + len(self.plain)
        return f"{kind}: {trips} round trip{'s' * (trips != 1)}{step}"

    def description(self) -> None:
        """Return nothing: no other worker records this."""

    # -- replays

    def step(
        self,
        replay: Replay,
        optimizers: Mapping[str, tuple[LocalOptimizer, Sequence[Array | None]] | None],
    ) -> None:
        """Step the optimizers of this worker, and raise the errors of all.

        Args:
            replay: the replay.
            optimizers: by the name of the owner, in order: this worker's optimizer and its gradients; ``None`` for others.

        Raises:
            Exception: the error of an optimizer's step, as ``DistributedOptimizer.step`` raises it.
        """
        news = replay.news
        for peer in self.far:
            if peer.number not in news.reached:
                self._step_at(peer, replay)
        failed = {each.info.name for each in self.optimizers if each.number in news.failed} if news.failed else ()
        steps = {
            name: self._own_step(*mine) if mine is not None else self._failure(name, replay)
            for name, mine in optimizers.items()
            if mine is not None or name in failed
        }
        if failed or any(not each.known() for each in steps.values()):
            wait_for_outcomes(steps.values())
            check_outcomes(steps, "the step")

    def _step_at(self, peer: Peer, replay: Replay) -> None:
        """Let an optimizer step without gradients, as in an eager step that has not called its worker."""
        message = GradientMessage(self._requests, (), peer)
        message.take(message.send(replay))

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
        calls: the calls.
        peer: the worker.
    """

    def __init__(self, requests: StepRequests, calls: Sequence[CapturedCall], peer: Peer) -> None:
        self._requests, self.peer = requests, peer
        self._places = as_text([each.place for each in calls])
        self._arrived = [each for call in calls for each in call.arrived]
        self._what = f"the backward of a captured step with {self.peer.info.name!r}"

    @property
    def where(self) -> str:
        """Name of the callee, for readers."""
        return repr(self.peer.info.name)

    def send(self, replay: Replay, *gradients: Array | None) -> tuple[Replay, Future[Any]]:
        """Send the gradients, for a backward pass there; return what ``take`` gets."""
        requests = self._requests
        words = replay.news.owners.text, self._places, replay.number, *replay.words
        seconds = requests.seconds()
        body = pack(words, gradients)
        return replay, requests.ask(self.peer, GradientMethod.BACKWARD, body, seconds, self._what)

    def take(self, sent: tuple[Replay, Future[Any]]) -> Arrays:
        """Return the gradients of the arguments, one call after the other.

        Raises:
            Exception: what the backward pass raises.
        """
        replay, answer = sent
        words, tensors = unpack(self._requests.wait(answer))
        replay.news.note(self.peer.number, *words)
        return Arrays(self._requests.checked(tensors, self._arrived, self.peer))
