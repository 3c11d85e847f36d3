"""``PlainCall``: a call of another worker outside of autograd contexts in a captured step, at its caller.

The callee runs its function as it is: a parameter server's, say. Only the way there is shorter: a number in the place of names,
and raw arrays. The first replay defines the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.extend import Array
from ...core.futures import Future
from ..numbers import GradientMethod
from .call import Arrays, forget
from .messages import pack, refused, unpack
from .plain_parts import OTHER_FORM
from .requests import StepRequests

if TYPE_CHECKING:
    from ...rpc.extend import Peer


class PlainCall:
    """Call of another worker outside of autograd contexts.

    Args:
        requests: of the step.
        peer: the callee.
        number: names the call there.
        name: of the function, for readers.
        timeout: seconds for the call, as in ``rpc.rpc_sync``.
        definition: the function and its arguments, as ``PlainParts`` takes them.
    """

    def __init__(
        self, requests: StepRequests, peer: Peer, number: int, name: str, timeout: float, definition: tuple[Any, ...]
    ) -> None:
        self._requests, self._agent, self._timeout = requests, requests.agent, timeout
        self.peer, self.number, self.name, self._definition = peer, number, name, definition
        self._what = f"the call of {name} on worker {peer.info.name!r}"
        self._defined = False
        self._results: Sequence[Array] = ()
        self._form = ""

    def __del__(self) -> None:
        if self._defined:
            forget(self._agent, self.peer, self.number)

    def returned(self, results: Sequence[Array], form: str) -> None:
        """Note what the recorded call has returned.

        Args:
            results: its arrays.
            form: of the result (``form_of``); empty if the step does not use it.
        """
        self._results, self._form = results, form

    @property
    def where(self) -> str:
        """Name of the callee, for readers."""
        return repr(self.peer.info.name)

    # -- a part of a plan

    def fits(self) -> bool:
        """Return whether a replay can begin: the recorded callee lives."""
        return not self.peer.gone

    @property
    def text(self) -> str:
        """A line for readers."""
        size = sum(each.nbytes for each in self._results)
        return f"call of {self.name} on {self.peer.info.name!r}: number {self.number} there, {size:,} bytes of results"

    def description(self) -> None:
        """Return nothing: no other worker records this."""

    # -- replays

    def send(self, arrays: Sequence[Array]) -> tuple[Future[Any], Sequence[Array]]:
        """Send the arguments; return what ``take`` gets."""
        if not self._defined:
            self._define()
        return self._ask(arrays), arrays

    def _ask(self, arrays: Sequence[Array]) -> Future[Any]:
        seconds = self._requests.seconds(self._timeout)
        return self._requests.ask(self.peer, GradientMethod.PLAIN, pack([self.number], arrays), seconds, self._what)

    def _define(self) -> None:
        body: tuple[Any, ...] = str(self.number), (*self._definition, self._form), {}
        seconds = self._requests.seconds(self._timeout)
        asked = self._requests.ask(self.peer, GradientMethod.DEFINE, body, seconds, self._what)
        self._requests.wait(asked)
        self._defined = True

    def take(self, sent: tuple[Future[Any], Sequence[Array]]) -> Arrays:
        """Return the results.

        Raises:
            RpcError: they have another form than the recorded ones.
            Exception: what the call raises.
        """
        answer, arrays = sent
        body = self._requests.wait(answer)
        if refused(body) is not None:  # it was dropped there, as one of too many; nothing has happened
            self._define()
            body = self._requests.wait(self._ask(arrays))
        words, tensors = unpack(body)
        if OTHER_FORM in words:
            self._requests.valid = False
            raise RpcError(
                f"{self._what} returned something else in a replay than in the recorded step; the next step is recorded anew"
            )
        return Arrays(self._requests.checked(tensors, self._results, self.peer))
