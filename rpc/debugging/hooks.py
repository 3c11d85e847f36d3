"""Hooks of Python through which a worker's threads are held: ``breakpoint()``, and exceptions that nothing has caught."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from ..current import current_agent

if TYPE_CHECKING:
    from ..agent import Agent
    from .debugger import Debugger

POST_MORTEM_VARIABLE = "TELEGRAD_POST_MORTEM"  # "1": hold the first thread of the job that an exception ends


def install_debugger(agent: Agent) -> None:
    """Let ``breakpoint()`` hold a thread of this process for ``telegrad debug``, until the agent is closed.

    A program's own hook stays, as does ``PYTHONBREAKPOINT``; where standard input is a terminal, pdb uses that.
    With ``TELEGRAD_POST_MORTEM=1`` a thread is held too where an exception that nothing catches was raised.
    """
    if sys.breakpointhook is sys.__breakpointhook__ and "PYTHONBREAKPOINT" not in os.environ and not _at_terminal():

        def hold_caller(*args: Any, **kwargs: Any) -> None:
            debugger_of(agent).set_trace(sys._getframe(1))

        sys.breakpointhook = hold_caller
        agent.on_close.append(lambda: _restore(hold_caller))
    if os.environ.get(POST_MORTEM_VARIABLE) == "1":
        hold_failures(agent)


def debugger_of(agent: Agent) -> Debugger:
    """Return the agent's debugger, made now if no program has asked for it yet."""
    from .debugger import Debugger

    return agent.part(Debugger)


def set_trace() -> None:
    """Hold this thread here, until ``telegrad debug`` lets it go on: a prompt of pdb, typed into from any terminal of the user.

    ``breakpoint()`` does the same in a worker whose standard input is no terminal. While a thread of the job is held, no call,
    wait or barrier of any worker times out. A thread to which no process talks for an hour goes on.

    Raises:
        RpcError: this process is no worker.
    """
    debugger_of(current_agent()).set_trace(sys._getframe(1))


def hold_failures(agent: Agent) -> None:
    """Hold the first thread of the job that an exception ends: of a function that serves a call, or of the program itself."""
    debugger = debugger_of(agent)
    agent.server.failed = debugger.hold_first
    of_program, of_threads = sys.excepthook, threading.excepthook

    def program_failed(kind: Any, error: BaseException, traceback: Any) -> None:
        of_program(kind, error, traceback)
        debugger.hold_first(error)

    def thread_failed(failure: threading.ExceptHookArgs) -> None:
        of_threads(failure)
        if failure.exc_value is not None:
            debugger.hold_first(failure.exc_value)

    sys.excepthook, threading.excepthook = program_failed, thread_failed


def _restore(hook: Any) -> None:
    if sys.breakpointhook is hook:
        sys.breakpointhook = sys.__breakpointhook__


def _forked() -> None:
    """In a forked child: leave ``breakpoint()`` to Python. No process could type into a thread that is held here."""
    if getattr(sys.breakpointhook, "__module__", "") == __name__:
        sys.breakpointhook = sys.__breakpointhook__


os.register_at_fork(after_in_child=_forked)


def _at_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # it is closed
        return False
