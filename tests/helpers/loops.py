"""An event loop that a test drives."""

from functools import partial


class ManualLoop:
    """A loop that a test drives, with a clock of its own."""

    def __init__(self):
        self.time = 0.0
        self.wake_ups = 0
        self._soon = []
        self._later = []

    def call_soon_threadsafe(self, callback, *, context):
        self.wake_ups += 1
        self._soon.append(callback)

    def call_later(self, delay, callback, *args, context):
        entry = [self.time + delay, partial(callback, *args)]
        self._later.append(entry)
        return ManualHandle(self._later, entry)

    def advance(self, seconds=0.0):
        self.time += seconds
        while due := self._soon or [each for each in self._later if each[0] <= self.time]:
            first = due.pop(0)
            if first in self._later:
                self._later.remove(first)
            (first[1] if isinstance(first, list) else first)()


class ManualHandle:
    def __init__(self, later, entry):
        self._later, self._entry = later, entry

    def cancel(self):
        if self._entry in self._later:
            self._later.remove(self._entry)
