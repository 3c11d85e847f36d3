"""Effects of a call, and values that it reads anew each time: it runs eagerly, and says why."""

import contextlib
import datetime
import io
import itertools
import os
import queue
import threading
import warnings

import numpy as np
import pytest
import telegrad as tg
from helpers.compiled import array as numbers

SCALE = 1


def _with(function, **attributes):
    for name, value in attributes.items():
        setattr(function, name, value)
    return function


def _appended():
    seen = []
    append = seen.append
    return lambda x: (append(1), x * 2)[1], lambda: seen, "a list was changed"


def _elements():
    seen = np.zeros(1)
    return lambda x: (seen.__iadd__(1), x * 2)[1], seen.tolist, "elements of a ndarray"


def _counted():
    def run(x):
        run.calls += 1
        return x * run.calls

    return _with(run, calls=0), lambda: run.calls, "calls was changed"


def _queued():
    waiting = queue.Queue()
    return lambda x: (waiting.put(1), x * 2)[1], waiting.qsize, "changed"


def _simply_queued():
    waiting = queue.SimpleQueue()
    return lambda x: (waiting.put(1), x * 2)[1], waiting.qsize, "changed"


def _written():
    file = io.StringIO()
    return lambda x: (file.write("a"), x * 2)[1], file.getvalue, "write() of a file"


def _iterated():
    turns = itertools.count()
    return lambda x: x * 2 if next(turns) % 4 == 3 else x, list, "it reads a count"


def _generated():
    turns = (each % 4 == 3 for each in itertools.count())
    return lambda x: x * 2 if next(turns) else x, list, "it reads a generator"


def _seeded():
    return lambda x: (tg.manual_seed(3), x * tg.randn(3))[1], lambda: tg.randn(2), "manual_seed() sets the state"


def _grad_mode():
    def state():
        found = tg.is_grad_enabled()
        tg.set_grad_enabled(True)
        return found

    return lambda x: (tg.set_grad_enabled(False), x * 2)[1], state, "changes the grad mode"


def _now():
    return lambda x: x * 2 if datetime.datetime.now().year < 1 else x, list, "now() reads the clock"


def _system():
    return lambda x: x * 2 if os.urandom(1)[0] < 0 else x, list, "urandom() asks the operating system"


def _warned():
    told = []

    def run(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("again", stacklevel=1)
        told.append(len(caught))
        return x * 2

    return run, lambda: list(told), "warn() would happen in no replay"


def _thread():
    return lambda x: x * (threading.current_thread().name == "MainThread"), list, "get_ident() tells the thread"


def _global_names():
    return lambda x: x * globals()["SCALE"], list, "it calls globals()"


@pytest.mark.parametrize(
    "make",
    [
        *(_appended, _elements, _counted, _queued, _simply_queued, _written, _iterated, _generated, _seeded),
        *(_grad_mode, _now, _system, _warned, _thread, _global_names),
    ],
)
def test_effects_and_other_values_of_each_call_run_eagerly(sides, make):
    def made():
        function, state, _ = make()
        return function, state, lambda call: [tg.tensor(numbers(3, seed=call))]

    sides.run(made)
    (said,) = sides.reasons()
    assert make()[2] in said


@pytest.mark.parametrize("way", ["try", "suppress"])
def test_errors_that_the_function_catches_after_a_change(sides, way):
    def made():
        weight = tg.ones(3)

        def tried(x, index):
            weight.mul_(2)
            try:
                return x[index]
            except IndexError:
                return x * 0

        def suppressed(x, index):
            with contextlib.suppress(IndexError):
                x = x[index]
            return weight.mul_(2) * x

        run = tried if way == "try" else suppressed
        return run, lambda: weight, lambda call: [tg.tensor(numbers(3, seed=call)), tg.tensor([0, 9 * (call == 4), 1])]

    sides.run(made)
    assert "put the try statement around" in sides.reasons()[0]
