"""Shield from Ctrl-C: it ends waits and user code at once, and protected code (``protection.py``) is never left in part.

While an agent works, the shield is in the place of Python's own handler of SIGINT. It looks at the code that the signal has
interrupted. Open code gets KeyboardInterrupt at once. In protected code the signal is noted: the next wait raises it when it
begins, and for code that does not wait a thread sends the signal again every few milliseconds, until it finds open code.
Protected code that hangs is left at another Ctrl-C that comes ``PATIENCE`` seconds after the first.

Only Python's own handler is replaced, by the main thread, in a notebook before each cell. It is put back when the last agent
ends.
"""

from __future__ import annotations

import _thread
import asyncio
import os
import signal
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any

from .protection import is_protected, opens

PATIENCE = 1.0
BEFORE_CELL = "pre_run_cell"  # IPython's event
PAUSES = 0.002, 0.1  # seconds between two sendings: the first, and the longest
# Runs a program of asyncio. It handles Ctrl-C itself (cancels the main task) if it finds Python's own handler.
_RUNNER: CodeType | None = getattr(
    getattr(getattr(asyncio, "Runner", None), "run", None), "__code__", None
)  # since 3.11


class Shield:
    """Handler of SIGINT in the place of Python's own.

    Attributes:
        noted: when the signal came that is to be raised, in monotonic seconds; 0 if none is.
    """

    def __init__(self) -> None:
        self.noted = 0.0
        self._resent = False  # the next signal is one that was noted before

    def install(self) -> None:
        """Handle SIGINT from now on, if this is the main thread and the handler is Python's own."""
        self._take_signal()
        if (shell := notebook_shell()) is not None:
            shell.events.register(BEFORE_CELL, self._take_signal)  # once, however often

    def _take_signal(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread() and is_replaceable():
            signal.signal(signal.SIGINT, self)

    def uninstall(self) -> None:
        """Put Python's own handler back, if this is the main thread."""
        if (shell := notebook_shell()) is not None and self._take_signal in shell.events.callbacks[BEFORE_CELL]:
            shell.events.unregister(BEFORE_CELL, self._take_signal)
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is self:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        resent, self._resent = self._resent, False
        if resent and not self.noted:
            return  # it was raised meanwhile
        hangs = self.noted and not resent and time.monotonic() - self.noted > PATIENCE
        if is_protected(frame) and not hangs:
            self._note()
        else:
            self._raise(frame)

    def deliver(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was noted and this is the main thread. For waits, which are open."""
        if self.noted and threading.get_ident() == threading.main_thread().ident:
            self._raise(sys._getframe(1))

    @opens
    def _raise(self, frame: FrameType | None) -> None:
        self.noted = 0.0
        while _RUNNER is not None and frame is not None:
            if frame.f_code is _RUNNER:
                runner: Any = frame.f_locals["self"]
                runner._on_sigint(signal.SIGINT, frame, frame.f_locals["task"])
                return
            frame = frame.f_back
        raise KeyboardInterrupt

    def _note(self) -> None:
        if self.noted:
            return
        self.noted = time.monotonic()
        try:
            # Not ``Thread.start``, which takes locks.
            _thread.start_new_thread(self._send_again, (threading.main_thread().ident or 0, self.noted))
        except RuntimeError:
            pass  # the system gives no thread: the next wait raises it

    def _send_again(self, main: int, since: float) -> None:
        pause, longest = PAUSES
        while True:
            time.sleep(pause)
            if self.noted != since:
                return
            handler: object = signal.getsignal(signal.SIGINT)
            if handler is not self:
                self.noted = 0.0  # replaced meanwhile, and whoever did so decides
                return
            self._resent = True
            signal.pthread_kill(main, signal.SIGINT)  # ends a call of C too, such as ``time.sleep``
            pause = min(2 * pause, longest)

    def forked(self) -> None:
        """Forget what was noted: it was for the parent, whose thread sends it."""
        self.noted, self._resent = 0.0, False


def notebook_shell() -> Any:
    """Return IPython's shell if this process is one; a notebook's kernel sets Python's own handler before each cell."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def is_replaceable() -> bool:
    """Return whether Python's own handler handles SIGINT: one of the user stays."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


shield = Shield()
os.register_at_fork(after_in_child=shield.forked)
