"""``Doubts``: children in a mesh call that say nothing for long are asked whether they live.

One that is stopped, or holds the interpreter lock, may do so until the call's deadline has passed, and is not lost before. The
results of those below it need not wait for it: if it gives no sign of life, they are asked directly. Whether it goes on later
does not matter: no function runs twice, and the results that come first are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ...base.errors import RpcError, RpcTimeoutError
from ...core.extend import profiles
from ..wire.messages import Method

if TYPE_CHECKING:
    from ...core.futures import Future
    from ..agent import Agent
    from .hop import Hop
    from .relaying import AskChild

DOUBT_SHARE = 0.5  # of the time that is left, after which a child that has not answered is asked
SIGN_SHARE = 0.25  # of the time that is left then, in which it has to give a sign of life
LEAST_DOUBT_SECONDS = 0.5  # calls with less time left are over too soon


class Doubts:
    """Doubts of one worker about its children in one call.

    Args:
        agent: the agent.
    """

    __slots__ = ("_agent", "_at")

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._at = 0.0  # when children are asked, by the clock of the program; 0 for never

    def begin(self, asks: Sequence[AskChild], left: float) -> float:
        """Note that children are asked for results; return the seconds until ``ask`` is due, ``inf`` for never.

        Args:
            asks: the requests.
            left: seconds until the deadline; 0 for none.
        """
        passed_on = any(len(subtree) > 1 for subtree, _ in asks)
        if self._at or left < LEAST_DOUBT_SECONDS or not passed_on or profiles.get():
            return math.inf
        return self._after(left * DOUBT_SHARE)

    def ask(self, hops: Iterable[Hop], deadline: float, bypass: Callable[[Hop], object]) -> float:
        """Ask the children that have others below them, if it is time; return the seconds until that is due again.

        Args:
            hops: the requests that are under way.
            deadline: of the call, by the clock of the program.
            bypass: called with a request to a child that gives no sign of life.
        """
        now = self._agent.timers.program.now()
        if not self._at or now < self._at:
            return self._at - now if self._at else math.inf
        self._at, left = 0.0, deadline - now
        doubted = [hop for hop in hops if len(hop.subtree) > 1]
        for hop in doubted:
            self._ask_for_sign(hop, left * SIGN_SHARE, bypass)
        return self._after(left * DOUBT_SHARE) if doubted and left > LEAST_DOUBT_SECONDS else math.inf

    def _after(self, seconds: float) -> float:
        self._at = self._agent.timers.program.now() + seconds
        return seconds

    def _ask_for_sign(self, hop: Hop, seconds: float, bypass: Callable[[Hop], object]) -> None:
        request, peer = hop.request, self._agent.peers.at(hop.head)
        if request is None or request.attached.notes:  # with gradients each result has to come by one way
            return
        what = f"a question to {peer.info.name!r}"
        try:
            sign = self._agent.questions.ask(peer, Method.EXPLAIN, request.call_id, seconds, what)
        except RpcError:
            return  # it is known soon whether it is lost

        def signed(sign: Future[object]) -> None:
            if isinstance(sign.exception(), RpcTimeoutError):
                bypass(hop)

        sign.add_done_callback(signed)
