"""Frames of all threads, for those that look at what they do."""

from __future__ import annotations

import sys
import threading
from types import FrameType


def thread_frames() -> dict[int, FrameType]:
    """Return the innermost frame of each thread, by the thread's id; of this thread, that of the caller's caller.

    A frame that its own function keeps in a variable is a reference cycle: what the frames of all threads refer to would live
    until the next garbage collection, long after their functions have returned.
    """
    frames = sys._current_frames()
    frames[threading.get_ident()] = sys._getframe(2)
    return frames
