"""``Sampler``: the part of an agent that samples its worker's threads when a command asks for it."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.futures import Future, attempt, complete_once
from .debugger import Debugger

if TYPE_CHECKING:
    from ..agent import Agent


class Sampler:
    """Answers ``{"ask": "sample", "seconds": number, "hertz": number}`` with ``SampledStacks`` as JSON, one request at a time.

    Args:
        agent: the worker's agent; it has a ``Debugger``.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._busy = threading.Lock()  # held while a thread samples
        self._stop = threading.Event()
        agent.part(Debugger).requests["sample"] = self._sample
        agent.on_close.append(self._stop.set)

    def _sample(self, request: Mapping[str, Any]) -> Future[str]:
        from ..observing.sampling import MOST_HERTZ, MOST_SAMPLED_SECONDS  # here: few workers are sampled

        seconds, hertz = float(request["seconds"]), float(request["hertz"])
        if not (0 < seconds <= MOST_SAMPLED_SECONDS and 1 <= hertz <= MOST_HERTZ and math.isfinite(hertz)):
            raise RpcError(
                f"threads are sampled for up to {MOST_SAMPLED_SECONDS:g} s, 1 to {MOST_HERTZ:g} times a second; "
                f"asked for {seconds:g} s and {hertz:g}"
            )
        if not self._busy.acquire(blocking=False):
            raise RpcError(f"worker {self._agent.name!r} is being sampled already: ask again when that has ended")
        answer: Future[str] = Future()
        thread = threading.Thread(target=self._run, args=(seconds, hertz, answer), name="telegrad-sampler", daemon=True)
        started = False
        try:
            thread.start()
            started = True
        finally:
            if not started:
                self._busy.release()
        return answer

    def _run(self, seconds: float, hertz: float, answer: Future[str]) -> None:
        found, error = attempt(self._sampled, seconds, hertz)
        self._busy.release()  # before the answer: the asker may ask again at once
        complete_once(answer, found, error)

    def _sampled(self, seconds: float, hertz: float) -> str:
        from ..observing.json_records import encode_record
        from ..observing.sampling import sample_stacks

        return encode_record(sample_stacks(self._agent.name, seconds, hertz, self._stop)).decode()
