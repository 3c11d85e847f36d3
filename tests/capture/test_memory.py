"""Memory of a replay: large results are freed at their last use, and take none between replays."""

import tracemalloc

import pytest
import telegrad as tg
from helpers.compiled import array

SIDE = 512  # of a matrix, of 1 MiB
MATRIX = 4 * SIDE * SIDE


@pytest.fixture
def x():
    return tg.from_numpy(array(SIDE, SIDE) / SIDE)


def peak(function, *args):
    """Return the most bytes of arrays that a call needs at one time, and those that stay."""
    tracemalloc.start()
    try:
        function(*args)
        return tracemalloc.get_traced_memory()[::-1]
    finally:
        tracemalloc.stop()


def replayed(function, *args):
    """Return a compiled function that has replayed a call, and its plan."""
    compiled = tg.compile(function)
    for _ in range(3):
        compiled(*args)
    return compiled, compiled.plans()[-1]


def products(x):
    for _ in range(6):
        x = (x @ x).t() @ x
    return x.sum()


def views(x):
    """Return a sum of results of which only small views are used in the end."""
    y = x @ x
    for _ in range(4):
        row = y[0]
        y = (x @ x) + row
        y = y.square().neg().view(-1)[: SIDE * SIDE].view(SIDE, SIDE)
    return y.sum()


@pytest.mark.parametrize("function", [products, views])
def test_large_results_are_freed_at_their_last_use(function, x):
    compiled, plan = replayed(function, x)
    assert plan.memory < MATRIX
    most, left = peak(compiled, x)
    assert left < 10_000 and most < plan.source.passing + MATRIX / 8 < 4 * MATRIX
    assert tg.equal(compiled(x), function(x))


def test_a_result_is_written_over_an_operand_that_ends(x):
    compiled, plan = replayed(lambda x: ((x @ x) * 2).sum(0).tanh() @ x, x)
    assert plan.source.passing == MATRIX
    assert f"and {MATRIX:,} while it runs" in compiled.explain()


def test_an_activation_is_written_over_its_operand(x):
    compiled, plan = replayed(lambda x: (x @ x).relu().sum(0).relu() @ x, x)
    assert plan.source.passing == MATRIX
    assert tg.equal(compiled(x), (x @ x).relu().sum(0).relu() @ x)


def test_gradients_wait_for_their_backward_in_memory_of_their_own(x):
    weight = tg.nn.Parameter(x.clone())
    function = lambda x: ((x @ weight).tanh() @ weight).exp()  # noqa: E731
    compiled, _ = replayed(function, x)
    results = [compiled(x), compiled(x * 2)]
    for result, given in zip(results, (x, x * 2)):
        weight.grad = None
        result.sum().backward()
        found, weight.grad = weight.grad, None
        function(given).sum().backward()
        assert tg.equal(found, weight.grad)


def test_results_with_many_small_views_have_memory_that_stays(x):
    def rows(x):
        y = x @ x
        return sum(y[row] for row in range(SIDE)).sum()

    compiled, plan = replayed(rows, x)
    assert plan.memory >= MATRIX and not plan.source.passing
    assert tg.equal(compiled(x), rows(x))


@pytest.mark.parametrize("change", [None, tg.Tensor.zero_])
def test_a_view_that_cannot_be_written_is_not_overwritten(change, x):
    """A matrix is expanded, and the only use of it is one element-wise function of a view that NumPy lets nobody write to."""
    other = tg.ones(3)

    def expanded(x):
        if change is not None:
            change(other)
        return (x * 1.5 + 0.25).expand(2, SIDE, SIDE)[1].square().mean()

    for each in (x, x.t()):
        compiled, plan = replayed(expanded, each)
        assert tg.equal(compiled(each), expanded(each))
        assert plan.replays == 2
