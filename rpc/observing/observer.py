"""Part of an agent that answers what its worker does, and asks other workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...core.errors import RpcError
from ...core.futures import Future, wait_for_outcomes
from ..wire.messages import Method
from .gather import observe_worker
from .json_records import decode_record, encode_record
from .records import Observation, ObservedContext, ObservedReferences

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.serving import ServerCall
    from ..links.peer import Peer

MOST_ANSWER_BYTES = 16 << 20
NO_REFERENCES = ObservedReferences([], 0)


class Observer:
    """Part of an agent that answers ``observe`` requests, in a reader's thread, and makes them.

    Attributes:
        references: returns the references that the worker owns, and those of others that it holds; the layer above sets it.
        contexts: returns the live contexts; the layer above sets it.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.references: Callable[[], tuple[ObservedReferences, ObservedReferences]] = lambda: (
            NO_REFERENCES,
            NO_REFERENCES,
        )
        self.contexts: Callable[[], list[ObservedContext]] = list
        agent.server.serve(Method.OBSERVE, self._answer, quick=True)

    def observe(self, peers: Sequence[Peer], timeout: float) -> list[Observation]:
        """Return the observation of each worker; one that does not answer is shown with what the others know of it.

        Args:
            peers: the workers.
            timeout: seconds that a worker has to answer.
        """
        questions = [(peer, time.monotonic(), self._ask(peer, timeout)) for peer in peers]
        ended: dict[int, float] = {}
        for peer, _, answer in questions:
            answer.add_done_callback(partial(_note_end, ended, peer.number))
        wait_for_outcomes([answer for _, _, answer in questions])
        found = [_observation(peer, answer, ended.get(peer.number, began) - began) for peer, began, answer in questions]
        return [_with_views(each, found) if each.error else each for each in found]

    def _ask(self, peer: Peer, timeout: float) -> Future[bytes]:
        try:
            return self._agent.caller.request(
                peer, Method.OBSERVE, None, timeout, f"the observation of {peer.info.name!r}", lambda body: []
            )
        except RpcError as error:
            failed: Future[bytes] = Future()
            failed.set_exception(error)
            return failed

    def _answer(self, question: ServerCall) -> None:
        question.open()
        question.what = "a request to observe this worker"
        owned, held = self.references()
        question.reply(encode_record(observe_worker(self._agent, owned, held, self.contexts())))


def _observation(peer: Peer, answer: Future[bytes], seconds: float) -> Observation:
    try:
        found = decode_record(Observation, answer.wait(0.0), MOST_ANSWER_BYTES)
    except RpcError as error:
        return Observation(peer.info.name, peer.number, peer.info.id, error=str(error))
    # Its name and number are known here: an answer does not choose them.
    return replace(found, worker=peer.info.name, number=peer.number, rank=peer.info.id, answer_seconds=seconds)


def _note_end(ended: dict[int, float], number: int, _: Future[bytes]) -> None:
    ended[number] = time.monotonic()


def _with_views(silent: Observation, all_found: Sequence[Observation]) -> Observation:
    views = {each.worker: link.state for each in all_found for link in each.links if link.to == silent.worker}
    return replace(silent, seen_by=views)
