"""Properties of tensors: `.grad` and its owner, NumPy and DLPack without a copy, iteration."""

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


VIEWS = {
    "itself": lambda a: a,
    "row": lambda a: a[1],
    "column": lambda a: a[:, 2],
    "element": lambda a: a[1, 2, 0, ...],
    "every other": lambda a: a[::2, 1::2],
    "none": lambda a: a[None, :, None],
    "dots": lambda a: a[..., 1],
    "nothing": lambda a: a[3:],
    "empty middle": lambda a: a[:, 4:],
}
TENSOR_VIEWS = {
    "transposed": (lambda t: t.transpose(0, 2), lambda a: a.transpose(2, 1, 0)),
    "permuted": (lambda t: t.permute(1, 2, 0), lambda a: a.transpose(1, 2, 0)),
    "expanded": (lambda t: t[:, :1].expand(3, 5, 2), lambda a: np.broadcast_to(a[:, :1], (3, 5, 2))),
    "reshaped": (lambda t: t.view(4, 6), lambda a: a.reshape(4, 6)),
    "flattened": (lambda t: t.flatten(), lambda a: a.reshape(-1)),
    "narrowed": (lambda t: t.narrow(1, 1, 2), lambda a: a[:, 1:3]),
    "unbound": (lambda t: t.unbind(1)[3], lambda a: a[:, 3]),
    "split": (lambda t: t.split(2)[1], lambda a: a[2:]),
    "diagonal": (lambda t: t[:, :3].diagonal(), lambda a: a[:, :3].diagonal()),
    "detached": (lambda t: t[1:].detach(), lambda a: a[1:]),
    "squeezed": (lambda t: t[1:2].squeeze(0), lambda a: a[1]),
    "of a view": (lambda t: t[1:].transpose(0, 1)[1:, ::2], lambda a: a[1:].transpose(1, 0, 2)[1:, ::2]),
    "as real": (lambda t: tg.view_as_real(t) if t.is_complex() else t, lambda a: _as_real(a)),
}
TENSOR_VIEWS.update({name: (view, view) for name, view in VIEWS.items()})


def _as_real(a):
    return a.view(a.real.dtype).reshape(*a.shape, 2) if a.dtype.kind == "c" else a


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", TENSOR_VIEWS)
def test_what_a_view_answers_is_what_numpy_says(name, dtype):
    array = np.arange(24).reshape(3, 4, 2).astype(dtype)
    of_tensor, of_array = TENSOR_VIEWS[name]
    t, a = of_tensor(tg.from_numpy(array)), of_array(array)
    steps = tuple(step // a.itemsize for step in a.strides)
    assert t.shape == t.size() == a.shape and [t.size(dim) for dim in range(t.ndim)] == list(a.shape)
    assert t.ndim == t.dim() == t.ndimension() == a.ndim and t.numel() == t.nelement() == a.size
    assert t.dtype == a.dtype and t.itemsize == t.element_size() == a.itemsize and t.nbytes == a.nbytes
    assert t.stride() == steps and [t.stride(dim) for dim in range(t.ndim)] == list(steps)
    assert t.data_ptr() == a.ctypes.data and t.is_contiguous() == a.flags.c_contiguous
    assert t.storage_offset() == (a.ctypes.data - array.ctypes.data) // a.itemsize
    assert t.layout == "strided" and t.device == "cpu" and not t.is_sparse and not t.is_cuda
    assert t.tolist() == a.tolist() and np.array_equal(t.numpy(), a)
    assert t.contiguous().is_contiguous() and t.contiguous().storage_offset() == (
        t.is_contiguous() and t.storage_offset()
    )


def test_offsets_count_from_the_memory_that_others_gave():
    memory = bytearray(range(40))
    whole = np.frombuffer(memory, np.float32)
    t = tg.from_numpy(whole[3:])
    assert t.storage_offset() == 3 and t[2:].storage_offset() == 5 and t.T.storage_offset() == 3
    assert tg.from_numpy(np.asfortranarray(np.ones((2, 3)))).stride() == (1, 2)


def test_a_sparse_tensor_says_so():
    t = tg.sparse_coo_tensor(tg.tensor([[0, 1], [2, 0]]), tg.tensor([3.0, 4.0]), (2, 3))
    assert t.layout == "sparse_coo" and t.is_sparse and t.shape == (2, 3) and t.numel() == 6 and t.device == "cpu"


def test_shapes_are_sizes():
    shape = tg.ones(2, 3, 4).shape
    assert type(shape) is tg.Size and shape == (2, 3, 4) and str(shape) == "(2, 3, 4)"
    assert (shape.numel(), shape[1:].numel(), shape[-1], tg.Size([]).numel()) == (24, 12, 4, 1)
    assert tg.ones(shape).size() == shape == tg.ones(2, 3, 4).to_sparse().shape
