"""Ctrl-C at every place of a function where Python may run a signal's handler: one after another, each once."""

import dis
import functools
import gc
import inspect
import signal
import sys
import threading
from contextlib import contextmanager
from functools import cache

from telegrad.core.futures import shield

__name__ = "bdb"  # for the shield, as Python's debugger: this tracer is as protected as the code that it traces

# Functions of Python's ``Condition``, which fails, or stays locked, if they are interrupted.
INSIDE_LOCKS = ("__enter__", "__exit__", "_release_save", "_acquire_restore")


@contextmanager
def first_signal(signum, handler):
    """In the block the first signal of this number calls ``handler()``; yields a function that sends it to the main thread.

    A signal that comes in the moment before a system call does not end it, and CPython runs the handler only when it has
    ended. So the function sends again until the handler has begun. It is to return before the block ends.
    """
    begun, main = threading.Event(), threading.main_thread().ident

    def handle(*_):
        if not begun.is_set():
            begun.set()
            handler()

    def send():
        while not begun.is_set():
            signal.pthread_kill(main, signum)
            begun.wait(0.02)

    before = signal.signal(signum, handle)
    try:
        yield send
    finally:
        signal.signal(signum, before)


def interrupt():
    """Raise what Ctrl-C does."""
    raise KeyboardInterrupt


def press(frame):
    """Have the shield handle Ctrl-C, as if it had come while a frame ran."""
    shield(signal.SIGINT, frame)


def handle(number, frame):
    """Have the handler of a signal run there."""
    signal.raise_signal(number)


def interrupt_once(monkeypatch, owner, name):
    """Have the next call of a function, by the main thread, begin with a signal."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def interrupted(*args):
        if threading.current_thread() is threading.main_thread() and not done:
            done.append(True)
            signal.raise_signal(signal.SIGUSR1)
        return function(*args)

    done = []
    monkeypatch.setattr(owner, name, interrupted)
    return done


def free(make, frame):
    """Free an object there, whose finalizer runs."""
    make()


class Interrupter:
    """Interrupts the functions that it runs: each time at the first place where it has not done so before.

    Python runs signal handlers at the beginning of its own functions, and after calls of C functions.

    Args:
        spared: functions that are not interrupted.
        action: what happens there; gets the frame.
    """

    def __init__(self, *spared, action=press):
        self._spared = spared
        self._action = action
        self._places = set()
        self._place = None

    def __len__(self):
        return len(self._places)

    def run(self, function):
        """Call ``function()``; return the place where it was interrupted, or ``None`` if it came to its end.

        Ctrl-C that the shield notes is raised by a wait in it, or else at its end: none is lost. It is not sent again, since
        that would interrupt this tracer.
        """
        self._place, raised = None, False
        gc.disable()  # garbage of other tests is not to be interrupted here: what a finalizer raises goes no further
        shield._send_again = lambda main, since: None
        try:
            try:
                sys.settrace(self._trace)
                sys.setprofile(self._profile)
                function()
            finally:
                sys.setprofile(None)
                sys.settrace(None)
                del shield._send_again
                gc.enable()
            shield.deliver()
        except KeyboardInterrupt:
            raised = True
        assert self._action is not press or raised is (self._place is not None), f"Ctrl-C was lost: {self._place}"
        shield.noted = 0.0
        return self._place

    _trace = None

    def _profile(self, frame, event, argument):
        if event in ("call", "c_return") and argument is not sys.setprofile:
            self._interrupt(frame, event)

    def _interrupt(self, frame, event):
        if self._place is not None:
            return
        code = frame.f_code
        place = (code.co_filename, code.co_firstlineno, frame.f_lineno, frame.f_lasti, event)
        if place in self._places or self._is_spared(frame):
            return
        self._places.add(place)
        self._place = f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}, {event}"
        self._action(frame)

    def _is_spared(self, frame):
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            return True  # it may be closed just now
        while frame is not None:
            code = frame.f_code
            if code.co_name in self._spared or code.co_name == "__del__" or "weakref" in code.co_filename:
                return True  # what is raised in a finalizer goes no further
            frame = frame.f_back
        return False


class OpcodeInterrupter(Interrupter):
    """The same, also where a loop goes back to its beginning, and after calls of classes and of other objects."""

    def _trace(self, frame, event, argument):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return _Steps(frame, self._interrupt).trace


class _Steps:
    """Instructions of one frame, one after another.

    Args:
        frame: the frame.
        interrupt: called where the instruction before has looked for signals.
    """

    def __init__(self, frame, interrupt):
        self._interrupt = interrupt
        self._looks = _instructions_that_look(frame.f_code)
        self._latest = None
        self._called = False  # a function in Python, which has looked at its own beginning

    def trace(self, frame, event, argument):
        if event == "opcode":
            if self._latest in self._looks and not self._called:
                self._interrupt(frame, event)
            self._latest, self._called = frame.f_lasti, False
        elif event == "exception":
            self._latest = None
        elif event == "return" and (caller := frame.f_back) is not None and frame.f_code.co_name != "__init__":
            steps = getattr(caller.f_trace, "__self__", None)
            if isinstance(steps, _Steps):
                steps._called = True
        return self.trace


@cache
def _instructions_that_look(code):
    """Return the places of instructions after which Python runs signal handlers."""
    return {each.offset for each in dis.get_instructions(code) if each.opname.startswith(("CALL", "JUMP_BACKWARD"))}


def function_of(ident):
    """Return the name of the function in which a thread is."""
    return sys._current_frames()[ident].f_code.co_name
