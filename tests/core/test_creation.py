"""New tensors: from data, filled, spaced; shapes, dtypes and errors as PyTorch's."""

import math

import numpy as np
import pytest
import telegrad as tg


def test_from_data():
    assert tg.tensor([1, 2]).dtype == tg.int64 and tg.tensor([1.0, 2]).dtype == tg.float32
    assert tg.tensor([True]).dtype == tg.bool and tg.tensor([1j]).dtype == tg.complex64
    assert tg.tensor(np.float64(1)).dtype == tg.tensor(np.ones(1)).dtype == tg.float64
    assert tg.tensor([]).dtype == tg.float32 and tg.tensor([[], []]).shape == (2, 0)
    assert tg.tensor([tg.tensor(1.0), tg.tensor(2.0)]).tolist() == [1.0, 2.0]
    data = np.ones(2)
    shared, copied = tg.as_tensor(data), tg.tensor(data)
    data[0] = 5
    assert shared[0] == 5 and copied[0] == 1
    with pytest.raises(ValueError):
        tg.tensor([[1, 2], [3]])


def test_sharing_memory():
    data = np.zeros(3, np.float32)
    tensors = (tg.from_numpy(data), tg.asarray(data), tg.from_dlpack(data))
    data[1] = 2
    assert all(each.tolist() == [0, 2, 0] for each in tensors)
    assert np.from_dlpack(tensors[0]) is not data and np.shares_memory(np.from_dlpack(tensors[0]), data)
    copied = tg.asarray(data, copy=True)
    data[1] = 3
    assert copied[1] == 2 and tg.asarray([1.0], requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="cannot share"):
        tg.asarray([1.0], copy=False)
    with pytest.raises(TypeError, match="NumPy array"):
        tg.from_numpy([1.0])


@pytest.mark.parametrize(("make", "value"), [(tg.zeros, 0), (tg.ones, 1)])
def test_filled(make, value):
    for shape in ((2, 3), ([2, 3],), ((2, 3),)):
        assert make(*shape).shape == (2, 3) and bool((make(*shape) == value).all())
    assert make(()).shape == make([]).shape == () and make(0, 3).shape == (0, 3)
    assert make(2, dtype=tg.int8).dtype == tg.int8 and make(2, requires_grad=True).requires_grad
    out = tg.full((2,), 9.0)
    assert make(2, out=out) is out and bool((out == value).all())
    with pytest.raises(ValueError, match="negative"):
        make(-1)
    with pytest.raises(TypeError, match="integers"):
        make(1.5)
    with pytest.raises(ValueError, match="cuda"):
        make(1, device="cuda")
    with pytest.warns(UserWarning, match="resized"):
        assert make(3, out=out) is out and out.shape == (3,)


def test_full():
    assert tg.full((2,), 1).dtype == tg.int64 and tg.full((2,), 1.5).dtype == tg.float32
    assert tg.full((2,), True).dtype == tg.bool and tg.full((), 1j).dtype == tg.complex64
    assert tg.full((2, 2), 7, dtype=tg.float16).tolist() == [[7, 7], [7, 7]]


def test_like():
    a = tg.tensor([[1, 2, 3]], dtype=tg.int16)
    for make in (tg.zeros_like, tg.ones_like, tg.empty_like, lambda t, **o: tg.full_like(t, 4, **o), tg.rand_like):
        assert make(a, dtype=tg.float64).dtype == tg.float64 and make(a, dtype=tg.float64).shape == (1, 3)
    assert tg.full_like(a, 4).tolist() == [[4, 4, 4]] and tg.zeros_like(a).dtype == tg.int16
    assert tg.ones_like(a, dtype=tg.float32, requires_grad=True).requires_grad


def test_new():
    a = tg.tensor([1.0], dtype=tg.float64)
    assert a.new_zeros(2, 3).shape == a.new_ones((2, 3)).shape == a.new_empty(2, 3).shape == (2, 3)
    assert a.new_zeros(1).dtype == a.new_tensor([1]).dtype == a.new_full((1,), 2).dtype == tg.float64
    assert a.new_full((2,), 3, dtype=tg.int64).tolist() == [3, 3]
    assert a.new_ones(1, requires_grad=True).requires_grad


def test_arange():
    assert tg.arange(3).tolist() == [0, 1, 2] and tg.arange(3).dtype == tg.int64
    assert tg.arange(1, 2, 0.25).tolist() == [1, 1.25, 1.5, 1.75] and tg.arange(1.0).dtype == tg.float32
    assert tg.arange(5, 0, -2).tolist() == [5, 3, 1] and tg.arange(2, 2).shape == (0,)
    assert tg.arange(tg.tensor(3)).tolist() == [0, 1, 2] and tg.arange(0, 1, 0.1).shape == (10,)
    for wrong in ((1, 5, 0), (1, 5, -1)):
        with pytest.raises(ValueError, match="steps"):
            tg.arange(*wrong)


def test_spaced():
    assert tg.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1] and tg.linspace(2, 5, 1).tolist() == [2]
    assert tg.linspace(0, 10, 4, dtype=tg.int64).tolist() == [0, 3, 6, 10]
    assert tg.linspace(-10, 0, 4, dtype=tg.int64).tolist() == [-10, -6, -3, 0]
    assert tg.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j] and tg.linspace(0, 1, 0).shape == (0,)
    assert tg.logspace(0, 2, 3).tolist() == [1, 10, 100] and tg.logspace(0, 3, 4, base=2).tolist() == [1, 2, 4, 8]
    with pytest.raises(ValueError, match="steps"):
        tg.linspace(0, 1, -1)


def test_diagonals():
    assert tg.eye(2).tolist() == [[1, 0], [0, 1]] and tg.eye(2, 3).shape == (2, 3)
    assert tg.tril_indices(2, 3).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert tg.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert tg.scalar_tensor(2).dtype == tg.float32 and tg.scalar_tensor(2).shape == ()


def test_complex_parts():
    z = tg.complex(tg.tensor([3.0]), tg.tensor([4.0]))
    assert z.tolist() == [3 + 4j] and z.abs().tolist() == [5.0] and z.abs().dtype == tg.float32
    assert tg.polar(tg.tensor([2.0]), tg.tensor([math.pi / 2])).imag.tolist() == [2.0]
    z.real[0] = 7  # a view
    assert z.tolist() == [7 + 4j] and z.conj().tolist() == [7 - 4j]
    assert tg.view_as_real(z).tolist() == [[7, 4]] and tg.view_as_complex(tg.tensor([[1.0, 2.0]])).tolist() == [1 + 2j]
    assert tg.real(tg.ones(1)).tolist() == [1.0]
    with pytest.raises(TypeError, match="complex tensor"):
        tg.imag(tg.ones(1))
    with pytest.raises(TypeError, match="one dtype"):
        tg.complex(tg.ones(1), tg.ones(1, dtype=tg.float64))
    with pytest.raises(ValueError, match="last dimension"):
        tg.view_as_complex(tg.ones(3))


def test_views_of_parts_are_recorded():
    z = tg.tensor([1 + 2j, 3 + 4j], requires_grad=True)
    (z.real**2 + 3 * z.imag).sum().backward()
    assert z.grad.tolist() == [2 + 3j, 6 + 3j]
    w = tg.tensor([1 + 2j], requires_grad=True) * 1
    w.imag.mul_(2)
    assert w.tolist() == [1 + 4j]


def test_out_decides_the_dtype_of_a_range():
    whole = tg.empty(0, dtype=tg.int64)
    assert tg.arange(0, 5, 1.5, out=whole).tolist() == [0, 1, 2, 3, 4] == whole.tolist()
    with pytest.raises(ValueError, match="cannot go from 0 to 64 in steps of 0"):
        tg.arange(0, 64, 0.5, out=whole)
    assert tg.arange(3, out=tg.empty(0)).dtype == tg.float32
    assert tg.linspace(0, 1, 3, out=tg.empty(3, dtype=tg.float64)).dtype == tg.float64
