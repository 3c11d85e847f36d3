"""Reasons of long waits, logged after the notices about them: the text of ``rpc.why``, for what was waited for.

A notice is logged first, and never waits for its reason. A worker asks only those that a chain of waits leads to, a few at a
time: if all workers of a large job wait, they do not all ask one another.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..agent import Agent
    from .explanation import Cause, Explanation
    from .records import Observation

logger = logging.getLogger("telegrad.rpc")
REASON_SECONDS = 1.0  # that a worker has to answer
AGAIN_SECONDS = 30.0  # until the reason of a wait for the same worker is told again
MOST_ASKED = 8  # workers at a time
QUESTION_ROUNDS = 4  # of questions, each to those to which the answers before lead
MOST_TOLD = 3  # causes
Observe = Callable[[Iterable[str], float], "list[Observation]"]


class Reasons:
    """Reasons of one agent's long waits. One thread at a time asks, and it ends with its answers.

    Args:
        agent: the agent.
        observe: returns the observations of the workers of some names, who have some seconds to answer.
    """

    def __init__(self, agent: Agent, observe: Observe) -> None:
        self._agent = agent
        self._observe = observe
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}  # by worker, when a reason of a wait for it was last asked for
        self._asked: list[str] = []  # names that the thread is to ask for
        self._asks = False  # the thread runs

    def tell_soon(self, names: Iterable[str]) -> None:
        """Log why this worker waits for the workers of these names, when they have answered. Any thread; returns at once."""
        now = self._agent.timers.now()
        with self._lock:
            fresh = [name for name in names if now - self._told.get(name, -AGAIN_SECONDS) >= AGAIN_SECONDS]
            self._told.update(dict.fromkeys(fresh[:MOST_ASKED], now))
            self._asked += fresh[:MOST_ASKED]
            starts = bool(fresh) and not self._asks
            self._asks = self._asks or starts
        if starts:
            threading.Thread(target=self._tell, name=f"telegrad-{self._agent.name}-reasons", daemon=True).start()

    def _tell(self) -> None:
        while names := self._next():
            try:
                explanation = self._explain(names)
            except Exception:  # the notice was told; its reason must not make another error of it
                logger.debug("worker %r cannot say why it waits", self._agent.name, exc_info=True)
                continue
            if explanation.causes and not self._agent.closed:
                logger.warning("why worker %r waits:\n%s", self._agent.name, explanation.text())

    def _next(self) -> list[str]:
        with self._lock:
            names, self._asked = self._asked, []
            self._asks = bool(names)
        return names

    def _explain(self, names: list[str]) -> Explanation:
        """Return why the workers of these names are waited for: observe them, and then those that their waits lead to."""
        from .causes import explain  # here: a worker that waits for no other needs none of it
        from .explanation import Explanation

        found: dict[str, Observation] = {}
        following = [self._agent.name, *names]
        for _ in range(QUESTION_ROUNDS):
            found.update((each.worker, each) for each in self._observe(following[:MOST_ASKED], REASON_SECONDS))
            explanation = explain(found.values(), names)
            following = [
                each.worker for each in explanation.causes if each.kind == "unknown" and each.worker not in found
            ]
            if not following:
                break
        causes = [each for each in explanation.causes if _is_waited_for(each, found)]
        left_out = explanation.left_out + max(len(causes) - MOST_TOLD, 0)
        return Explanation(causes[:MOST_TOLD], explanation.workers, left_out)


def _is_waited_for(cause: Cause, found: Mapping[str, Observation]) -> bool:
    """Return whether another worker waits for a cause, or did: its call may have ended by a time-out, and still run there."""
    if cause.waiting or cause.chain or cause.severity == "lost":
        return True
    threads = found[cause.worker].threads if cause.worker in found else []
    return any(thread.serves and thread.at == cause.at for thread in threads)
