"""``fast_math=True``: chains of arithmetic run in compiled loops, and the results are near those of eager calls."""

import importlib.util
import io
import sys
import warnings

import numpy as np
import pytest
import telegrad as tg
from helpers.compiled import array
from telegrad import nn
from telegrad.capture import loops, step_loops
from telegrad.tools.compiled_programs.program import Program

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def _chain(x):
    y = x
    for _ in range(4):
        y = (y * 1.01).tanh()
    y.sum().backward()
    return y.detach()


@needs_numba
def test_a_backward_pass_is_one_loop():
    expected, given = (tg.tensor(array(8, 8), requires_grad=True) for _ in range(2))
    function = tg.compile(_chain, fast_math=True)
    for _ in range(4):
        expected.grad = given.grad = None
        one, other = _chain(expected), function(given)
        np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=1e-6)
        np.testing.assert_allclose(given.grad.numpy(), expected.grad.numpy(), rtol=1e-5)
    assert function.plans()[0].replays == 2
    assert "chain of 16 calls in one loop of numba: multiply, multiply, subtract" in function.explain()


def _where_nan(x):
    with np.errstate(all="ignore"):
        return (((x.sqrt() + 1) / x * x.abs() - 2) > 0).float() * 0.5 + x.reciprocal() * (x - x) + x.clamp(-1, 1) / 3


def _shapes(x):
    return ((x * 2 + x[:1]) * x[:, :1] - 1) / (x * x + 1) + x.double() * (x > 0)


def _sums(x):
    return (x * x + 1).sum(0), (x * 2 - 1) / (x * x + 3) * (x + 1)


@needs_numba
@pytest.mark.parametrize("function", [_where_nan, _shapes, _sums])
@pytest.mark.parametrize("shape", [(3, 5), (100, 70)])
def test_results_are_near_also_where_they_are_not_finite(function, shape):
    x = tg.tensor(array(*shape))
    x[0, :4] = tg.tensor([float("nan"), float("inf"), -float("inf"), 0.0])
    compiled = tg.compile(function, fast_math=True)
    for _ in range(3):
        found = compiled(x)
    expected = function(x)
    for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)]):
        assert one.dtype is other.dtype
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
    assert "loop of numba" in compiled.explain() and compiled.plans()[0].replays == 1


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 40])
@np.errstate(all="ignore")
def test_random_programs_are_near(first):
    ran = 0
    for seed in range(first, first + 20):
        eager, other = Program(seed), Program(seed)
        other.changes = eager.changes = [[] for _ in eager.inputs]
        expected = eager.log(eager.function(), seed)
        function = tg.compile(other.function(), fast_math=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r".*runs eagerly")
            found = other.log(function, seed)
        ran += "loop of numba" in function.explain()
        for one, two in zip(expected[:5], found[:5]):
            if isinstance(one, str):
                assert one == two
            else:
                for (shape, mine), (_, theirs) in [pair for pair in zip(one, two) if pair[0] is not None]:
                    arrays = [np.frombuffer(each, "f").reshape(shape) for each in (theirs, mine)]
                    np.testing.assert_allclose(*arrays, rtol=1e-3, atol=1e-4)
    assert ran > 0


def test_without_numba_a_warning_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    loops.can_loop.cache_clear()
    with pytest.warns(UserWarning, match=r"pip install numba"):
        function = tg.compile(lambda x: x * 2 + 1 - x / 3, fast_math=True)
    tg.compile(abs, fast_math=True)  # says nothing again
    loops.can_loop.cache_clear()
    x = tg.tensor(array(4))
    for _ in range(3):
        assert function(x).equal(x * 2 + 1 - x / 3)
    assert "numba" not in function.explain()


@needs_numba
def test_a_saved_plan_has_no_loops_and_needs_no_numba(monkeypatch):
    net = nn.Sequential(nn.Linear(4, 4), nn.GELU())
    function = tg.compile(net, fast_math=True)
    x = tg.tensor(array(3, 4))
    with tg.no_grad():
        for _ in range(3):
            function(x)
        file = io.BytesIO()
        function.plans()[-1].save(file)
        file.seek(0)
        monkeypatch.setitem(sys.modules, "numba", None)
        assert tg.load_plan(file)(x).equal(net(x))


def _adam(kind, options):
    tg.manual_seed(0)
    weights = [nn.Parameter(tg.randn(*shape)) for shape in ((200, 200), (7,))] + [nn.Parameter(tg.randn(190, 200).t())]
    for each in weights:
        each.grad = tg.randn(*each.shape)
    return weights, kind(weights, **options)


@needs_numba
def test_steps_of_adam_run_in_loops():
    before = step_loops._compiled.cache_info()
    (expected, eager), (given, other) = (_adam(tg.optim.AdamW, {"amsgrad": True, "maximize": True}) for _ in range(2))
    step = tg.compile(other.step, fast_math=True)
    for call in range(5):
        eager.step()
        step()
        for each in (eager, other):
            each.param_groups[0]["lr"] = 0.01 / (call + 1)
        for one, two in zip(expected, given):
            np.testing.assert_allclose(two.detach().numpy(), one.detach().numpy(), rtol=1e-5, atol=1e-6)
    for name, value in eager.state[expected[0]].items():
        np.testing.assert_allclose(np.asarray(other.state[given[0]][name]), np.asarray(value), rtol=1e-5)
    after = step_loops._compiled.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (
        1,
        2,
    )  # of the other two one is small, one transposed


@pytest.mark.parametrize(
    "update", [lambda spare, x: np.exp(x, x), lambda spare, x: x.sum(), lambda spare, x: x * [1, 2]]
)
def test_other_arithmetic_of_steps_is_left_to_numpy(update):
    assert not step_loops._run(update, (), [np.ones(100_000, np.float32)])
