"""Counts of the calls of Python functions that a step makes in all threads of two workers."""

import os
import sys
import threading
from collections import Counter

import telegrad as tg
from telegrad.testing import in_process_cluster

ROOT = os.path.dirname(tg.__file__) + os.sep


def fewest_calls(make_step, repeats, packages, apart=()):
    """Return the calls of the step that makes the fewest, by file and function.

    Args:
        make_step: returns the step, on worker "a" of a cluster of two.
        repeats: steps; the first ones are slower.
        packages: folders of the functions that count.
        apart: files and folders in them that do not, because what they do depends on what else runs.
    """
    counted, least = Counter(), None

    def profile(frame, event, _):
        if event == "call":
            folder, _, file = frame.f_code.co_filename.removeprefix(ROOT).partition(os.sep)
            if folder in packages and not file.startswith(apart):
                counted[f"{folder}/{file}:{frame.f_code.co_name}"] += 1

    threading.setprofile(profile)  # of threads that begin from now on
    sys.setprofile(profile)
    try:
        with in_process_cluster("a", "b") as (a, _), a.use():
            step = make_step()
            for _ in range(repeats):
                counted.clear()
                step()
                least = counted.copy() if least is None else min(least, counted.copy(), key=Counter.total)
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    return least
