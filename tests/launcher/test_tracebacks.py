"""Filter of tracebacks: the lines of a worker that it keeps."""

import builtins
import random
import traceback

import pytest
from telegrad.launcher.tracebacks import TracebackFilter


def formatted(error):
    try:
        raise error
    except BaseException as raised:
        return "".join(traceback.format_exception(type(raised), raised, raised.__traceback__)).splitlines()


def chained():
    try:
        try:
            raise KeyError("inner")
        finally:
            raise ValueError("outer")
    except ValueError as error:
        return error


ERRORS = [KeyboardInterrupt(), ValueError("bad"), chained()]
if group := getattr(builtins, "ExceptionGroup", None):  # from Python 3.11 on
    ERRORS.append(group("several", [ValueError("a"), chained()]))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_tracebacks_are_dropped_and_the_rest_is_kept(error, seed):
    lines = ["epoch 1", "  indented", "", *formatted(error), "saved", "", "done"]
    keep, rng, kept = TracebackFilter(), random.Random(seed), []
    while lines:
        cut = rng.randint(1, 4)  # they come in pieces
        kept += keep.keep(lines[:cut])
        lines = lines[cut:]
    assert kept == ["epoch 1", "  indented", "", "saved", "", "done"]


def test_what_python_ignores_while_it_ends_is_dropped():
    lines = ["Exception ignored in: <function f>", *formatted(ValueError("x")), "", "over"]
    assert TracebackFilter().keep(lines) == ["over"]
