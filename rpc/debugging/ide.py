"""``IdeSessions``: the part of an agent through which an IDE debugs its worker, with debugpy (extra ``debugpy``).

The bytes of the Debug Adapter Protocol travel in requests to the worker's ``Debugger``. While an IDE is attached, the program's
clock stands still on all workers, as when a thread is held at a prompt.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.futures import Future, attempt, complete_once
from .debugger import Debugger

if TYPE_CHECKING:
    from ..agent import Agent
    from .debugpy_session import DebugpySession

IDE_SECONDS = 15.0  # without a request: then the IDE, or the command between, is gone
IDE_LOOK_SECONDS = 2.0
MOST_WAIT_SECONDS = 5.0
_process = threading.Lock()  # held while an IDE is attached to this process


class IdeSessions:
    """Sessions of IDEs, one at a time.

    Requests:

    * ``{"ask": "attach"}`` answers ``{"session": number}``.
    * ``{"ask": "exchange", "session": number, "at": bytes, "data": base64, "got": bytes or null, "wait": seconds}`` answers
      ``{"data": base64, "ended": bool}`` when there is output after the first ``got`` bytes, or the wait is over.
    * ``{"ask": "detach", "session": number}`` ends the session.

    Args:
        agent: the worker's agent; it has a ``Debugger``.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._debugger = agent.part(Debugger)
        self._session: DebugpySession | None = None
        self._ending = threading.Lock()
        self._number = 0
        self._asked = 0.0  # when the IDE asked last
        self._debugger.requests |= {"attach": self._attach, "exchange": self._exchange, "detach": self._detach}
        agent.on_close.append(self._end)

    def _attach(self, _: Mapping[str, Any]) -> Future[str]:
        if not _process.acquire(blocking=False):
            raise RpcError(f"an IDE is attached to the process of worker {self._agent.name!r} already")
        answer: Future[str] = Future()
        with ExitStack() as undo:
            undo.callback(_process.release)
            threading.Thread(target=self._begin, args=(answer,), name="telegrad-attach", daemon=True).start()
            undo.pop_all()
        return answer

    def _begin(self, answer: Future[str]) -> None:
        from .debugpy_session import DebugpySession

        session, error = attempt(DebugpySession, self._agent.name)
        if session is None:
            _process.release()
            told = json.dumps({"error": f"no IDE can attach: {error}"})
            complete_once(answer, told)
            return
        self._number = self._debugger.next_number()
        self._session, self._asked = session, self._agent.timers.now()
        self._debugger.hold_in_ide = session.hold
        self._debugger.tell(self._number, True)
        self._agent.timers.after(IDE_LOOK_SECONDS, self._look, session)
        complete_once(answer, json.dumps({"session": self._number}))

    def _find(self, request: Mapping[str, Any]) -> DebugpySession:
        if self._session is None or int(request["session"]) != self._number:
            raise RpcError(f"no IDE is attached to worker {self._agent.name!r} by that number: the session has ended")
        self._asked = self._agent.timers.now()
        return self._session

    def _exchange(self, request: Mapping[str, Any]) -> Future[str]:
        session, wait = self._find(request), float(request["wait"])
        if data := request["data"]:
            session.write(int(request["at"]), base64.b64decode(data, validate=True))
        answer: Future[str] = Future()
        if request["got"] is None:  # another request asks for output
            answer.set_result("{}")
            return answer
        got = int(request["got"])
        session.output(got)

        def tell(_: object = None) -> None:
            output, ended = session.output(got)
            complete_once(answer, json.dumps({"data": base64.b64encode(output).decode(), "ended": ended}))

        if wait <= 0 or (arrived := session.more_output()) is None:
            tell()
        else:
            arrived.add_done_callback(tell)
            self._agent.timers.after(min(wait, MOST_WAIT_SECONDS), tell)
        return answer

    def _detach(self, request: Mapping[str, Any]) -> Future[str]:
        self._find(request)
        answer: Future[str] = Future()
        threading.Thread(target=self._end, args=(answer,), name="telegrad-detach", daemon=True).start()
        return answer

    def _look(self, session: DebugpySession) -> None:
        """End a session whose IDE asks no more: the thread that is held must not wait for it for ever."""
        if self._session is not session:
            return
        if self._agent.timers.now() - self._asked < IDE_SECONDS:
            self._agent.timers.after(IDE_LOOK_SECONDS, self._look, session)
        else:
            threading.Thread(target=self._end, name="telegrad-detach", daemon=True).start()

    def _end(self, answer: Future[str] | None = None) -> None:
        with self._ending:
            session, self._session = self._session, None
        if session is not None:
            self._debugger.hold_in_ide = None
            session.close()
            session.join()
            self._debugger.tell(self._number, False)
            _process.release()
        if answer is not None:
            complete_once(answer, "{}")
