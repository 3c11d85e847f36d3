"""Part of an agent that answers what its worker does, and asks other workers."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...base.errors import ArgumentTypeError, RpcError
from ...core.futures import Future, wait_for_outcomes
from ..wire.messages import Method
from .json_records import decode_record, encode_record
from .processes import ProcessLook, look_at_process, on_this_machine, state_between
from .records import ALL_PARTS, OBSERVED_PARTS, Observation

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.server_call import ServerCall
    from ..links.peer import Peer
    from .reasons import Reasons

MOST_ANSWER_BYTES = 16 << 20
MOST_QUESTIONS = 8  # to one worker that have no answer yet
STOPPED_SECONDS = 0.2  # that a worker has to answer whose process is stopped


class Observer:
    """Part of an agent that answers ``observe`` requests, in a reader's thread, and makes them.

    Args:
        agent: the worker's agent.
        look: returns the observation of this worker, with the lists that are wanted (``observe_worker``).
    """

    def __init__(self, agent: Agent, look: Callable[[AbstractSet[str]], Observation]) -> None:
        self._agent = agent
        self._look = look
        self._reasons: Reasons | None = None
        agent.server.serve(Method.OBSERVE, self._answer, quick=True)

    def observe(self, peers: Sequence[Peer], timeout: float, parts: AbstractSet[str] = ALL_PARTS) -> list[Observation]:
        """Return the observation of each worker; one that does not answer is shown with what the others know of it.

        Args:
            peers: the workers.
            timeout: seconds that a worker has to answer.
            parts: the lists that are wanted.
        """
        wanted = ",".join(sorted(parts))
        looks = self._looks(peers)
        open_questions = self._open_questions()
        questions = [
            (peer, time.monotonic(), self._ask(peer, wanted, _seconds(looks, peer, timeout), open_questions))
            for peer in peers
        ]
        ended: dict[int, float] = {}
        for peer, _, answer in questions:
            answer.add_done_callback(partial(_note_end, ended, peer.number))
        wait_for_outcomes([answer for _, _, answer in questions])
        found = [_observation(peer, answer, ended.get(peer.number, began) - began) for peer, began, answer in questions]
        return [_with_process(_with_views(each, found), looks) if each.error else each for each in found]

    def here(self, parts: AbstractSet[str] = ALL_PARTS) -> Observation:
        """Return the observation of this worker, without a message.

        Args:
            parts: the lists that are wanted.
        """
        return self._look(parts)

    def tell_reason(self, names: Iterable[str]) -> None:
        """Say in the log what the workers of these names wait for; a thread does it soon."""
        if self._reasons is None:
            from .reasons import Reasons  # here: most workers never wait for long

            self._reasons = Reasons(self._agent, self._observe_named)
        self._reasons.tell_soon(names)

    def _observe_named(self, names: Iterable[str], timeout: float) -> list[Observation]:
        return self.observe([self._agent.peers.find(name) for name in dict.fromkeys(names)], timeout)

    def _looks(self, peers: Sequence[Peer]) -> dict[int, ProcessLook]:
        """Return a look at the process of each worker of this machine, by its number."""
        me = self._agent.record
        return {
            peer.number: look_at_process(peer.record.process_id) for peer in peers if on_this_machine(peer.record, me)
        }

    def _open_questions(self) -> Counter[int]:
        calls = self._agent.caller.table.find(lambda call: call.method == Method.OBSERVE)
        return Counter(call.to for call in calls)

    def _ask(self, peer: Peer, wanted: str, timeout: float, open_questions: Mapping[int, int]) -> Future[bytes]:
        what = f"the observation of {peer.info.name!r}"
        try:
            if open_questions.get(peer.number, 0) >= MOST_QUESTIONS:  # they go outside of the windows
                raise RpcError(f"{what} was not asked for: {MOST_QUESTIONS} others of it have no answer yet")
            return self._agent.questions.ask(peer, Method.OBSERVE, wanted, timeout, what)
        except RpcError as error:
            failed: Future[bytes] = Future()
            failed.set_exception(error)
            return failed

    def _answer(self, question: ServerCall) -> None:
        parts = _parts_of(question.open())
        question.what = "a request to observe this worker"
        question.reply(encode_record(self.here(parts)))


def check_parts(parts: str | Iterable[str]) -> frozenset[str]:
    """Return a name of a list of an observation, or some, as a set.

    Raises:
        ArgumentTypeError: it is neither.
        ValueError: an observation has no such list.
    """
    if not isinstance(parts, Iterable) or isinstance(parts, bytes):
        raise ArgumentTypeError(f"parts= takes a name of a list of an observation, or several; you gave {parts!r:.60}")
    wanted = [parts] if isinstance(parts, str) else [*parts]
    if wrong := [each for each in wanted if each not in OBSERVED_PARTS]:
        raise ValueError(f"an observation has no list {wrong[0]!r:.60}; it has {', '.join(OBSERVED_PARTS)}")
    return frozenset(wanted)


def _parts_of(body: Any) -> frozenset[str]:
    return check_parts(str(body).split(",") if body else ())


def _observation(peer: Peer, answer: Future[bytes], seconds: float) -> Observation:
    try:
        found = decode_record(Observation, answer.wait(0.0), MOST_ANSWER_BYTES)
    except RpcError as error:
        return Observation(peer.info.name, peer.number, peer.info.id, error=str(error))
    # Its name and number are known here: an answer does not choose them.
    return replace(found, worker=peer.info.name, number=peer.number, rank=peer.info.id, answer_seconds=seconds)


def _seconds(looks: Mapping[int, ProcessLook], peer: Peer, timeout: float) -> float:
    """Return how long to wait for a worker's answer: one that is stopped is not waited for."""
    look = looks.get(peer.number)
    return min(timeout, STOPPED_SECONDS) if look and look.stopped else timeout


def _with_process(silent: Observation, looks: Mapping[int, ProcessLook]) -> Observation:
    if (before := looks.get(silent.number)) is None:
        return silent
    state = state_between(before, look_at_process(before.process_id))
    return replace(silent, process_state=state, process_id=before.process_id, host=platform.node())


def _note_end(ended: dict[int, float], number: int, _: Future[bytes]) -> None:
    ended[number] = time.monotonic()


def _with_views(silent: Observation, all_found: Sequence[Observation]) -> Observation:
    views = {each.worker: link.state for each in all_found for link in each.links if link.to == silent.worker}
    return replace(silent, seen_by=views)
