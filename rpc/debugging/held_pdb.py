"""``HeldPdb``: Python's debugger, whose prompt is typed into from another process."""

from __future__ import annotations

import dis
import os
import pdb
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from ..observing.thread_waits import PACKAGE, is_programs

if TYPE_CHECKING:
    from .stop import Stop

SKIPPED = [
    *(f"{PACKAGE}.{name}.*" for name in ("core", "rpc", "rref", "autograd_dist", "agents")),
    *("weakref", "_weakrefset"),  # their callbacks run in the middle of any line, and lose what ``quit`` raises
]  # stepping passes over them


class HeldPdb(pdb.Pdb):
    """Debugger of one thread.

    Args:
        hold: called when the thread comes to a prompt: returns the stop that it is at. Its argument is the frame.
        release: called with the stop when the thread goes on.
        callers: returns the text of the stack above this thread's, on other workers.
        worker: name of the worker, for the prompt.
    """

    def __init__(
        self,
        hold: Callable[[FrameType, str], Stop],
        release: Callable[[Stop], object],
        callers: Callable[[], str],
        worker: str,
    ) -> None:
        self._hold, self._release, self._callers = hold, release, callers
        self._stop: Stop | None = None
        self._reason = "breakpoint"
        self._at: tuple[FrameType | None, Any] = (None, None)  # frame and traceback of the last prompt
        self._raised: FrameType | None = None  # in it an exception was raised, and no line has run since
        self._process_id = os.getpid()
        super().__init__(stdin=_Lines(self), stdout=_Output(self), nosigint=True, readrc=False, skip=SKIPPED)  # type: ignore[arg-type]
        self.prompt = f"({worker}) "

    @property
    def stop(self) -> Stop:
        """The stop that the thread is at."""
        assert self._stop is not None
        return self._stop

    def post_mortem(self, error: BaseException, traceback: TracebackType) -> None:
        """Hold the thread where an exception was raised, until ``continue``."""
        self._reason = f"{type(error).__name__}: {error}"
        self.reset()
        try:
            self.interaction(None, traceback)
        finally:
            self.go_on()

    def interaction(self, frame: FrameType | None, traceback: Any = None) -> None:
        """Hold the thread: pdb calls this at each prompt. A ``breakpoint()`` in it is one more prompt of the same stop."""
        if os.getpid() != self._process_id:  # a forked child: no process can type into it
            self._stop = None
            self.set_continue()
            return
        self._at = frame, traceback
        self._hold_here()
        with ExitStack() as undo:  # at an exception, such as that of Ctrl-C
            undo.callback(self.go_on)
            super().interaction(frame, traceback)
            undo.pop_all()

    def _hold_here(self) -> None:
        if self._stop is None or self._stop.ended:
            self._stop = self._hold(_innermost(*self._at), self._reason)

    def _cmdloop(self) -> None:
        self.cmdloop()  # Ctrl-C ends the program, as without a debugger: it was not typed at this prompt

    def read_line(self) -> str:
        """Return the next line that is typed."""
        while (line := self.stop.read_line()) is None:  # it was given up while a command ran
            self._hold_here()
        return line

    def go_on(self) -> None:
        """Note that the thread is not held any more."""
        if (stop := self._stop) is not None:
            self._stop = None
            self._release(stop)

    def user_return(self, frame: FrameType, return_value: Any) -> None:
        """Stop at the end of a function. After the outermost of the program the thread goes on: nothing is left to step in."""
        super().user_return(frame, return_value)
        self._leave(frame)

    def _leave(self, frame: FrameType) -> None:
        if self._stop is not None and not _has_outer(frame):
            self.message("the end of the program's code in this thread: it goes on")
            self.set_continue()
            self.go_on()

    def dispatch_line(self, frame: FrameType) -> Any:
        """Handle the next line of a frame."""
        self._raised = None
        return super().dispatch_line(frame)

    def dispatch_exception(self, frame: FrameType, arg: Any) -> Any:
        """Handle an exception in a frame."""
        if not (arg[0] is StopIteration and arg[2] is None):  # the end of what a coroutine awaits
            self._raised = frame
        return super().dispatch_exception(frame, arg)

    def dispatch_return(self, frame: FrameType, arg: Any) -> Any:
        """Handle the end of a frame. bdb waits for the next line of a coroutine or generator, also when it has ended."""
        waits_for = self.stopframe
        traced = super().dispatch_return(frame, arg)
        if self._stop is not None and waits_for is frame is self.stopframe and self._has_ended(frame):
            self.set_step()
            self._leave(frame)
        return traced

    def _has_ended(self, frame: FrameType) -> bool:
        operation = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return frame is self._raised or not operation.startswith("YIELD")

    def do_continue(self, arg: str) -> bool | None:
        """c(ont(inue)): let the thread go on, up to the next breakpoint."""
        end = super().do_continue(arg)
        self.go_on()
        return end

    do_c = do_cont = do_continue

    def do_quit(self, arg: str) -> bool | None:
        """q(uit), exit: raise ``bdb.BdbQuit`` in the thread, so that its function, or the program, fails."""
        end = super().do_quit(arg)
        self.go_on()
        return end

    do_q = do_exit = do_EOF = do_quit  # noqa: N815 (pdb's name)

    def do_run(self, arg: str) -> None:
        """run, restart: refused, as the other workers would not begin again."""
        self.error("a worker of a job cannot be run again")

    do_restart = do_run

    def do_interact(self, arg: str) -> None:
        """interact: refused, as it would read the worker's own standard input."""
        self.error("interact reads the worker's standard input: type statements here")

    def do_clear(self, arg: str) -> Any:
        """cl(ear) [number or file:line ...]: clear breakpoints; without a number all, unasked: pdb asks at standard input."""
        if arg.strip():
            return super().do_clear(arg)
        self.clear_all_breaks()
        self.message("all breakpoints are cleared")
        return None

    do_cl = do_clear

    def default(self, line: str) -> None:
        """Run a statement, with its output here. pdb replaces the streams of the process: the last to end puts them back."""
        with _streams:
            super().default(line)

    def print_stack_trace(self, *count: Any) -> None:
        """Print the frames of the program; those of this package between them say nothing to its user."""
        for entry in self.stack:
            if is_programs(entry[0]):
                self.print_stack_entry(entry)

    def do_where(self, arg: str) -> bool | None:
        """w(here), bt: print the stack, that of callers on other workers first."""
        self.message(self._callers())
        return super().do_where(arg)

    do_w = do_bt = do_where


class _Lines:
    """Standard input of the debugger."""

    encoding, errors = "utf-8", "strict"

    def __init__(self, debugger: HeldPdb) -> None:
        self._debugger = debugger

    def readline(self) -> str:
        return self._debugger.read_line()


class _Streams:
    """Streams of the process, put back when no thread runs a statement that was typed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._own: tuple[Any, ...] = ()

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._own = sys.stdin, sys.stdout, sys.displayhook
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.stdin, sys.stdout, sys.displayhook = self._own


_streams = _Streams()


class _Output:
    """Standard output of the debugger."""

    encoding, errors = "utf-8", "strict"

    def __init__(self, debugger: HeldPdb) -> None:
        self._debugger = debugger

    def write(self, text: str) -> int:
        if (stop := self._debugger._stop) is not None:
            stop.write(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: what is written is there."""


def _innermost(frame: FrameType | None, traceback: Any) -> FrameType:
    if frame is not None:
        return frame
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    found = traceback.tb_frame
    assert isinstance(found, FrameType)
    return found


def _has_outer(frame: FrameType) -> bool:
    """Return whether a frame was called by the program's own code, at any distance."""
    outer = frame.f_back
    while outer is not None:
        if is_programs(outer):
            return True
        outer = outer.f_back
    return False
