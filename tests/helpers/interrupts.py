"""Ctrl-C at every place of a function where Python may run a signal's handler: one after another, each once."""

import inspect
import sys


class Interrupter:
    """Interrupts the functions that it runs: each time at the first place where it has not done so before.

    Python runs signal handlers at the beginning of its own functions, and after calls of C functions.

    Args:
        spared: functions that are not interrupted.
    """

    def __init__(self, *spared):
        self._spared = spared
        self._places = set()
        self._place = None

    def __len__(self):
        return len(self._places)

    def run(self, function):
        """Call ``function()``; return the place where it was interrupted, or ``None`` if it came to its end."""
        self._place = None
        try:
            sys.setprofile(self._profile)
            function()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        return self._place

    def _profile(self, frame, event, argument):
        if self._place is not None or event not in ("call", "c_return") or argument is sys.setprofile:
            return
        code = frame.f_code
        place = (code.co_filename, code.co_firstlineno, frame.f_lineno, frame.f_lasti, event)
        if place in self._places or self._is_spared(frame):
            return
        self._places.add(place)
        self._place = f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}, {event}"
        raise KeyboardInterrupt

    def _is_spared(self, frame):
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            return True  # it may be closed just now
        while frame is not None:
            code = frame.f_code
            if code.co_name in self._spared or code.co_name == "__del__" or "weakref" in code.co_filename:
                return True  # what is raised in a finalizer goes no further
            frame = frame.f_back
        return False
