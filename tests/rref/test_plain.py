"""Values that a reading thread may free: nothing in them is a user's code."""

import weakref

import numpy as np
import pytest
import telegrad as tg
from telegrad.core.futures import Future
from telegrad.rref.plain import frees_quietly


class Own(tg.Tensor):
    pass


def future_of(value):
    future = Future()
    future.set_result(value)
    return future


@pytest.mark.parametrize(
    "value", [None, True, 7, 2.5, 1j, "text", b"bytes", tg.ones(3), tg.ones(3, requires_grad=True)]
)
def test_numbers_texts_and_tensors_are_freed_quietly(value):
    assert frees_quietly(future_of(value))


def test_no_value_is_freed_quietly():
    assert frees_quietly(None)


@pytest.mark.parametrize(
    "value",
    [[1], (1,), {}, object(), "x" * 100_000, tg.zeros(100_000), Own(tg.ones(1)), 2 * tg.ones(2, requires_grad=True)],
)
def test_containers_objects_large_values_and_parts_of_graphs_are_not(value):
    assert not frees_quietly(future_of(value))


def test_a_tensor_that_somebody_watches_is_not():
    tensor = tg.ones(3)
    finalizer = weakref.finalize(tensor, int)
    assert not frees_quietly(future_of(tensor))
    finalizer.detach()
    assert frees_quietly(future_of(tensor))


def test_a_tensor_with_an_attribute_of_a_user_is_not():
    tensor = tg.ones(3)
    tensor.note = object()
    assert not frees_quietly(future_of(tensor))


def with_a_hook():
    tensor = tg.ones(3, requires_grad=True)
    tensor.register_hook(print)
    return tensor


def with_a_gradient():
    tensor = tg.ones(3, requires_grad=True)
    tensor.grad = tg.ones(3)
    return tensor


@pytest.mark.parametrize(
    "make",
    [with_a_hook, with_a_gradient, lambda: tg.zeros(1_000_000)[:2], lambda: tg.from_numpy(np.ones(9)[:3])],
    ids=["hook", "gradient", "view", "memory"],
)
def test_a_tensor_that_keeps_more_than_its_numbers_is_not(make):
    assert not frees_quietly(future_of(make()))


def test_a_tensor_whose_array_somebody_watches_is_not():
    array = np.ones(3)
    finalizer = weakref.finalize(array, int)
    assert not frees_quietly(future_of(tg.from_numpy(array)))
    finalizer.detach()


def test_an_error_and_a_value_that_is_still_made_are_not():
    failed = Future()
    failed.set_exception(ValueError("no"))
    assert not frees_quietly(failed) and not frees_quietly(Future())
