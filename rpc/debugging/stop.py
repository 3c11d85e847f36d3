"""``Stop``: a thread that a debugger holds, as the thread and the processes that type into it share it."""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass

from ...base.errors import RpcError
from ...core.futures import Future, Waiter, block, complete_once
from ..threads.ioloop import may_block

MOST_OUTPUT = 1 << 20  # characters that are kept: older ones are dropped
MOST_TYPED = 1000  # that wait to be read


@dataclass(frozen=True, slots=True)
class HeldPlace:
    """Place at which a thread is held.

    Attributes:
        worker: name of its worker.
        thread: name of the thread.
        file, line, function: where it is.
        reason: "breakpoint", or the text of the exception that stopped it.
    """

    worker: str
    thread: str
    file: str
    line: int
    function: str
    reason: str = "breakpoint"


@dataclass(frozen=True, slots=True)
class Said:
    """Output of a held thread.

    Attributes:
        output: the text since the place that was asked for.
        seen: place to ask for next: how many characters there were so far.
        state: "prompt" if the thread waits for a line, "running" between two prompts, "ended" when it goes on.
    """

    output: str
    seen: int
    state: str


class Stop:
    """Thread that is held. The thread itself writes and reads lines; any other thread gives lines and asks for the output.

    Args:
        number: its number on this worker.
        place: where it is held.
        ident: number of the thread in its process.
    """

    def __init__(self, number: int, place: HeldPlace, ident: int) -> None:
        self.number = number
        self.place = place
        self.ident = ident
        self._lock = threading.Lock()
        self._output: deque[str] = deque()  # pieces, as they were written
        self._kept = 0  # characters in them
        self._dropped = 0  # characters that were written and are not kept
        self._lines: deque[str] = deque()
        self._given = Waiter()  # woken when there is a line
        self._state = "running"
        self._changed: Future[None] = Future()  # completes when it waits for a line, or ends

    # -- its thread

    def write(self, text: str) -> None:
        """Add text to the output."""
        with self._lock:
            self._output.append(text)
            self._kept += len(text)
            while (over := self._kept - MOST_OUTPUT) > 0:
                first = self._output.popleft()
                if len(first) > over:
                    self._output.appendleft(first[over:])
                dropped = min(len(first), over)
                self._kept, self._dropped = self._kept - dropped, self._dropped + dropped

    def read_line(self) -> str | None:
        """Return the next line; None if it was given up. In a thread of a pool another thread may run meanwhile; an event loop
        stands still.
        """
        while (line := self._next()) is None:
            if self.ended:
                return None
            if may_block():
                block(self._given.sleep, math.inf)
            else:
                self._given.sleep(-1)
        return line

    def _next(self) -> str | None:
        with self._lock:
            if self._lines:
                self._state = "running"
                return self._lines.popleft()
            if self._state == "ended":
                return None
            self._state, self._given = "prompt", Waiter()
            changed, self._changed = self._changed, Future()
        complete_once(changed, None)
        return None

    def end(self) -> None:
        """Note that the thread goes on."""
        with self._lock:
            self._state = "ended"
            changed = self._changed
        complete_once(changed, None)

    @property
    def ended(self) -> bool:
        """Return whether the thread goes on, or was given up."""
        return self._state == "ended"

    # -- other threads

    def give_up(self) -> bool:
        """Note that the thread does not come back to a prompt; return False if it is at one."""
        with self._lock:
            if self._state == "prompt" or self._lines:
                return False
            self._state, changed = "ended", self._changed
        complete_once(changed, None)
        return True

    def give(self, line: str) -> None:
        """Give a line to the thread.

        Raises:
            RpcError: it goes on already, or too many lines wait.
        """
        with self._lock:
            if self._state == "ended":
                raise RpcError(f"stop {self.number} of worker {self.place.worker!r} has ended: the thread goes on")
            if len(self._lines) >= MOST_TYPED:
                raise RpcError(f"{MOST_TYPED} lines wait to be read by stop {self.number} of {self.place.worker!r}")
            self._lines.append(line)
            self._state = "running"
            self._given.release()

    def said(self, seen: int) -> Said:
        """Return the output after ``seen`` characters."""
        with self._lock:
            output = "".join(self._output)
            return Said(output[max(seen - self._dropped, 0) :], self._dropped + self._kept, self._state)

    def changed(self) -> Future[None] | None:
        """Return a future of the next time that it waits for a line, or ends; None if it does already."""
        with self._lock:
            return self._changed if self._state == "running" else None
