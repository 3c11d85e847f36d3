"""Requests for the pieces of a range, from a worker on another machine than the buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import Array, Tensor
from ..calls.landing_future import LandingFuture
from ..wire.messages import Method
from .pieces import SMALL_BYTES, Pieces

if TYPE_CHECKING:
    from ...core.futures import Future
    from ..agent import Agent


def sent_range(
    agent: Agent, owner: int, number: int, row: Array, start: int, seconds: float, what: str, writes: bool
) -> Pieces:
    """Return a read or write of a range, which has not begun.

    Args:
        agent: asks.
        owner: the number of the buffer's owner.
        number: of the buffer there.
        row: bytes that are filled or sent.
        start: the first byte of the range.
        seconds: what all of it may take; 0 for no limit.
        what: names it in errors.
        writes: it is a write.
    """
    peer = agent.peers.at(owner)
    ends = agent.timers.program.now() + seconds

    def ask(begin: int, end: int) -> Future[Any]:
        left = max(ends - agent.timers.program.now(), 1e-3) if seconds else 0.0
        body: tuple[Any, ...] = (number, start + begin, start + end)
        method, body = (Method.WRITE, (*body, Tensor(row[begin:end]))) if writes else (Method.READ, body)
        future = None if writes else LandingFuture(row[begin:end].data)
        call = agent.caller.begin(peer, method, body, left, what, future=future)
        if seconds:  # its error names the time-out of the whole range; the time when it ends is the same
            call.timeout, call.began = seconds, ends - seconds
        return call.future

    def accept(begin: int, end: int, answer: Any) -> None:
        if not (writes or np.may_share_memory(row, answer.numpy())):  # else it was received there
            row[begin:end] = answer.numpy()

    sends_much = writes and row.size > SMALL_BYTES
    run = agent.threads.run_transfer if sends_much else lambda task: task()
    return Pieces(row.size, ask, accept, _withdraw, run)


def _withdraw(asked: Future[Any]) -> None:
    if isinstance(asked, LandingFuture):
        asked.landing.withdraw()
