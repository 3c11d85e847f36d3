"""Errors of operations: they name the operation that the user called, its operands and what fits, in PyTorch's error types."""

import pickle

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import ArgumentError

A, B = tg.ones(2, 3), tg.ones(2, 4)


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        (lambda: A + B, ValueError, r"^add\(\): the shapes \(2, 3\) and \(2, 4\) cannot be .* dimension -1 .* 3 and 4"),
        (lambda: A.clone().mul_(B), ValueError, r"^mul_\(\): the shapes \(2, 3\) and \(2, 4\) cannot be broadcast"),
        (
            lambda: tg.ones(3).add_(A),
            ValueError,
            r"^add_\(\): a result of shape \(2, 3\) does not fit .* of shape \(3,\)",
        ),
        (
            lambda: tg.addr(A, A[0], B[0]),
            ValueError,
            r"^addr\(\): .*; you called addr\(float32 \(2, 3\), float32 \(3,\)",
        ),
        (lambda: tg.addmv(A[0], A, B[0]), ValueError, r"^addmv\(\): mv\(\) takes a matrix .* you called addmv\("),
        (lambda: A & A, TypeError, r"^bitwise_and\(\): there is no such function of these dtypes.*float32 \(2, 3\)"),
        (lambda: (A > 0) - (A > 0), TypeError, r"^sub\(\): booleans cannot be subtracted; use logical_xor"),
        (
            lambda: tg.arange(3).div_(tg.arange(1, 4)),
            TypeError,
            r"^div_\(\): the result's dtype is of a higher category",
        ),
        (lambda: tg.arange(3) // 0, ZeroDivisionError, r"^floor_divide\(\): integers cannot be divided by 0"),
        (lambda: tg.arange(3) ** -1, ValueError, r"^pow\(\): whole numbers have no negative powers"),
        (lambda: A.expand(5, 2, 3).add_(1), ValueError, r"^add_\(\): this memory cannot be written to.*clone\(\)"),
        (lambda: A.sum("x"), TypeError, r"^sum\(\): a dimension is an integer, and you gave 'x'"),
        (lambda: A.cumsum(1.0), TypeError, r"^cumsum\(\): a dimension is an integer, and you gave 1.0"),
        (lambda: A.amax(2), IndexError, r"^amax\(\): dim 2 is out of range: a tensor of 2 dimensions takes -2 to 1"),
        (lambda: tg.matmul([1.0], A), TypeError, r"^matmul\(\) takes tensors"),
        (lambda: tg.maximum(A, 2), TypeError, r"^maximum\(\): other must be a tensor, and you gave int; convert it"),
        (
            lambda: tg.eq(2, A),
            TypeError,
            r"^eq\(\): input must be a tensor, and you gave int; convert it by tensor\(\)",
        ),
        (lambda: tg.isclose(A, A, rtol=-1), ValueError, r"^isclose\(\) needs tolerances of 0 or more"),
        (lambda: tg.cov(A, fweights=A[0]), TypeError, r"^cov\(\): fweights must be integers, not float32"),
        (lambda: tg.roll(tg.ones(()), 1, 0), IndexError, r"^roll\(\) has no dimension \(0,\) of a 0-d tensor"),
        (lambda: tg.renorm(A[0], 2, 0, 1), ValueError, r"^renorm\(\) needs at least 2 dimensions"),
    ],
)
def test_the_message_names_the_operation_and_what_fits(act, kind, message):
    with pytest.raises(kind, match=message) as caught:
        act()
    assert isinstance(caught.value, ArgumentError) and isinstance(caught.value, RuntimeError)
    assert "NumPy" not in str(caught.value) and "ufunc" not in str(caught.value)


def test_errors_can_be_pickled():
    with pytest.raises(ArgumentError) as caught:
        _ = A + B
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and str(again) == str(caught.value)


def test_an_error_of_the_users_own_stays_what_it_is():
    class Mine(ValueError):
        pass

    def distance(a, b):
        raise Mine("from the user's function")

    with pytest.raises(Mine, match=r"^from the user's function$"):
        tg.nn.functional.triplet_margin_with_distance_loss(A, A, A, distance_function=distance)


@pytest.mark.parametrize("data", ["a", None, [None], [[1], [1, 2]], object()])
def test_what_is_no_tensor_is_shown(data):
    with pytest.raises((TypeError, ValueError), match=r"^tensor\(\): (tensors hold numbers|nested sequences)"):
        tg.tensor(data)


def test_whole_and_other_numbers_are_compared_in_one_dtype():
    assert tg.isin(tg.tensor([1.0, 2.5], dtype=tg.bfloat16), tg.tensor([1, 2])).tolist() == [True, False]
    assert np.array_equal(tg.isin(3, tg.tensor([3])).numpy(), True)
