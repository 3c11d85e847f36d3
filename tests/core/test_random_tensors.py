"""Random tensors: ranges, moments, seeds, errors."""

import numpy as np
import pytest
import telegrad as tg


@pytest.fixture(autouse=True)
def seed():
    tg.manual_seed(0)


MANY = 20_000


@pytest.mark.parametrize(
    ("drawn", "mean", "std"),
    [
        (lambda: tg.rand(MANY), 0.5, 12**-0.5),
        (lambda: tg.randn(MANY), 0, 1),
        (lambda: tg.randint(2, 6, (MANY,)).float(), 3.5, 1.118),
        (lambda: tg.normal(2.0, 3.0, (MANY,)), 2, 3),
        (lambda: tg.normal(tg.full((MANY,), 2.0), 3.0), 2, 3),
        (lambda: tg.bernoulli(tg.full((MANY,), 0.3)), 0.3, 0.458),
        (lambda: tg.poisson(tg.full((MANY,), 4.0)), 4, 2),
        (lambda: tg.empty(MANY).uniform_(-1, 3), 1, 4 * 12**-0.5),
        (lambda: tg.empty(MANY).exponential_(2.0), 0.5, 0.5),
        (lambda: tg.empty(MANY).geometric_(0.5), 2, 2**0.5),
        (lambda: tg.empty(MANY).bernoulli_(0.25), 0.25, 0.433),
        (lambda: tg.empty(MANY).log_normal_(0, 0.5).log(), 0, 0.5),
        (lambda: tg.empty(MANY).random_(4), 1.5, 1.118),
        (lambda: tg.empty(MANY).cauchy_().sign(), 0, 1),
        (lambda: tg.randn(MANY, dtype=tg.complex64).real, 0, 0.5**0.5),
    ],
)
def test_moments(drawn, mean, std):
    values = drawn()
    assert abs(values.mean().item() - mean) < 0.05 * max(std, 1) and abs(values.std().item() / std - 1) < 0.05
    tg.manual_seed(1)
    first = drawn()
    tg.manual_seed(1)
    assert tg.equal(first, drawn())


def test_arguments():
    g = tg.Generator().manual_seed(3)
    a = tg.rand(2, 3, generator=g, dtype=tg.float64, requires_grad=True)
    assert a.shape == (2, 3) and a.dtype == tg.float64 and a.requires_grad
    out = tg.empty(2)
    assert tg.rand(2, generator=g.manual_seed(3), out=out) is out and bool((out < 1).all())
    assert tg.randint(5, (2,), dtype=tg.int8).dtype == tg.int8 and tg.randint_like(a, 3).dtype == tg.float64
    assert sorted(tg.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert (
        tg.bernoulli(tg.ones(3), 0.0).tolist() == [0, 0, 0] and tg.rand(2, dtype=tg.complex128).dtype == tg.complex128
    )
    assert tg.empty(3, dtype=tg.uint8).random_().dtype == tg.uint8 and tg.empty(9).random_(2, 4).tolist() <= [3] * 9
    assert tg.empty(2, dtype=tg.bool).bernoulli_(tg.tensor([0.0, 1.0])).tolist() == [False, True]


def test_multinomial():
    weights = tg.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 2.0]])
    drawn = tg.multinomial(weights, MANY, replacement=True)
    counts = [np.bincount(row, minlength=3) / MANY for row in drawn.numpy()]
    np.testing.assert_allclose(counts, [[0, 0.25, 0.75], [0.5, 0, 0.5]], atol=0.02)
    firsts = tg.multinomial(weights[0].broadcast_to((4000, 3)), 2)[:, 0]
    assert abs((firsts == 2).float().mean().item() - 0.75) < 0.05
    assert sorted(tg.multinomial(tg.ones(4), 4).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda: tg.multinomial(tg.tensor([1.0, 0.0]), 2), "without replacement"),
        (lambda: tg.multinomial(tg.tensor([-1.0, 2.0]), 1), "not negative"),
        (lambda: tg.multinomial(tg.zeros(2), 1), "not all 0"),
        (lambda: tg.multinomial(tg.ones(2), 0), "samples"),
        (lambda: tg.randint(3, 3, (1,)), "low < high"),
        (lambda: tg.bernoulli(tg.tensor([1.5])), "between 0 and 1"),
        (lambda: tg.empty(1).bernoulli_(2.0), "between 0 and 1"),
        (lambda: tg.poisson(tg.tensor([-1.0])), "not negative"),
        (lambda: tg.normal(tg.zeros(1), -1.0), "not negative"),
        (lambda: tg.empty(1).exponential_(0), "positive rate"),
        (lambda: tg.empty(1).geometric_(0), "above 0"),
        (lambda: tg.empty(1).random_(3, 3), "from_ < to"),
    ],
)
def test_wrong_arguments(wrong, match):
    with pytest.raises(ValueError, match=match):
        wrong()


def test_wrong_types():
    with pytest.raises(TypeError, match="size"):
        tg.normal(0.0, 1.0)
    with pytest.raises(TypeError, match="floating-point"):
        tg.bernoulli(tg.tensor([1]))


def test_filling_a_leaf_is_refused_while_recording():
    with pytest.raises(RuntimeError, match="no_grad"):
        tg.ones(2, requires_grad=True).exponential_()
