"""Indexing as in PyTorch: views and copies, forms of an index, writing, and the errors."""

import numpy as np
import pytest
import telegrad as tg
from helpers.views import is_view_of

A = tg.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "index", [0, slice(1, None), (..., 1), None, (slice(None), slice(0, 2)), tg.tensor(1), (tg.tensor(0), 1)]
)
def test_numbers_and_slices_give_views(index):
    assert is_view_of(A[index], A)


@pytest.mark.parametrize("index", [[0, 1], A > 3, np.array([1]), True, (0, [1, 2]), tg.tensor([0])])
def test_lists_tensors_and_masks_give_contiguous_copies(index):
    part = A[index]
    assert not is_view_of(part, A)
    assert part.is_contiguous()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_any_integer_type_is_an_index(dtype):
    np.testing.assert_array_equal(A[tg.tensor([1, -1]).to(dtype)].numpy(), A.numpy()[[1, 1]])


def test_integers_come_before_arrays():
    # NumPy puts the new dimension in front here.
    assert A[0, :, [1, 2]].shape == (3, 2)
    assert A.numpy()[0, :, [1, 2]].shape == (2, 3)
    b = A.clone()
    b[0, :, [1, 2]] = tg.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(b[0].numpy()[:, [1, 2]], np.arange(6.0).reshape(3, 2))


def test_a_list_with_slices_or_sequences_is_a_tuple():
    assert A[[0, slice(None)]].shape == (3, 4)
    assert A[[[0, 1], [1, 2]]].shape == (2, 4)


def test_bytes_are_masks_with_a_warning():
    with pytest.warns(UserWarning, match="uint8"):
        assert A[tg.tensor([0, 1], dtype=tg.uint8)].shape == (1, 3, 4)


def test_true_and_false_add_a_dimension():
    assert A[True].shape == (1, 2, 3, 4)
    assert A[False].shape == (0, 2, 3, 4)
    assert tg.tensor(1.0)[True].shape == (1,)


def test_an_element_is_a_view():
    a = tg.zeros(2, 2)
    element = a[1, 1]
    element.fill_(5)
    assert a.tolist() == [[0, 0], [0, 5]]


def test_writing_casts_and_broadcasts():
    a = tg.zeros(2, 3, dtype=tg.int64)
    a[0] = 1.9
    a[:, 1:] += tg.tensor([10, 20])
    a[a == 0] = 7
    a[1:, :1] = tg.ones(1, 1, 1, 1, dtype=tg.int64)
    assert a.tolist() == [[1, 11, 21], [1, 10, 20]]


def test_repeated_writes_through_views_keep_gradients():
    x = tg.zeros(3, requires_grad=True)
    total = tg.zeros(3, 2)
    for row, value in enumerate(x * 2):
        total[row][1:] = value
    total.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_gradients_of_values_that_were_overwritten_are_zero():
    x = tg.ones(4, requires_grad=True)
    y = x * 3
    y[1:3] = 0
    y[tg.tensor([3])] = float("nan")
    y[:3].sum().backward()
    assert x.grad.tolist() == [3, 0, 0, 0]


def test_a_saved_value_that_was_indexed_away_is_noticed():
    x = tg.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y[0] = 5.0
    with pytest.raises(tg.errors.AutogradError, match="modified in place"):
        z.sum().backward()


@pytest.mark.parametrize("name, arguments", [
    ("index_add_", (0, tg.tensor([1, 1]), tg.ones(2, 2))),
    ("index_copy_", (0, tg.tensor([1]), tg.ones(1, 2))),
    ("index_fill_", (0, tg.tensor([1]), 2.0)),
    ("scatter_", (0, tg.tensor([[1, 0]]), 2.0)),
    ("scatter_add_", (0, tg.tensor([[1, 0]]), tg.ones(1, 2))),
    ("scatter_reduce_", (0, tg.tensor([[1, 0]]), tg.ones(1, 2), "sum")),
    ("masked_fill_", (tg.tensor([[True], [False], [True]]), 3.0)),
    ("masked_scatter_", (tg.tensor([True, False]), tg.ones(3))),
    ("index_put_", ((tg.tensor([1]),), tg.ones(2))),
    ("put_", (tg.tensor([4]), tg.ones(1))),
])  # fmt: skip
def test_in_place_forms_write_where_the_others_do(name, arguments):
    base = tg.arange(6.0).reshape(2, 3).clone()
    target = base.t()
    expected = getattr(target.clone(), name[:-1])(*arguments)
    assert getattr(target, name)(*arguments) is target
    np.testing.assert_array_equal(target.numpy(), expected.numpy())
    np.testing.assert_array_equal(base.numpy(), expected.numpy().T)
    assert base._version == 1
    leaf = tg.zeros(3, 2, requires_grad=True)
    with pytest.raises(tg.errors.AutogradError, match="leaf"):
        getattr(leaf, name)(*arguments)


def test_scatter_reduce_of_integers_and_booleans():
    index = tg.tensor([0, 0, 1])
    ints = tg.zeros(2, dtype=tg.int64)
    assert ints.scatter_reduce(0, index, tg.tensor([3, 4, 5]), "mean", include_self=False).tolist() == [3, 5]
    assert ints.scatter_reduce(0, index, tg.tensor([3, 4, -5]), "amax").tolist() == [4, 0]
    assert tg.zeros(2, dtype=tg.bool_).scatter(0, tg.tensor([1]), True).tolist() == [False, True]


def test_nan_and_infinity_do_not_leak_through_masks():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    (tg.where(tg.tensor([True, False]), x, 0.0) * tg.tensor([1.0, float("nan")])).sum().backward()
    assert x.grad.tolist() == [1, 0]
    y = tg.tensor([float("inf"), 1.0], requires_grad=True)
    y.masked_fill(tg.tensor([True, False]), 0.0).sum().backward()
    assert y.grad.tolist() == [0, 1]


def test_where_takes_numbers_and_conditions_alone():
    mask = tg.tensor([True, False])
    assert tg.where(mask, 1.0, 2.0).dtype == tg.float32
    assert tg.where(mask, tg.ones(2, dtype=tg.float64), 0).dtype == tg.float64
    assert [each.tolist() for each in tg.where(mask)] == [[0]]
    assert tg.nonzero(tg.tensor(3)).shape == (1, 0)


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda: A[5], IndexError, r"index 5 is out of range for dimension 0 of size 2: it takes -2 to 1; you called"),
        (lambda: A[0, 0, -5], IndexError, "index -5 is out of range for dimension 2 of size 4"),
        (lambda: A[[5]], IndexError, "index 5 is out of range for dimension 0 of size 2"),
        (lambda: A[:, tg.tensor([0, 3])], IndexError, "index 3 is out of range for dimension 1 of size 3"),
        (lambda: A[0, 0, 0, 0], IndexError, "too many indices for a tensor of 3 dimensions"),
        (lambda: tg.tensor(1.0)[0], IndexError, r"0-d tensor cannot be indexed by a number; use item\(\)"),
        (lambda: A[::-1], ValueError, r"positive step, and you gave -1; use flip\(\)"),
        (lambda: A[[0], ::-2], ValueError, "positive step"),
        (lambda: A[1.0], IndexError, "you gave a float"),
        (lambda: A["a"], IndexError, "you gave a str"),
        (lambda: A[tg.tensor([1.0])], IndexError, "integers or booleans, not float32"),
        (lambda: A[tg.zeros(3, dtype=tg.bool_)], IndexError, r"a mask of length 3 does not fit .* shape \(2, 3, 4\)"),
        (lambda: A[:, [0, 1], [0, 1, 2]], IndexError, "shape"),
        (lambda: A.clone().__setitem__(0, tg.ones(5)), ValueError, r"shape \(5,\) cannot be broadcast .* \(3, 4\)"),
        (lambda: A.clone().__setitem__([0], tg.ones(5)), ValueError, "cannot be broadcast"),
        (lambda: A.clone().__setitem__(7, 0.0), IndexError, "index 7 is out of range"),
        (lambda: A.gather(0, tg.tensor([0])), ValueError, "needs an index of 3 dimensions"),
        (lambda: A.gather(2, tg.full((2, 3, 4), 4)), IndexError, r"got index 4, outside 0..3: dimension 2 has size 4"),
        (lambda: A.gather(2, A), TypeError, "index of integers, not float32"),
        (lambda: A[0].scatter(1, tg.tensor([[0, 9]]), 1.0), IndexError, "got index 9"),
        (
            lambda: A[0].scatter_add(1, tg.tensor([[0]]), tg.ones(1, 1, dtype=tg.float64)),
            TypeError,
            "src of the tensor's dtype",
        ),
        (
            lambda: A[0].scatter_add(1, tg.tensor([[0, 1]]), tg.ones(1, 1)),
            ValueError,
            "src of at least the index's shape",
        ),
        (
            lambda: A[0].scatter_reduce(1, tg.tensor([[0]]), tg.ones(1, 1), "max"),
            ValueError,
            "sum, prod, mean, amax, amin",
        ),
        (lambda: A.index_select(1, tg.tensor([3])), IndexError, "got index 3, outside 0..2: dimension 1 has size 3"),
        (lambda: A.index_select(1, tg.tensor([[0]])), IndexError, "vector of indices"),
        (lambda: A.index_add(0, tg.tensor([0]), tg.ones(1, 3)), ValueError, r"source of shape \(1, 3, 4\)"),
        (lambda: A.index_fill(0, tg.tensor([0]), tg.ones(2)), ValueError, "0-d tensor"),
        (lambda: A.take(tg.tensor([24])), IndexError, "24 elements takes -24 to 23"),
        (lambda: A.put(tg.tensor([0]), tg.ones(2)), ValueError, "as many values as indices"),
        (lambda: A.masked_fill(A, 0.0), TypeError, "boolean tensor as mask, and you gave float32"),
        (lambda: A.masked_fill(A > 0, tg.ones(2)), ValueError, "0-d tensor"),
        (lambda: A.masked_scatter(A > 0, tg.ones(2)), ValueError, "needs 23 elements"),
        (lambda: tg.where(A, A, A), TypeError, "boolean condition"),
        (
            lambda: A.index_put((tg.tensor([0]),), tg.ones(1, dtype=tg.float64)),
            TypeError,
            "values of the tensor's dtype",
        ),
        (lambda: tg.embedding(A[0], tg.tensor([3])), IndexError, "row 3, outside 0..2"),
    ],
)
def test_misuse_says_what_was_wrong(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_filling_places_named_twice_counts_the_value_once():
    value = tg.tensor(2.0, requires_grad=True)
    filled = tg.zeros(3).index_fill(0, tg.tensor([1, 1, 0]), value)
    assert filled.tolist() == [2, 2, 0] and tg.autograd.grad(filled.sum(), value)[0] == 2


def test_a_0d_tensor_is_a_vector_of_one():
    a, none = tg.tensor(1.0), tg.tensor([], dtype=tg.int64)
    assert a.index_fill(0, none, 5.0) == 1 and a.index_fill(-1, tg.tensor(0), 5.0) == 5
    for dim, index in ((0, tg.tensor([1])), (1, tg.tensor([0]))):
        with pytest.raises(IndexError):
            a.index_fill(dim, index, 5.0)


@pytest.mark.parametrize(
    "act",
    [
        lambda a: a.fill_(float("nan")),
        lambda a: a.__setitem__(0, float("inf")),
        lambda a: a.index_fill_(0, tg.tensor([0]), float("nan")),
        lambda a: tg.full((2,), float("nan"), dtype=a.dtype),
        lambda a: tg.full_like(a, float("-inf")),
    ],
)
def test_whole_numbers_hold_no_nan(act):
    with pytest.raises(ValueError, match="a tensor of int32 cannot hold"):
        act(tg.zeros(2, dtype=tg.int32))


def test_numbers_that_wrap_around_and_complex_ones():
    a = tg.zeros(2, dtype=tg.uint8)
    a[0] = -1
    assert a.tolist() == [255, 0] == tg.cat([tg.full((1,), -1, dtype=tg.uint8), a[1:]]).tolist()
    for act in (lambda: a.fill_(1j), lambda: tg.full((1,), 1j, dtype=tg.float32), lambda: a.__setitem__(0, 1j)):
        with pytest.raises(TypeError, match="cannot hold the complex number"):
            act()


def test_fill_converts_a_0d_tensor():
    assert tg.zeros(2, dtype=tg.int64).fill_(tg.tensor(2.7)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="0-d tensor"):
        tg.zeros(2).fill_(tg.ones(2))


def test_leading_dimensions_of_a_value_do_not_matter():
    value = tg.ones(1, 1, 2, requires_grad=True)
    for index in (0, (0, ...), tg.tensor(0), (tg.tensor([0]), slice(None))):
        a = tg.zeros(2, 2)
        a[index] = value
        assert tg.autograd.grad(a.sum(), value)[0].tolist() == [[[1, 1]]]
    mask, b = tg.tensor([[[True]], [[True]]]), tg.zeros(2, 1, 1)
    b[mask] = tg.ones(1, 1, 2)
    assert b.tolist() == [[[1]], [[1]]]


def test_one_element_of_bfloat16():
    a = tg.zeros(2, dtype=tg.bfloat16)
    a[-1] = tg.ones(1, dtype=tg.bfloat16)
    assert a.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (tg.tensor([True] * 4), "a mask of length 4 does not fit dimension 0 of size 2"),
        (([0], 0, 0, 0), "too many indices for a tensor of 3 dimensions"),
        (([0, 1], [0, 1, 2]), r"indices of shapes \(2,\) \(3,\) cannot be broadcast together"),
        ([[0, [1]]], "rectangle of integers or booleans"),
    ],
)
def test_what_numpy_would_say_is_said_in_our_words(index, message):
    for act in (lambda: A[index], lambda: A.clone().__setitem__(index, tg.ones(1))):
        with pytest.raises(IndexError, match=message):
            act()


def test_a_value_of_the_wrong_length_for_a_mask():
    with pytest.raises(ValueError, match=r"\(4,\) cannot be broadcast to .*\(2,\)"):
        tg.zeros(3).__setitem__(tg.tensor([True, True, False]), tg.ones(4))


def test_index_fill_counts_from_the_end_too():
    assert tg.zeros(3).index_fill(0, tg.tensor([-1]), 5).tolist() == [0, 0, 5]
    with pytest.raises(IndexError, match="index_fill"):
        tg.zeros(3).index_fill(0, tg.tensor([-4]), 5)


def test_adding_a_negative_multiple_of_unsigned_numbers():
    a = tg.tensor([5, 5], dtype=tg.uint8)
    assert a.index_add(0, tg.tensor([1]), a[:1], alpha=-1).tolist() == [5, 0]


@pytest.mark.parametrize("width, dtype", [(64, np.float32), (63, np.float32), (64, np.float64)])
def test_many_rows_are_added_in_the_order_of_the_index(width, dtype):
    numbers = np.random.default_rng(0)
    rows, source = numbers.integers(0, 9, 300), numbers.standard_normal((300, width)).astype(dtype)
    table = tg.zeros(9, width, dtype=dtype).requires_grad_()
    tg.embedding(table, tg.tensor(rows)).backward(tg.tensor(source))
    expected = np.zeros((9, width), dtype)
    np.add.at(expected, rows, source)
    assert np.array_equal(table.grad.numpy(), expected)
    assert np.array_equal(tg.index_add(table.detach(), 0, tg.tensor(rows), tg.tensor(source)).numpy(), expected)
