"""``CapturedCall``: a call of another worker in a captured step, at its caller."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.errors import RpcError
from ...capture.extend import Description, GivenUp
from ...core.extend import Array
from ...core.futures import Future
from ..numbers import GradientMethod, GradientTopic
from .messages import pack, refused, unpack
from .replays import Replay
from .requests import StepRequests

if TYPE_CHECKING:
    from ...rpc.extend import Agent, Peer


class Arrays(NamedTuple):
    """Arrays that came from another worker.

    Attributes:
        arrays: the arrays.
    """

    arrays: Sequence[Array | None]


class CapturedCall:
    """Call of another worker in a captured step.

    Args:
        requests: of the step.
        number: names the callee's part there.
        place: of the call among those of the step.
        name: of the function, for readers.
        timeout: seconds for the call, as in ``rpc.rpc_sync``.

    Attributes:
        alone: whether no other call of a replay can be refused after this one has run.
        whole: whether all of its results get gradients.
        arrived: gradients that came back in the recorded step.
    """

    def __init__(self, requests: StepRequests, number: int, place: int, name: str, timeout: float) -> None:
        self._requests, self._agent, self._timeout = requests, requests.agent, timeout
        self.number, self.place, self.name = number, place, name
        self.peer: Peer | None = None
        self.alone = self.whole = False
        self.arrived: Sequence[Array | None] = ()
        self._results: Sequence[Array] = ()
        self._what = ""
        self._described: Description | None = None

    def __del__(self) -> None:
        if self.peer is not None:
            forget(self._agent, self.peer, self.number)

    def goes_to(self, peer: Peer) -> None:
        """Note the callee."""
        self.peer = peer
        self._what = f"the call of {self.name} on worker {peer.info.name!r}"

    def returned(self, results: Sequence[Array]) -> None:
        """Note the results of the recorded call."""
        self._results = results

    @property
    def callee(self) -> Peer:
        """The worker that is called."""
        assert self.peer is not None
        return self.peer

    @property
    def where(self) -> str:
        """Name of the callee, for readers."""
        return repr(self.callee.info.name)

    # -- a part of a plan

    def fits(self) -> bool:
        """Return whether a replay can begin: the recorded callee lives."""
        return not self.callee.gone

    @property
    def text(self) -> str:
        """A line for readers."""
        there, back = _bytes(self._results), _bytes(self.arrived)
        start = f"hop from {self._agent.name!r}" if self._requests.joined else "hop"
        return (
            f"{start} to {self.where}: {self.name} is plan {self.number} there, {there:,} bytes of results, "
            f"{back:,} bytes of gradients back"
        )

    def description(self) -> Description:
        """Return what the callee has recorded. It is asked once."""
        if self._described is None:
            try:
                asked = self._agent.caller.request(
                    self.callee, GradientMethod.DESCRIBE, pack([self.number], ()), self._agent.rpc_timeout, self._what
                )
                self._described = Description.of_json(asked.wait())
            except RpcError as error:
                return Description([f"not known: {error}"])
        return self._described

    # -- replays

    def send(self, replay: Replay, *arrays: Array) -> tuple[Replay, Future[Any]]:
        """Send the arguments; return what ``take`` gets.

        Raises:
            GivenUp: the callee waits for this call, or for one that waits for it.
        """
        if self.callee.number in replay.path:
            raise GivenUp(f"the calls of workers go round in a ring, back to {self.where}", True)
        alone, oldest = self.alone and replay.alone, self._requests.oldest(replay)
        flags = int(alone), int(self.whole)
        words = self.number, replay.number, self.place, oldest, *flags, *replay.words, *replay.path
        seconds = self._requests.seconds(self._timeout)
        answer = self._requests.ask(self.callee, GradientMethod.FORWARD, pack(words, arrays), seconds, self._what)
        replay.called.append(self.callee)
        replay.open.append(answer)
        return replay, answer

    def take(self, sent: tuple[Replay, Future[Any]]) -> Arrays:
        """Return the results.

        Raises:
            GivenUp: the callee has no plan for the call; nothing has happened.
            Exception: what the call raises.
        """
        replay, answer = sent
        replay.open.remove(answer)
        body = self._requests.wait(answer)
        if (why := refused(body)) is not None:
            if not self._requests.joined:  # else the worker that has begun the replay lets all others withdraw
                self._requests.withdraw(replay)
            raise GivenUp(f"worker {self.callee.info.name!r}: {why[0]}", why[1])
        return Arrays(self._requests.checked(unpack(body)[1], self._results, self.callee))


def _bytes(arrays: Sequence[Array | None]) -> int:
    return sum(each.nbytes for each in arrays if each is not None)


def forget(agent: Agent, peer: Peer, number: int) -> None:
    """Tell a worker that a number of this one will not be named again. A finalizer calls this: the I/O loop sends it.

    Args:
        agent: of this worker.
        peer: the worker.
        number: the number.
    """
    if not (agent.closed or peer.gone):
        agent.timers.soon(partial(agent.control.post, peer, GradientTopic.FORGET, str(number).encode()))
