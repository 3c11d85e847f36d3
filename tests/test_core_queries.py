"""What users read from a tensor: `.grad` and who owns it, NumPy and DLPack without a copy, iteration, small properties."""

from __future__ import annotations

import numpy as np
import pytest
import telegrad as tg


def test_reading_the_gradient_of_a_result_warns_unless_it_is_retained():
    x = tg.ones(2, requires_grad=True)
    y, kept = x * 2, x * 3
    kept.retain_grad()
    with pytest.warns(UserWarning, match=r"not a leaf.*call retain_grad\(\)"):
        assert y.grad is None
    assert kept.grad is None and x.grad is None and tg.ones(2).grad is None
    (y + kept).sum().backward()
    assert kept.grad.tolist() == [1, 1] and x.grad.tolist() == [5, 5]


def test_gradients_given_to_chosen_results_do_not_warn():
    x = tg.ones(2, requires_grad=True)
    y = x * 2
    (y * 3).sum().backward(inputs=[y], create_graph=True)
    assert y.grad.tolist() == [3, 3]


def test_a_gradient_that_nobody_else_holds_is_not_copied():
    x = tg.ones(3, 4, requires_grad=True)
    (x * 2).backward(tg.ones(3, 4))
    array = x._grad._array
    address = array.ctypes.data
    del array
    assert x.grad.data_ptr() == address


def test_a_gradient_that_others_hold_is_copied():
    a, b = tg.ones(3, requires_grad=True), tg.ones(3, requires_grad=True)
    (a + b).backward(tg.ones(3))
    a.grad.mul_(7)
    assert b.grad.tolist() == [1, 1, 1] and a.grad.tolist() == [7, 7, 7]
    c = tg.ones(3, requires_grad=True)
    c.sum().backward()
    c.grad[0] = 5
    assert c.grad.tolist() == [5, 1, 1]


def test_numpy_sees_the_same_memory():
    x = tg.ones(2, 3)
    array = np.asarray(x)
    array[0, 0] = 7
    assert x[0, 0].item() == 7 and np.asarray(x, copy=False) is not None
    assert np.array(x) is not x.numpy() and np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)
    with pytest.raises(tg.errors.AutogradError, match=r"detach\(\)\.numpy\(\)"):
        np.asarray(tg.ones(1, requires_grad=True))


def test_dlpack_shares_memory_both_ways():
    x, array = tg.zeros(3), np.zeros(3, np.float32)
    assert np.from_dlpack(x).ctypes.data == x.data_ptr()
    shared = tg.from_dlpack(array)
    array[1] = 4
    assert shared.tolist() == [0, 4, 0] and x.__dlpack_device__() == array.__dlpack_device__()
    assert tg.from_dlpack(x).data_ptr() == x.data_ptr()


def test_iterating_unbinds():
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x
    (first * second).sum().backward()
    assert x.grad.tolist() == [[3, 4], [1, 2]]
    y = tg.zeros(3, 2)
    for row in y:
        row.add_(1)
    assert y.tolist() == [[1, 1]] * 3
    with pytest.raises(TypeError, match="iterate over a 0-d tensor"):
        iter(tg.tensor(1.0))
    with pytest.raises(ValueError, match="not enough values"):
        _, _, _ = tg.zeros(2)


def test_small_properties():
    x = tg.zeros(2, 3)
    assert not x.is_cuda and not x.is_sparse and x.layout == "strided" and x.names == (None, None)
    assert x.get_device() == -1 and x.device == "cpu" and x.nelement() == 6 and x.itemsize == 4 and x.nbytes == 24
    assert x.is_floating_point() and not x.is_complex() and x.is_signed()
    whole = tg.tensor([1], dtype=tg.uint8)
    assert not whole.is_floating_point() and not whole.is_signed() and tg.zeros(1, dtype=tg.complex64).is_complex()
