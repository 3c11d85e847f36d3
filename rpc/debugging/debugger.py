"""``Debugger``: the part of an agent that holds threads at a prompt, and lets other processes type into it."""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
import threading
from bdb import BdbQuit
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.futures import Future, complete_once
from ..observing.observer import Observer
from ..wire.messages import Method, Topic
from .across import callers
from .stop import HeldPlace, Stop

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.server_call import ServerCall
    from ..links.peer import Peer
    from .held_pdb import HeldPdb

logger = logging.getLogger("telegrad.rpc")
PACKAGE_FOLDER = str(Path(__file__).parents[2])
TALK_SECONDS = 5.0  # after which a question is answered although the thread neither waits for a line nor goes on
ALONE_SECONDS = 3600.0  # without a question: then the thread goes on
STEPPING_SECONDS = 60.0  # without a question, while it runs between two prompts: then it is held no more
OBSERVE_SECONDS = 2.0
MOST_DEBUG_REQUESTS = 32  # to one worker, under way


class Debugger:
    """Threads of one worker that are held.

    A request is JSON: ``{"ask": "stops"}``, or ``{"ask": "talk", "stop": number, "seen": characters, "line": text or null}``.
    The answer is JSON too: a list of places with their numbers, or the output since then and the state; or ``{"error": text}``.

    Args:
        agent: the worker's agent.

    Attributes:
        requests: by what a request asks for, functions that return the future of the answer. Other parts add theirs.
        hold_in_ide: holds this thread at the next line of a frame, for the IDE that is attached; None without one.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._process_id = os.getpid()
        self._numbers = itertools.count(1)
        self._stops: dict[int, Stop] = {}
        self._asked: dict[int, float] = {}  # when each was talked to last
        self._threads: dict[int, HeldPdb] = {}  # debuggers that trace a thread
        self._held: set[tuple[int, int]] = (
            set()
        )  # worker and number of each stop in the job, of which this worker knows
        self._lock = threading.Lock()
        self.hold_in_ide: Callable[[FrameType], object] | None = None
        self._failed = False  # a thread of the job was held because of an exception: what fails after it is not
        self.requests: dict[str, Callable[[Mapping[str, Any]], Future[str]]] = {
            "stops": self._describe,
            "talk": self._talk,
        }
        agent.server.serve(Method.DEBUG, self._answer, quick=True)
        agent.control.on(Topic.HELD, self._on_held)
        agent.losses.on_lost.append(self._on_lost)
        agent.on_close.append(self._close)

    # -- threads that are held

    def set_trace(self, frame: FrameType) -> None:
        """Hold this thread at the next line of a frame."""
        if self.hold_in_ide is not None:
            self.hold_in_ide(frame)
            return
        from .held_pdb import HeldPdb  # here: few programs are debugged

        ident = threading.get_ident()
        tracer = self._threads.get(ident)
        if tracer is None or sys.gettrace() is None:
            tracer = self._threads[ident] = HeldPdb(self._hold, self._release, self._callers, self._agent.name)
        sys.settrace(None)  # else a thread that is traced, for its breakpoints, stops in bdb itself
        tracer.set_trace(frame)

    def post_mortem(self, error: BaseException) -> None:
        """Hold this thread where an exception was raised."""
        from .held_pdb import HeldPdb

        if error.__traceback__ is not None and os.getpid() == self._process_id:  # none could type into a forked child
            HeldPdb(self._hold, self._release, self._callers, self._agent.name).post_mortem(error, error.__traceback__)

    def hold_first(self, error: BaseException) -> None:
        """Hold this thread where an exception was raised, if it is the first of the job."""
        if isinstance(error, Exception) and not isinstance(error, BdbQuit) and not (self._failed or self._agent.closed):
            self._failed = True
            self.post_mortem(error)

    def _hold(self, frame: FrameType, reason: str) -> Stop:
        code, thread = frame.f_code, threading.current_thread()
        place = HeldPlace(self._agent.name, thread.name, code.co_filename, frame.f_lineno, code.co_name, reason)
        stop = Stop(self.next_number(), place, threading.get_ident())
        self._stops[stop.number] = stop
        self._asked[stop.number] = self._agent.timers.now()
        self.tell(stop.number, True)
        self._agent.timers.after(min(ALONE_SECONDS, STEPPING_SECONDS), self._look, stop)
        logger.warning(
            "worker %r is held at %s:%d in %s (%s); type into it with: telegrad debug %s",
            *(place.worker, place.file, place.line, place.function, place.reason, place.worker),
        )
        return stop

    def _release(self, stop: Stop) -> None:
        self._stops.pop(stop.number, None)
        self._asked.pop(stop.number, None)
        stop.end()
        self.tell(stop.number, False)

    def _look(self, stop: Stop) -> None:
        """Let a thread go on to which no process has talked for ``ALONE_SECONDS``.

        One that runs since a command may never come to a prompt again: as what it steps through was dropped, or waits.
        """
        if (asked := self._asked.get(stop.number)) is None:
            return
        alone = self._agent.timers.now() - asked
        if alone >= STEPPING_SECONDS and stop.give_up():
            self._release(stop)
            return
        if alone < ALONE_SECONDS:
            self._agent.timers.after(min(ALONE_SECONDS - alone, STEPPING_SECONDS), self._look, stop)
            return
        logger.warning("worker %r goes on: no process has talked to it for %g s", self._agent.name, ALONE_SECONDS)
        _let_go(stop)

    def _callers(self) -> str:
        """Return the text of the stack of this thread on other workers."""
        agent = self._agent
        found = agent.part(Observer).observe([agent.peers.find(info) for info in agent.peers.live()], OBSERVE_SECONDS)
        sections = callers(found, agent.name, threading.get_ident(), PACKAGE_FOLDER)
        own = f"worker {agent.name!r}, thread {threading.current_thread().name}:"
        return "\n".join([*map(str, sections), own])

    # -- time-outs stand still

    def next_number(self) -> int:
        """Return a new number for something that holds threads of this worker."""
        return next(self._numbers)

    def tell(self, number: int, held: bool) -> None:
        """Note that a thread of this worker is held, or goes on, and tell the other workers.

        Args:
            number: of what holds it.
            held: whether it is held.
        """
        agent = self._agent
        self._note(agent.number, number, held)
        payload = json.dumps({"stop": number, "held": held, "failed": self._failed}).encode()
        for peer in agent.peers.met():
            if peer.number != agent.number and not peer.gone:
                agent.control.post(peer, Topic.HELD, payload)

    def _on_held(self, peer: Peer, payload: bytes) -> None:
        told = json.loads(payload)
        self._failed = self._failed or bool(told["failed"])
        self._note(peer.number, int(told["stop"]), bool(told["held"]))
        if peer.gone:  # its loss may have been noted before
            self._on_lost(peer)

    def _note(self, number: int, stop: int, held: bool) -> None:
        key, clock = (number, stop), self._agent.timers.program
        with self._lock:
            if held == (key in self._held) or (held and self._agent.closed):
                return
            if held:
                self._held.add(key)
                clock.stop()
            else:
                self._held.remove(key)
                clock.go()

    def _on_lost(self, peer: Peer) -> None:
        for number, stop in [key for key in self._held if key[0] == peer.number]:
            self._note(number, stop, False)

    def _close(self) -> None:
        for stop in list(self._stops.values()):
            _let_go(stop)
        for number, stop_number in list(self._held):
            self._note(number, stop_number, False)

    # -- requests

    def ask(self, peer: Peer, request: Mapping[str, Any], timeout: float) -> Future[str]:
        """Send a request to a worker, this one included, and return the future of its answer, as JSON.

        Args:
            peer: the worker.
            request: see the class.
            timeout: seconds that it has to answer.

        Raises:
            RpcError: too many requests are under way.
        """
        under_way = self._agent.caller.table.find(lambda call: call.method == Method.DEBUG and call.to == peer.number)
        if len(under_way) >= MOST_DEBUG_REQUESTS:  # they go outside of the windows
            raise RpcError(f"{MOST_DEBUG_REQUESTS} requests to the debugger of {peer.info.name!r} have no answer yet")
        text = json.dumps(request)
        what = f"a request to the debugger of {peer.info.name!r}"
        answer: Future[str] = self._agent.questions.ask(peer, Method.DEBUG, text, timeout, what)
        return answer

    def _answer(self, question: ServerCall) -> None:
        text = question.open()
        question.what = "a request to the debugger"
        try:
            request = json.loads(text)
            if not isinstance(request, dict) or request.get("ask") not in self.requests:
                known = tuple(self.requests)
                raise RpcError(f"a request to the debugger asks for one of {known}; it was {text[:100]!r}")
            question.reply_with(self.requests[request["ask"]](request), is_future=True)
        except (RpcError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            question.reply(json.dumps({"error": str(error)}))

    def _describe(self, _: Mapping[str, Any]) -> Future[str]:
        answer: Future[str] = Future()
        answer.set_result(json.dumps([self._described(stop) for stop in list(self._stops.values())]))
        return answer

    def _described(self, stop: Stop) -> dict[str, Any]:
        return {"stop": stop.number, "state": stop.said(0).state, **asdict(stop.place)}

    def _talk(self, request: Mapping[str, Any]) -> Future[str]:
        number, seen, line = int(request["stop"]), int(request["seen"]), request.get("line")
        stop = self._stops.get(number)
        if stop is None:
            raise RpcError(f"worker {self._agent.name!r} has no stop {number}: its thread goes on")
        self._asked[number] = self._agent.timers.now()
        if line is not None:
            stop.give(str(line).rstrip("\n") + "\n")
        answer: Future[str] = Future()

        def tell(_: object = None) -> None:
            complete_once(answer, json.dumps(asdict(stop.said(seen))))

        if (changed := stop.changed()) is None:
            tell()
        else:
            changed.add_done_callback(tell)
            self._agent.timers.after(TALK_SECONDS, tell)
        return answer


def _let_go(stop: Stop) -> None:
    try:
        stop.give("continue\n")
    except RpcError:
        pass  # it has ended
