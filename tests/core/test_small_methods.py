"""Small methods and names that programs for PyTorch use: constants, element-wise Python functions."""

import numpy as np
import pytest
import telegrad as tg


def test_constants():
    assert tg.Size([2, 3]) == tg.ones(2, 3).shape and isinstance(tg.ones(2).size(), tg.Size)
    assert (tg.pi, tg.e, tg.inf) == (np.pi, np.e, np.inf) and tg.nan != tg.nan
    assert tg.ones(2)[tg.newaxis].shape == (1, 2)


def test_python_functions_are_put_on_each_element():
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda value: value * 10) is x and x.tolist() == [[10, 20], [30, 40]]
    assert x.map_(tg.tensor([1.0, 2.0]), lambda one, other: one + other).tolist() == [[11, 22], [31, 42]]
    with pytest.raises(TypeError, match="cannot be recorded; call them on detach"):
        tg.ones(2, requires_grad=True).apply_(abs)


def test_a_change_by_a_python_function_is_noticed_by_autograd():
    a = tg.ones(2, requires_grad=True)
    y = a.exp()
    y.detach().apply_(lambda value: 0.0)
    with pytest.raises(RuntimeError, match="modified"):
        y.sum().backward()


def test_questions():
    x = tg.tensor([[1.0]])
    assert x.is_nonzero() and tg.is_nonzero(x) and not tg.tensor(0).is_nonzero()
    assert x.is_same_size(tg.zeros(1, 1)) and not tg.is_same_size(x, tg.zeros(1))
    assert tg.is_signed(x) and not tg.tensor(True).is_signed()
    assert not any((x.is_conj(), x.is_neg(), x.is_inference(), x.is_pinned(), tg.is_conj(x), tg.is_neg(x)))
    assert x.resolve_neg() is x and x.pin_memory() is x and tg.resolve_neg(x) is x
    assert x.type() == "float32" and x.type(tg.int64).dtype == "int64"


def test_draws_are_methods_too():
    weights = tg.tensor([0.0, 1.0, 0.0])
    assert weights.multinomial(3, replacement=True).tolist() == [1, 1, 1]
    assert weights.bernoulli().tolist() == [0, 1, 0] and weights.bernoulli(1.0).tolist() == [1, 1, 1]


@pytest.mark.skipif(tg.bfloat16 is None, reason="ml_dtypes is not installed")
def test_bfloat16_is_a_method():
    assert tg.ones(2).bfloat16().dtype == tg.bfloat16


def test_copies_and_memory_of_others():
    x = tg.ones(2, requires_grad=True)
    assert not tg.detach(x).requires_grad and tg.detach(x).data_ptr() == x.data_ptr()
    assert tg.fill(x, 3).tolist() == [3, 3] and x.tolist() == [1, 1]
    memory = bytearray(np.arange(4, dtype=np.int32).tobytes())
    numbers = tg.frombuffer(memory, dtype=tg.int32, count=2, offset=4)
    memory[4] = 9
    assert numbers.tolist() == [9, 2]
    array = np.arange(3)
    assert tg.from_dlpack(array, copy=True, device="cpu").data_ptr() != tg.from_dlpack(array).data_ptr()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: tg.ones(2, 3).sum_to_size(2), r"sum_to_size\(\) cannot sum shape \(2, 3\) to \(2,\)"),
        (lambda: tg.ones(3).fill_diagonal_(1), r"fill_diagonal_\(\) takes a matrix"),
        (lambda: tg.select_scatter(tg.ones(2, 3), tg.ones(2), 1, 3), "index 3 is out of range for dim 1 of length 3"),
        (lambda: tg.select_scatter(tg.ones(2, 3), tg.ones(3), 1, 0), r"needs a src of shape \(2,\)"),
        (lambda: tg.slice_scatter(tg.ones(4), tg.ones(3), 0, 2), r"needs a src of shape \(2,\)"),
        (lambda: tg.index_reduce(tg.ones(2), 0, tg.tensor([0]), tg.ones(1), "sum"), "takes reduce prod, mean"),
        (lambda: tg.index_reduce(tg.ones(2), 0, tg.tensor([0]), tg.ones(2), "mean"), r"a source of shape \(1,\)"),
        (lambda: tg.trapezoid(tg.ones(3), tg.ones(2)), "needs a coordinate for each of 3 values, and x has 2"),
        (lambda: tg.gradient(tg.ones(1)), "needs at least 2 values in dim 0, and there are 1"),
        (lambda: tg.gradient(tg.ones(3), edge_order=3), "takes edge_order 1 or 2"),
        (lambda: tg.gradient(tg.ones(3, 3), spacing=[1.0]), "needs a spacing for each of 2 dimensions"),
        (lambda: tg.gradient(tg.ones(3), spacing=[tg.ones(2)]), "needs 3 coordinates in dim 0"),
        (lambda: tg.histogram(tg.ones(3), 2, weight=tg.ones(2)), "needs weights of shape"),
        (lambda: tg.unravel_index(tg.tensor([12]), (3, 4)), "out of bounds"),
        (lambda: tg.mvlgamma(tg.ones(1), 0), "takes a dimension from 1"),
        (lambda: tg.pdist(tg.ones(3)), r"takes a matrix and p from 0, and you gave shape \(3,\)"),
        (lambda: tg.hann_window(-1), "needs a length that is not negative"),
    ],
)
def test_nonsense_is_refused(function, message):
    with pytest.raises((ValueError, IndexError), match=message):
        function()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: tg.frexp(tg.tensor(1)), "takes floating-point numbers, not int64"),
        (lambda: tg.nextafter(tg.tensor(1), tg.tensor(2)), "takes floating-point numbers"),
        (lambda: tg.histogram(tg.tensor([1]), 2), "takes floating-point numbers, not int64"),
        (lambda: tg.unravel_index(tg.ones(1), 3), "takes integers, not float32"),
    ],
)
def test_other_types_are_refused(function, message):
    with pytest.raises(TypeError, match=message):
        function()
