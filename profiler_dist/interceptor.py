"""Profiles across workers: a call made under a profile asks its callee to record, and the events return with the answer.

The names are PyTorch's: ``rpc_sync#f(worker0 -> worker1)`` is the call, ``…#remote_op: aten::mul`` an operation that the callee
ran for it. ``…#remote_call``, which PyTorch does not have, is the time from when the callee opened the call until it
answered; the callee's other events are inside it. A callee that calls others records these calls, with what returns from them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from ..core.extend import RecordedCall, end_calls, profiles, take_calls
from ..core.profiler import FunctionEvent, profile
from ..rpc.extend import Agent, FrameKind, Incoming, Interceptor, Outgoing, ServerCall
from .clocks import Clocks
from .encoding import Recording, decode_events, decode_options, encode_events, encode_options
from .numbers import PROFILE_EXTRA

CALL, OPERATION = "#remote_call", "#remote_op: "


class SentCall(NamedTuple):
    """A recorded call that is under way, and when it left."""

    calls: tuple[RecordedCall, ...]
    sent: int


class Served(NamedTuple):
    """A request that is recorded until it is answered."""

    call: ServerCall
    recorder: profile


class ProfilerInterceptor(Interceptor):
    """Lets the events of one agent's calls travel."""

    number = PROFILE_EXTRA
    plain = True
    needs = profiles
    answers = True

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._asked: dict[int, SentCall] = {}  # by the id of the call
        self._serving: dict[tuple[int, int], Served] = {}  # by the caller's rank and the id of the call there
        self._clocks = Clocks()

    def sending(self, message: Outgoing) -> None:
        """Ask the callee to record; or send what was recorded."""
        if message.kind != FrameKind.REQUEST:
            if (served := self._serving.pop((message.to, message.call_id), None)) is not None:
                message.tell(PROFILE_EXTRA, encode_events(served.recorder, _end(served)))
        elif calls := take_calls():
            for recorder, _ in calls:
                recorder.at_worker(self._agent.number, self._agent.name)
            self._asked[message.call_id] = SentCall(calls, time.perf_counter_ns())
            message.tell(PROFILE_EXTRA, encode_options([recorder for recorder, _ in calls]))

    # -- at the callee

    def opening(self, message: Incoming) -> None:
        """Record what happens in the context of a request, until it is answered."""
        if isinstance(message, ServerCall):
            recorder = profile(**decode_options(message.extras[PROFILE_EXTRA]))
            recorder.node_id = self._agent.number
            self._serving[message.key] = Served(message, recorder)
            recorder.__enter__()
            recorder.begin("")

    def served(self, message: Incoming) -> None:
        """Forget what was recorded for a request that is not answered."""
        assert isinstance(message, ServerCall)
        if (served := self._serving.pop(message.key, None)) is not None:
            _end(served)

    # -- at the caller

    def arrived(self, message: Incoming) -> bool:
        """Add the events of an answer to the profiles of its call."""
        if message.kind == FrameKind.REPLY and (asked := self._asked.pop(message.call_id, None)) is not None:
            now = time.perf_counter_ns()
            end_calls(asked.calls)
            for recorder, event in asked.calls:
                recording = decode_events(message.extras[PROFILE_EXTRA])
                offset = self._clocks.offset(message.sender, asked.sent, recording.began, recording.ended, now)
                recorder.adopt(event, self._moved(recording, event.name, offset + recording.began - recorder.began))
                for rank in {each.node_id for each in recording.events}:
                    recorder.workers[rank] = self._agent.peers.at(rank).info.name
        return True

    def _moved(self, recording: Recording, call: str, offset: int) -> Sequence[FunctionEvent]:
        for event in recording.events:
            event.name = f"{call}{OPERATION}{event.name}" if event.name else call + CALL
            event.start += offset
            event.end = None if event.end is None else event.end + offset
        return recording.events

    def delivered(self, message: Outgoing) -> None:
        """End the event of a call that was answered without events."""
        self._end_calls(message)

    def not_delivered(self, message: Outgoing) -> None:
        """End the event of a call that failed."""
        self._end_calls(message)

    def _end_calls(self, message: Outgoing) -> None:
        if message.kind == FrameKind.REQUEST and (asked := self._asked.pop(message.call_id, None)) is not None:
            end_calls(asked.calls)


def _end(served: Served) -> int:
    """End the recording of a request; return when that was."""
    recorder = served.recorder
    root = recorder.function_events[0]
    root.is_async = served.call.parked or root.thread != threading.get_ident()
    recorder.finish(root)
    recorder.__exit__(None, None, None)
    return recorder.began + root.start + root.duration
