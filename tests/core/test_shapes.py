"""Shapes: what is a view and what a copy, in-place forms, joined and split tensors, and the errors."""

import numpy as np
import pytest
import telegrad as tg
from helpers.views import is_view_of
from telegrad.base.errors import AutogradError

VIEWS = {
    "reshape": lambda a: a.reshape(3, 2, 4),
    "view": lambda a: a.view(-1),
    "flatten": lambda a: a.flatten(1),
    "ravel": lambda a: a.ravel(),
    "unflatten": lambda a: a.unflatten(2, (2, -1)),
    "squeeze": lambda a: a.squeeze(),
    "unsqueeze": lambda a: a.unsqueeze(1),
    "permute": lambda a: a.permute(2, 0, 1),
    "transpose": lambda a: a.transpose(0, 2),
    "movedim": lambda a: a.movedim(0, -1),
    "T": lambda a: a[0].T,
    "mT": lambda a: a.mT,
    "expand": lambda a: a[:1].expand(5, 3, 4),
    "narrow": lambda a: a.narrow(1, 1, 2),
    "select": lambda a: a.select(1, -1),
    "split": lambda a: a.split(2, 1)[1],
    "chunk": lambda a: a.chunk(2)[0],
    "unbind": lambda a: a.unbind(1)[2],
    "tensor_split": lambda a: a.tensor_split(2, 2)[1],
    "diagonal": lambda a: a.diagonal(0, 1, 2),
    "unfold": lambda a: a.unfold(1, 2, 1),
    "as_strided": lambda a: a.as_strided((2, 2), (1, 3), 1),
    "dtype": lambda a: a.view(tg.int32),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_views_share_memory_and_version(make):
    base = tg.arange(24.0).reshape(2, 3, 4).clone()
    view = make(base)
    assert is_view_of(view, base)
    assert np.shares_memory(view.numpy(), base.numpy())
    before = base._version
    base.add_(1)
    assert view._version == before + 1


COPIES = {
    "flip": lambda a: a.flip(0),
    "roll": lambda a: a.roll(1, 0),
    "repeat": lambda a: a.repeat(1, 1, 1),
    "tile": lambda a: a.tile(1),
    "tril": lambda a: a.tril(),
    "diag": lambda a: a[0].diag(),
    "cat": lambda a: tg.cat([a]),
    "reshape": lambda a: a.mT.reshape(-1),
    "rot90": lambda a: a.rot90(4),
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_copies_are_contiguous_and_share_nothing(make):
    base = tg.arange(24.0).reshape(2, 3, 4)
    copy = make(base)
    assert not np.shares_memory(copy.numpy(), base.numpy())
    assert not is_view_of(copy, base)
    assert copy.is_contiguous()


WRITABLE = {name: VIEWS[name] for name in VIEWS if name not in ("expand", "unfold", "as_strided", "dtype", "squeeze")}


@pytest.mark.parametrize("make", WRITABLE.values(), ids=WRITABLE)
def test_gradients_flow_through_what_is_written_into_a_view(make):
    leaf = tg.arange(24.0, dtype=tg.float64).reshape(2, 3, 4).clone().requires_grad_()
    weights = tg.arange(1.0, 25.0, dtype=tg.float64).reshape(2, 3, 4)
    base = leaf * 1.0
    make(base).mul_(3.0)
    (base * weights).sum().backward()
    expected = weights.clone()
    make(expected).mul_(3.0)
    np.testing.assert_allclose(leaf.grad.numpy(), expected.numpy())


@pytest.mark.parametrize("make", WRITABLE.values(), ids=WRITABLE)
def test_a_view_sees_what_is_written_into_its_base(make):
    leaf = tg.arange(24.0, dtype=tg.float64).reshape(2, 3, 4).clone().requires_grad_()
    base = leaf * 1.0
    view = make(base)
    base.mul_(2.0)
    view.sum().backward()
    expected = tg.zeros(2, 3, 4, dtype=tg.float64)
    make(expected).fill_(2.0)
    np.testing.assert_allclose(leaf.grad.numpy(), expected.numpy())


def test_parts_of_a_split_are_one_node():
    a = tg.ones(6, requires_grad=True)
    parts = a.split(2)
    assert len({id(part.grad_fn) for part in parts}) == 1
    assert [part.output_nr for part in parts] == [0, 1, 2]
    (parts[0].sum() + 3 * parts[2].sum()).backward()
    np.testing.assert_array_equal(a.grad.numpy(), [1, 1, 0, 0, 3, 3])


def test_view_as_another_dtype():
    a = tg.ones(2, 4)
    assert a.view(tg.int32).dtype == tg.int32
    assert a.view(tg.float64).shape == (2, 2)
    assert a.view(tg.uint8).shape == (2, 16)
    assert not tg.ones(2, requires_grad=True).view(tg.int32).requires_grad
    with pytest.raises(ValueError, match="cannot be seen as float64"):
        tg.ones(3).view(tg.float64)


def test_reshape_of_an_expanded_tensor_is_a_view_where_it_can_be():
    a = tg.ones(3, 1)
    wide = a.expand(3, 4)
    assert is_view_of(wide.reshape(3, 2, 2), a)
    assert not is_view_of(wide.reshape(12), a)


IN_PLACE = {
    "t_": (lambda a: a.t_(), (3, 2)),
    "transpose_": (lambda a: a.transpose_(0, 1), (3, 2)),
    "swapaxes_": (lambda a: a.swapaxes_(0, 1), (3, 2)),
    "unsqueeze_": (lambda a: a.unsqueeze_(1), (2, 1, 3)),
    "squeeze_": (lambda a: a.unsqueeze_(0).squeeze_(), (2, 3)),
}


@pytest.mark.parametrize("change, shape", IN_PLACE.values(), ids=IN_PLACE)
def test_a_tensor_turned_in_place(change, shape):
    plain = tg.ones(2, 3)
    memory = plain.data_ptr()
    assert change(plain) is plain
    assert plain.shape == shape
    assert plain.data_ptr() == memory
    leaf = tg.arange(6.0).reshape(2, 3).clone().requires_grad_()
    with pytest.raises(tg.errors.AutogradError, match="leaf"):
        change(leaf)
    inner = leaf * 2
    part = inner[0]
    change(inner)
    inner.mul_(3)
    (inner.sum() + part.sum()).backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [[12, 12, 12], [6, 6, 6]])


def test_a_view_turned_in_place_stays_a_view():
    leaf = tg.arange(6.0).reshape(2, 3).clone().requires_grad_()
    base = leaf * 1
    view = base[:, :2]
    view.t_()
    view[0].mul_(5)
    base.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [[5, 1, 1], [5, 1, 1]])


def test_joining_promotes_and_leaves_out_empty_vectors():
    assert tg.cat([tg.ones(2), tg.ones(2, dtype=tg.int64)]).dtype == tg.float32
    assert tg.stack([tg.ones(2, dtype=tg.float64), tg.ones(2)]).dtype == tg.float64
    a, b = tg.ones(1, requires_grad=True), tg.ones(1, dtype=tg.float64, requires_grad=True)
    tg.cat([a, tg.empty(0), b]).sum().backward()
    assert (a.grad.dtype, b.grad.dtype) == (tg.float32, tg.float64)
    out = tg.empty(2, 2)
    assert tg.stack([tg.ones(2), tg.zeros(2)], out=out) is out
    np.testing.assert_array_equal(out.numpy(), [[1, 1], [0, 0]])


def test_out_gets_the_shape_of_the_result():
    empty = tg.empty(0)
    assert tg.add(tg.ones(2), 1, out=empty) is empty and empty.tolist() == [2, 2]
    values, indices = tg.empty(0), tg.empty(0, dtype=tg.int64)
    tg.sort(tg.tensor([3.0, 1.0]), out=(values, indices))
    assert values.tolist() == [1, 3] and indices.tolist() == [1, 0]
    with pytest.warns(UserWarning, match=r"had shape \(3,\) and was resized to \(2,\)"):
        tg.add(tg.ones(2), 1, out=(former := tg.zeros(3)))
    assert former.tolist() == [2, 2]


def test_meshgrid_and_broadcasting_functions():
    assert tg.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    x, y = tg.meshgrid(tg.arange(2), tg.arange(3), indexing="xy")
    assert x.shape == y.shape == (3, 2)
    assert [each.shape for each in tg.atleast_2d(tg.ones(()), tg.ones(3))] == [(1, 1), (1, 3)]
    assert tg.block_diag().shape == (1, 0)


def test_flattening_nothing_is_the_tensor_itself():
    a = tg.ones(2, 3)
    assert a.flatten(1) is a
    assert tg.ones(()).flatten().shape == (1,)


A = tg.zeros(2, 3)


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda: A.reshape(4, -1), ValueError, r"6 elements and shape \(2, 3\) cannot be reshaped to \(4, -1\)"),
        (lambda: A.reshape(-2, 3), ValueError, "negative|cannot be reshaped"),
        (lambda: A.reshape(2.0, 3), TypeError, "integers"),
        (lambda: A.T.view(6), ValueError, "no such view"),
        (lambda: A.unflatten(1, (2, 2)), ValueError, "do not multiply to 3"),
        (lambda: A.flatten(1, 0), ValueError, "start_dim <= end_dim"),
        (
            lambda: A.squeeze(2),
            IndexError,
            r"dim 2 is out of range: .* takes -2 to 1; you called squeeze\(float32 \(2, 3\), 2\)",
        ),
        (lambda: A.unsqueeze(4), IndexError, "dim 4 is out of range"),
        (lambda: A.transpose(0, 2), IndexError, "dim 2 is out of range"),
        (lambda: A.permute(0, 0), ValueError, "each of the 2 dimensions once"),
        (lambda: A.permute(0, 3), IndexError, "dim 3 is out of range"),
        (lambda: A.movedim((0, 1), 0), ValueError, "as many different"),
        (lambda: tg.zeros(1, 2, 3).t(), ValueError, r"at most 2 dimensions, and the shape is \(1, 2, 3\)"),
        (lambda: A.expand(3, 3), ValueError, r"shape \(2, 3\) cannot be expanded to \(3, 3\)"),
        (lambda: A.expand(3), ValueError, "cannot be expanded"),
        (lambda: tg.broadcast_tensors(A, tg.zeros(2)), ValueError, "cannot be broadcast together"),
        (lambda: A.repeat(2), ValueError, "a number for each of the 2 dimensions"),
        (lambda: A.repeat_interleave(tg.tensor([1, 2, 3]), 0), ValueError, "1 or 2 numbers, and you gave 3"),
        (lambda: A.repeat_interleave(tg.tensor([-1, 2]), 0), ValueError, "from 0"),
        (lambda: tg.cat([]), ValueError, "at least one"),
        (lambda: tg.cat([A, tg.zeros(2, 4)]), ValueError, r"cat\(\) along dim 0 cannot join shapes \(2, 3\), \(2, 4\)"),
        (lambda: tg.cat([tg.tensor(1), tg.tensor(2)]), ValueError, "use stack"),
        (lambda: tg.stack([A, A[0]]), ValueError, r"one shape, and you gave \(2, 3\) and, at 1, \(3,\)"),
        (lambda: tg.stack([]), ValueError, "at least one"),
        (lambda: A.split(0), ValueError, "positive size"),
        (lambda: A.split([1, 2], 0), ValueError, "do not add up to 2"),
        (lambda: A.chunk(0), ValueError, "positive number"),
        (lambda: tg.tensor(1).unbind(), IndexError, "0-d"),
        (lambda: A.hsplit(2), ValueError, "length 3 into 2 equal parts"),
        (lambda: A.narrow(1, 2, 2), ValueError, "cannot take 2 from 2 on in dimension 1 of size 3"),
        (lambda: A.select(0, 5), IndexError, "index 5 is out of range for dimension 0 of size 2: it takes -2 to 1"),
        (lambda: A.flip(0, 0), ValueError, "twice"),
        (lambda: A.roll((1, 2), 0), ValueError, "as many shifts"),
        (lambda: A.rot90(1, (0, 0)), ValueError, "two different"),
        (lambda: A[0].tril(), ValueError, "at least 2 dimensions"),
        (lambda: A.diagonal(0, 1, -1), ValueError, "two different dimensions"),
        (lambda: A.unsqueeze(0).diag(), ValueError, "vector or a matrix"),
        (lambda: A.unfold(1, 4, 1), ValueError, "0 <= size <= 3"),
        (lambda: A.as_strided((7,), (1,)), ValueError, "element 6 of a memory of 6"),
        (lambda: tg.meshgrid(A, A), ValueError, "takes vectors"),
        (lambda: tg.meshgrid(A[0], indexing="ab"), ValueError, '"ij" or "xy"'),
        (lambda: tg.reshape(np.zeros(3), 3), TypeError, r"reshape\(\) takes tensors"),
    ],
)
def test_misuse_says_what_was_wrong(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_dimensions_of_a_number_move():
    assert tg.movedim(tg.tensor(1.0), 0, -1) == 1


def test_ravel_of_spaced_elements_is_a_copy():
    assert tg.arange(6.0)[::2].ravel().is_contiguous()


def test_a_diagonal_is_converted_to_its_matrix():
    assert tg.diagonal_scatter(tg.zeros(2, 2, dtype=tg.int64), tg.tensor([1.5, 2.5])).tolist() == [[1, 0], [0, 2]]


def test_resizing_keeps_the_first_elements():
    x = tg.arange(6).reshape(2, 3)
    assert x.resize_(4) is x and x.tolist() == [0, 1, 2, 3]
    assert x.resize_(2, 4).shape == (2, 4) and x[0].tolist() == [0, 1, 2, 3]
    assert x.resize_as_(tg.zeros(1, 2)).tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="contiguous"):
        tg.ones(3, 2).t().resize_(2)
    with pytest.raises(RuntimeError, match="requires grad"):
        tg.ones(2, requires_grad=True).resize_(1)


def test_a_tensor_can_take_the_memory_of_another():
    x, source = tg.zeros(0), tg.ones(2, 2)
    assert x.set_(source.t()) is x and x.shape == (2, 2)
    source[0, 1] = 5
    assert x.tolist() == [[1, 1], [5, 1]]
    with pytest.raises(TypeError, match="dtype float32"):
        x.set_(tg.ones(1, dtype=tg.int64))


def test_uninitialized_tensors_with_chosen_strides():
    assert tg.empty_strided((2, 3), (1, 4)).stride() == (1, 4)
    assert tg.ones(1).new_empty_strided((2, 0), (3, 1), dtype=tg.int8).shape == (2, 0)
    assert tg.empty_permuted((2, 3, 4), (1, 2, 0)).stride() == (1, 8, 2)
    assert tg.nonzero_static(tg.tensor([0, 3, 0, 4]), size=3).tolist() == [[1], [3], [-1]]
    with pytest.raises(ValueError, match="order of 2 dimensions"):
        tg.empty_permuted((2, 3), (0, 0))
    with pytest.raises(ValueError, match="as many strides as lengths"):
        tg.empty_strided((2, 3), (1,))


WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0]])
# A view of a 4 by 6 tensor, and the elements of that whose gradients are 1, 2, 3 and 4 (PyTorch 2.13).
STRIDED = {
    "transposed": (lambda x: x.t(), {(0, 1): 1, (0, 3): 2, (1, 1): 3, (1, 3): 4}),
    "columns": (lambda x: x[:, 1:], {(0, 1): 1, (0, 3): 2, (1, 1): 3, (1, 3): 4}),
    "every other row": (lambda x: x[::2], {(0, 1): 1, (0, 3): 2}),
    "a row": (lambda x: x[1], {(1, 1): 3, (1, 3): 4}),
    "expanded": (lambda x: x[0].expand(3, 6), {(0, 1): 1, (0, 3): 2}),
    "transposed copy": (lambda x: (x * 1).t(), {(0, 1): 1, (0, 3): 2, (1, 1): 3, (1, 3): 4}),
    "computed in another order": (lambda x: x.t() * 1, {(0, 1): 1, (0, 3): 2, (1, 1): 3, (1, 3): 4}),
}


@pytest.mark.parametrize("name", STRIDED)
def test_as_strided_of_strided_inputs(name):
    make, expected = STRIDED[name]
    x = tg.arange(24.0).reshape(4, 6).requires_grad_()
    view = make(x).as_strided((2, 2), (6, 2), 1)
    assert view.tolist() == [[1, 3], [7, 9]]
    (grad,) = tg.autograd.grad(view, x, tg.tensor(WEIGHTS, dtype=tg.float32), create_graph=True)
    assert {tuple(place): grad[tuple(place)].item() for place in grad.nonzero().tolist()} == expected


@pytest.mark.parametrize(
    ("leaf", "size", "stride", "start", "expected"),
    [
        (lambda: tg.arange(24.0).reshape(4, 6).t(), (2, 2), (6, 2), 1, {(1, 0): 1, (3, 0): 2, (1, 1): 3, (3, 1): 4}),
        (lambda: tg.arange(24.0).reshape(4, 6)[:, ::2], (2, 2), (6, 2), 1, {}),  # elements that the leaf lacks
        (lambda: tg.arange(24.0).reshape(4, 6)[:, ::2], (2, 2), (2, 2), 6, {(1, 0): 1, (1, 1): 5, (1, 2): 4}),
        (lambda: tg.arange(6.0)[2:5], (2,), (1,), 3, {(1,): 1, (2,): 2}),
    ],
)
def test_as_strided_of_leaves_that_are_a_part_of_their_memory(leaf, size, stride, start, expected):
    x = leaf().requires_grad_()
    view = x.as_strided(size, stride, start)
    (grad,) = tg.autograd.grad(view, x, tg.tensor(WEIGHTS.reshape(-1)[: view.numel()].reshape(size), dtype=tg.float32))
    assert {tuple(place): grad[tuple(place)].item() for place in grad.nonzero().tolist()} == expected


def test_as_strided_shares_a_gradient_among_the_elements_of_an_expanded_tensor():
    x = tg.arange(6.0, dtype=tg.float64).requires_grad_().expand(3, 6).detach().requires_grad_()
    assert tg.autograd.grad(x.as_strided((2, 2), (1, 1), 0).sum(), x)[0].sum(0).tolist() == [1, 2, 1, 0, 0, 0]
    base = tg.rand(4, 3, dtype=tg.float64, requires_grad=True)
    assert tg.autograd.gradgradcheck(lambda base: base.t().as_strided((3, 2), (2, 1), 2) ** 2, (base,))


def test_writes_to_a_strided_view_are_recorded_if_its_base_is_whole():
    x = tg.arange(6.0).requires_grad_()
    whole = x * 1
    whole[1:].as_strided((2,), (2,), 1).mul_(10)
    assert whole.tolist() == [0, 10, 2, 30, 4, 5]
    assert tg.autograd.grad(whole.sum(), x)[0].tolist() == [1, 10, 1, 10, 1, 1]


def test_writes_to_a_strided_view_of_a_part_of_memory_are_not_recorded():
    part = tg.from_numpy(np.arange(6.0)[1:]).requires_grad_()
    view = part.as_strided((2,), (2,), 1)
    with pytest.raises(AutogradError, match="clone"):
        view.mul_(10)
    with tg.no_grad():
        view.mul_(10)
    assert part.tolist() == [10, 2, 30, 4, 5]
