"""``Watch``: looks after a call that waits for others: are they lost, have they failed, do they do something else?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import RpcError
from ..core.futures import Future
from ..rpc.extend import Agent
from .calls import CollectiveCall
from .failures import Failures, Standing

WATCH_SECONDS = 2.0  # for a member to answer what it is doing, before it is blamed
Signature = tuple[str, Any]


class Watch:
    """A call that waits.

    Args:
        agent: this process's.
        group: name of the group.
        call: what waits.
        first: seconds of waiting, after which those that are late are asked what they are doing; again after twice as long.
        differs: called with the rank and signature of a member that called something else; returns an error.
    """

    def __init__(
        self,
        agent: Agent,
        group: str,
        call: CollectiveCall,
        first: float,
        differs: Callable[[int, Signature], Exception],
    ) -> None:
        self._agent = agent
        self._failures = agent.part(Failures)
        self._group = group
        self._call = call
        self._next = first
        self._differs = differs
        self._answers: dict[int, Future[Any]] = {}

    def look(self, late: Sequence[int], seconds: float) -> bool:
        """Look after the call; return whether those that are late were asked.

        A question also finds out whether a member is there at all, if nobody had to do with it before.

        Args:
            late: ranks that it waits for.
            seconds: how long it has waited.

        Raises:
            CollectiveError: a member called another collective, or this one failed there.
            WorkerLostError: a member is lost.
        """
        self._failures.check(self._group, self._call.number)
        for rank in late:  # one that is not lost may be late because another is
            if (peer := self._agent.peers.at(rank)).gone:
                raise peer.lost_error()
        for rank in [rank for rank, answer in self._answers.items() if answer.done()]:
            theirs = standing(self._answers.pop(rank)).signature
            if theirs is not None and tuple(theirs) != self._call.signature:
                raise self._differs(rank, theirs)
        asks = seconds > self._next
        if asks:
            self._next = 2 * seconds
            self._answers.update({rank: self._ask(rank) for rank in late if rank not in self._answers})
        return asks

    def blamed(self, late: Sequence[int]) -> list[int]:
        """Return the ranks for which a call has waited in vain: of ``late`` and those whom they wait for, who waits for nobody.

        Raises:
            BaseException: the error with which the collective failed there.
        """
        blamed, asked, left = set[int](), {self._agent.number}, list(late)
        while left:
            answers = {rank: self._ask(rank) for rank in left}
            asked |= answers.keys()
            left = []
            for rank, answer in answers.items():
                theirs = standing(answer)
                if theirs.failure is not None:
                    raise theirs.failure
                left += [other for other in theirs.waits_for if other not in asked]
                blamed |= set() if theirs.waits_for else {rank}
        return sorted(blamed or late)

    def _ask(self, rank: int) -> Future[Any]:
        return self._failures.ask(rank, self._group, self._call.number, WATCH_SECONDS)


def standing(answer: Future[Any]) -> Standing:
    """Return what a member answers to ``Failures.ask``; nothing is known if it does not answer."""
    try:
        return Standing(*answer.wait())
    except RpcError:  # it is busy, or cut off: nothing is known
        return Standing(None, [], None)
