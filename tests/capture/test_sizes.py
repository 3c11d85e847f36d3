"""Sizes of what a forged plan makes: they are known before a call runs, and what a plan says of shapes is checked."""

import random
import tracemalloc

import numpy as np
import pytest
import telegrad as tg
from helpers.plans import forged, mutated, saved
from telegrad import nn
from telegrad.base.errors import CheckpointError
from telegrad.capture.allowed import functions
from telegrad.capture.sizes import check_size
from telegrad.capture.values import Kind, Statement, Value


def _value(number, array):
    return Value(number, frozenset([number]), array)


A, B, ROW = np.ones((6, 5), "f"), np.ones((5, 4), "f"), np.ones(5, "f")
CASES = [
    ("add", (A, ROW), {}),
    ("where", (A > 0, A, ROW), {}),
    ("outer", (ROW, ROW), {}),
    ("multiply.outer", (A, ROW), {}),
    ("kron", (A, B), {}),
    ("matmul", (A, B), {}),
    ("matmul", (np.ones((3, 6, 5), "f"), B), {}),
    ("dot", (A, B), {}),
    ("inner", (A, ROW), {}),
    ("tensordot", (A, B, 1), {}),
    ("tensordot", (A, B), {"axes": ((1,), (0,))}),
    ("einsum", ("ab,bc->ac", A, B), {}),
    ("take", (A, np.array([0, 1, 1])), {"axis": 0}),
    ("getitem", (A, np.array([[0, 1, 1]])), {}),
    ("getitem", (A, (np.array([0, 1]), slice(None))), {}),
    ("getitem", (A, (Ellipsis, None, np.array([0, 1]))), {}),
    ("broadcast_to", (ROW, (7, 5)), {}),
    ("repeat", (A, 3), {"axis": 0}),
    ("tile", (A, (2, 3)), {}),
    ("pad", (A, ((1, 2), (0, 3))), {}),
    ("concatenate", ((A, A),), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_the_size_of_a_result_is_known_before(name, args, kwargs):
    result = functions()[name](*args, **kwargs)
    numbers = iter(range(10))

    def given(each):
        if isinstance(each, tuple) and any(isinstance(part, np.ndarray) for part in each):
            return tuple([given(part) for part in each])
        return _value(next(numbers), each) if isinstance(each, np.ndarray) else each

    call = Statement(Kind.CALL, functions()[name], tuple([given(each) for each in args]), kwargs, _value(99, result))
    check_size(name, call, lambda outer: (), result.nbytes)
    with pytest.raises(ValueError, match="memory="):
        check_size(name, call, lambda outer: (), result.nbytes - 1)


def _with_calls(*calls):
    """Return the data of a plan of ``x * 2`` that makes further calls first; each is (function, arguments, its shape)."""
    file, _ = saved(lambda x: x * 2, tg.ones(1 << 10))
    found = tg.load(file)
    number = found["arrays"][0][0]
    for place, (function, args, shape) in enumerate(calls):
        value = 900 + place
        given = tuple(
            [{"value": number} if each == "x" else [{"value": number}] * 2 if each == "xx" else each for each in args]
        )
        strides = tuple([4 * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))])
        found["values"].append((value, [value], (shape, "float32", strides, True)))
        call = ("CALL", function, given, {"dict": []}, value, None, [], (False,) * 3)
        found["statements"].insert(place, call)
        number = value
    return {**found, "half": found["half"] + len(calls)}


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("outer", ("x", "x")),
        ("repeat", ("x", 1 << 10)),
        ("broadcast_to", ("x", (1024, 1024))),
        ("tile", ("x", 1024)),
    ],
)
def test_calls_with_large_results_are_refused_at_load(function, args):
    data = _with_calls((function, args, (4,)))
    with pytest.raises(CheckpointError, match="memory="):
        tg.load_plan(forged(data), memory=1 << 16)


def test_results_of_another_shape_than_the_plan_says_end_the_call():
    doubling = [("concatenate", ("xx",), (1 << 10,))] * 30
    plan = tg.load_plan(forged(_with_calls(*doubling)), memory=1 << 16)
    with pytest.raises(CheckpointError, match="the plan says"):
        plan(tg.ones(1 << 10))


def test_many_results_are_refused():
    many = [("add", ("x", 1.0), (1 << 10,))] * 80
    with pytest.raises(CheckpointError, match="results take"):
        tg.load_plan(forged(_with_calls(*many)), memory=1 << 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [range(15), pytest.param(range(15, 200), marks=pytest.mark.soak)], ids=["few", "many"]
)
def test_changed_plans_take_no_more_memory_than_allowed(seeds):
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    file, _ = saved(lambda x: {"a": net(x) @ net(x).T, "b": x.repeat(2, 1), "c": x[:, [0, 0]]}, tg.randn(4, 8))
    found, limit = tg.load(file), 1 << 16
    x = tg.randn(4, 8)
    tracemalloc.start()
    try:
        for seed in seeds:
            rng = random.Random(seed)
            data = forged(mutated(mutated(found, rng), rng))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                plan = tg.load_plan(data, memory=limit)
                plan(x)
            except Exception as error:
                assert isinstance(error, (CheckpointError, tg.errors.TelegradError, IndexError)), error
            assert tracemalloc.get_traced_memory()[1] - before < 5 * limit + (2 << 20), seed
    finally:
        tracemalloc.stop()
