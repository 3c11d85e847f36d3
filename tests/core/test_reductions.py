"""Reductions beside their recorded values: named results, overloads, out=, integers, empty tensors, errors."""

import math

import numpy as np
import pytest
import telegrad as tg

A = [[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]


def test_named_results():
    a = tg.tensor(A)
    for function in (tg.max, tg.min, tg.median, tg.nanmedian, tg.mode, tg.cummax, tg.cummin):
        result = function(a, 1)
        assert result.values is result[0] and result.indices.dtype == tg.int64
        method = getattr(a, function.__name__)(dim=1)
        assert tg.equal(method.values, result.values)
    assert tg.sort(a).values.tolist() == [[1, 2, 3], [4, 5, 6]] and a.sort(0, True).indices.tolist() == [
        [1] * 3,
        [0] * 3,
    ]
    assert a.topk(2).values.tolist() == [[3, 2], [6, 5]] and a.kthvalue(2).indices.tolist() == [2, 2]
    pair = tg.aminmax(a, dim=0)
    assert pair.min.tolist() == [3, 1, 2] and pair.max.tolist() == [4, 6, 5]


def test_overloads():
    a = tg.tensor(A)
    assert a.max(tg.full((3,), 3.0)).tolist() == tg.maximum(a, tg.tensor(3.0)).tolist()
    assert a.var(0, False).tolist() == a.var(dim=0, correction=0).tolist() == a.var(0, unbiased=False).tolist()
    assert a.std(False).item() == pytest.approx(np.std(A)) and a.std().item() == pytest.approx(np.std(A, ddof=1))
    assert tg.var(a, 1, True, True).shape == (2, 1) and tg.var_mean(a, 1)[1].tolist() == [2, 5]
    assert tg.sum(a, (0, 1)).item() == tg.sum(a, ()).item() == 21 and a.sum(dim=-1, keepdim=True).shape == (2, 1)
    assert tg.norm(a, dim=1).shape == (2,) and tg.norm(a, 1).item() == 21 and tg.dist(a, a).item() == 0
    assert tg.sum(input=a, dim=0, dtype=tg.float64).dtype == tg.float64


def test_integers_and_booleans():
    a = tg.tensor([[1, 2], [3, 0]], dtype=tg.uint8)
    assert a.sum().dtype == a.prod().dtype == a.cumsum(0).dtype == tg.int64 and a.amax().dtype == tg.uint8
    assert a.any().dtype == a.all(1).dtype == tg.uint8 and a.all(1).tolist() == [1, 0]
    b = tg.tensor([True, False, True])
    assert (
        b.sum().item() == 2
        and b.all().dtype == tg.bool
        and b.max().item() is True
        and b.cumsum(0).tolist() == [1, 1, 2]
    )
    assert tg.count_nonzero(a, 0).tolist() == [2, 1] and tg.diff(b).tolist() == [True, True]
    for function in (tg.mean, tg.var, tg.std, tg.norm, tg.quantile):
        with pytest.raises(TypeError, match=rf"{function.__name__}.*floating-point|computes in floating point"):
            function(a, *([0.5] if function is tg.quantile else []))
    assert a.mean(dtype=tg.float32).item() == 1.5


def test_small_types_are_added_up_precisely():
    a = tg.full((5000,), 0.1, dtype=tg.float16)
    assert abs(a.sum().item() - 500) < 1 and abs(a.mean().item() - 0.1) < 1e-3
    assert abs(tg.full((3000,), 0.5, dtype=tg.bfloat16).sum().item() - 1500) < 8


def test_nothing_to_reduce():
    empty = tg.empty(0, 3)
    assert empty.sum().item() == 0 and empty.prod().item() == 1 and math.isnan(empty.mean().item())
    assert empty.sum(0).tolist() == [0, 0, 0] and empty.all().item() is True and empty.any().item() is False
    assert empty.amax(1).shape == empty.argmax(1).shape == (0,) and empty.logsumexp(0).tolist() == [-math.inf] * 3
    assert (
        empty.sort(0).values.shape == (0, 3) and empty.cumsum(0).shape == (0, 3) and math.isnan(tg.median(tg.empty(0)))
    )
    assert tg.unique(tg.empty(0)).shape == (0,) and tg.norm(tg.empty(0)).item() == 0


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda a, e: e.max(), ValueError, r"max\(\) needs elements"),
        (lambda a, e: e.amin(0), ValueError, r"amin\(\) needs elements.*\(0, 3\)"),
        (lambda a, e: e.argmax(), ValueError, r"argmax\(\) needs elements"),
        (lambda a, e: e.median(0), ValueError, r"median\(\) needs elements"),
        (lambda a, e: e.mode(0), ValueError, r"mode\(\) needs elements"),
        (lambda a, e: tg.quantile(e, 0.5), ValueError, r"quantile\(\) needs elements"),
        (lambda a, e: tg.norm(e, -math.inf), ValueError, "elements"),
        (lambda a, e: a.sum(2), IndexError, r"sum\(\).*dim 2"),
        (lambda a, e: a.sum((0, 0)), ValueError, "twice"),
        (lambda a, e: a.sort(5), IndexError, r"sort\(\).*-2 to 1"),
        (lambda a, e: a.topk(4), ValueError, r"topk\(\) cannot choose 4 of the 3"),
        (lambda a, e: a.kthvalue(0), ValueError, r"kthvalue\(\) takes k from 1 to 3"),
        (lambda a, e: tg.quantile(a, 1.5), ValueError, "between 0 and 1"),
        (lambda a, e: tg.quantile(a, 0.5, interpolation="odd"), ValueError, "linear"),
        (lambda a, e: tg.norm(a, "odd"), ValueError, "norm"),
        (lambda a, e: tg.softmax(a), TypeError, "dim"),
        (lambda a, e: tg.bincount(a), TypeError, "integers"),
        (lambda a, e: tg.bincount(tg.tensor([-1])), ValueError, "from 0"),
        (lambda a, e: tg.histc(a, 0), ValueError, "bins"),
        (lambda a, e: tg.searchsorted(a, tg.ones(3, 2)), ValueError, r"\(3, 2\)"),
        (lambda a, e: tg.searchsorted(a[0], a, side="left", right=True), ValueError, "side"),
        (lambda a, e: tg.diff(tg.tensor(1.0)), ValueError, "dimension"),
        (lambda a, e: tg.cov(tg.ones(2, 2, 2)), ValueError, "two dimensions"),
        (lambda a, e: tg.max(a * 1j), TypeError, "order"),
    ],
)
def test_errors_name_the_operation(wrong, error, match):
    with pytest.raises(error, match=match):
        wrong(tg.tensor(A), tg.empty(0, 3))


def test_out():
    a = tg.tensor(A)
    for name, arguments in (
        ("sum", (0,)),
        ("mean", (0,)),
        ("amax", (0,)),
        ("var", (0,)),
        ("all", (0,)),
        ("logsumexp", (0,)),
    ):
        out = tg.zeros(3)
        assert getattr(tg, name)(a, *arguments, out=out) is out
        assert tg.allclose(out, getattr(tg, name)(a, *arguments).to(tg.float32))


def test_counting():
    a = tg.tensor([3, 1, 2, 3, 3, 1])
    values, inverse, counts = tg.unique(a, return_inverse=True, return_counts=True)
    assert tg.equal(values[inverse], a) and counts.tolist() == [2, 1, 3] and a.unique().tolist() == [1, 2, 3]
    assert tg.unique(tg.tensor([math.nan, 1.0, math.nan])).shape == (3,)
    assert a.bincount().tolist() == [0, 2, 1, 3] and tg.isin(a, 3).tolist() == [True, False, False, True, True, False]
    assert tg.histc(tg.tensor([1.0, 2.0, 1.0]), 2).tolist() == [2, 1]
    assert tg.bucketize(tg.tensor([0.5, 3.0]), tg.tensor([1, 3, 5])).tolist() == [0, 1]
    order = tg.argsort(a)
    assert (
        tg.searchsorted(a, 2, sorter=order).item() == 2
        and tg.searchsorted(a[order], 3, out_int32=True).dtype == tg.int32
    )


def test_running_sums_in_place():
    a = tg.tensor(A)
    assert a.cumsum_(1) is a and a.tolist() == [[3, 4, 6], [4, 10, 15]]
    assert tg.tensor(2.0).cumsum(0).item() == 2 and tg.cummax(tg.tensor(2.0), 0).indices.item() == 0


def test_a_long_product_with_zeros_has_gradients():
    x = tg.ones(400)
    x[7] = 0
    x.requires_grad_()
    (gradient,) = tg.autograd.grad(x.cumprod(0).sum(), x)
    assert gradient[7].item() == 393 and gradient[0].item() == 7 and gradient[8:].sum().item() == 0


def test_norm_of_singular_values():
    a = tg.tensor(A)
    assert tg.norm(a, "nuc").item() == pytest.approx(np.linalg.norm(A, "nuc"), rel=1e-5)
    assert tg.corrcoef(a).shape == (2, 2) and tg.cov(tg.tensor([1.0, 3.0])).item() == 2


@pytest.mark.parametrize("dtype", [tg.bool_, tg.int8, tg.int32, tg.float64])
@pytest.mark.parametrize("function", [tg.sum, tg.prod, tg.nansum])
def test_dtype_says_that_of_the_result(function, dtype):
    assert function(tg.tensor([1, 2]), dtype=dtype).dtype == dtype


def test_any_and_all_over_no_dimension_reduce_nothing():
    a = tg.tensor([[0.0, 2.0]])
    assert tg.any(a, dim=()).tolist() == [[False, True]] and tg.all(a, []).tolist() == [[False, True]]


def test_a_dimension_that_a_number_has_not():
    for function in (tg.prod, tg.sum, tg.amax):
        with pytest.raises(IndexError, match="dim 1 is out of range"):
            function(tg.tensor(1.0), 1)


def test_no_difference_is_a_copy():
    a = tg.ones(3)
    tg.diff(a, 0).zero_()
    assert a.tolist() == [1, 1, 1]


def test_variance_of_one_complex_number_has_a_complex_gradient():
    a = tg.tensor(1 + 1j, requires_grad=True)
    assert tg.autograd.grad(tg.var(a), a)[0].dtype == tg.complex64


def test_nan_of_bfloat16_sorts_last():
    a = tg.tensor([float("nan"), 2.0, 1.0], dtype=tg.bfloat16)
    assert tg.argsort(a).tolist() == [2, 1, 0] == tg.sort(a.float()).indices.tolist()
    assert math.isnan(tg.median(a).item()) and tg.kthvalue(a, 1).values == 1


def test_quantiles_of_infinities():
    assert tg.quantile(tg.tensor([-math.inf, -math.inf, 1.0]), 0.25) == -math.inf


@pytest.mark.parametrize(
    "shape, dim", [((64, 520), 1), ((520, 64), 0), ((40_001,), 0), ((16, 65, 33), 1), ((3, 5, 4000), 2)]
)
def test_cumulative_sums_of_blocks_are_as_exact_as_one_after_the_other(shape, dim):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected = np.cumsum(x.astype(np.float64), dim).astype(np.float32)
    tensor = tg.tensor(x, requires_grad=True)
    result = tensor.cumsum(dim)
    assert np.array_equal(result.detach().numpy(), expected)
    result.backward(tg.tensor(x))
    reverse = np.flip(np.cumsum(np.flip(x, dim).astype(np.float64), dim), dim).astype(np.float32)
    assert np.array_equal(tensor.grad.numpy(), reverse)


@pytest.mark.parametrize("shape", [(40_000,), (5, 8000)])
def test_infinities_stay_in_their_place_in_cumulative_sums(shape):
    x = np.ones(shape, np.float32)
    x[..., 100], x[..., 200] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        assert np.array_equal(tg.tensor(x).cumsum(-1).numpy(), np.cumsum(x, -1), equal_nan=True)


@pytest.mark.parametrize("shape", [(40_000,), (2000, 20)])
def test_cumulative_products_stay_zero(shape):
    x = np.full(shape, 2, np.float32)
    x[0] = 0
    assert not tg.tensor(x).cumprod(0).any()


@pytest.mark.parametrize("dim", [0, 1])
def test_rows_divided_by_their_sums_leave_numpys_buffers_as_they_were(dim):
    x = np.random.default_rng(0).standard_normal((150, 300)).astype(np.float32)
    shares = np.exp(x - x.max(dim, keepdims=True))
    shares /= np.add.reduce(shares.astype(np.float64), dim, keepdims=True).astype(np.float32)
    with np.errstate(all="raise"):
        size, errors = np.getbufsize(), np.geterr()
        result = tg.softmax(tg.tensor(x), dim)
        assert np.getbufsize() == size and np.geterr() == errors
    assert np.allclose(result.numpy(), shares, rtol=1e-6, atol=0)


def last_extreme(row, largest):
    """Return the index of the last extreme of a row, of which nan is the furthest."""
    if np.isnan(row).any():
        return int(np.flatnonzero(np.isnan(row))[-1])
    return int(np.flatnonzero(row == (row.max() if largest else row.min()))[-1])


@pytest.mark.parametrize("shape", [(5,), (4, 7), (3, 4, 5)])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_a_running_extreme_and_its_gradient_come_from_its_last_place(name, shape):
    rng = np.random.default_rng(0)
    numbers, gradient = rng.integers(-3, 4, shape).astype(np.float32), rng.integers(-9, 9, shape).astype(np.float32)
    numbers.reshape(-1)[3] = np.nan
    for dim in range(len(shape)):
        x = tg.tensor(numbers, requires_grad=True)
        values, indices = getattr(tg, name)(x, dim)
        values.backward(tg.tensor(gradient))
        rows, places = np.moveaxis(numbers, dim, -1), np.moveaxis(indices.numpy(), dim, -1)
        wanted = np.zeros(rows.shape)
        for at in np.ndindex(rows.shape):
            place = last_extreme(rows[at[:-1]][: at[-1] + 1], name == "cummax")
            assert places[at] == place
            wanted[at[:-1]][place] += np.moveaxis(gradient, dim, -1)[at]
        assert np.array_equal(np.moveaxis(x.grad.numpy(), dim, -1), wanted)


@pytest.mark.parametrize("length", [1, 15, 16, 48, 50, 256])
def test_products_of_rows_of_any_length(length):
    x = np.random.default_rng(length).uniform(0.5, 1.5, (3, length)).astype(np.float32)
    wanted = x.astype(np.float64).prod(1)
    assert np.allclose(tg.tensor(x).prod(1).numpy(), wanted, rtol=1e-5)
    assert np.allclose(tg.tensor(x).prod(1, keepdim=True).numpy()[:, 0], wanted, rtol=1e-5)
    assert tg.tensor(x.T.copy()).T.prod(1).shape == (3,)


@pytest.mark.parametrize("shape, dim", [((130, 257), 1), ((257, 130), 0), ((5, 300, 31), 1), ((3, 20000), 0)])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_cumulative_results_of_large_singles(name, shape, dim):
    x = tg.rand(*shape) + 0.5
    x[1, 2], x[0, 3], x[-1, -1] = float("inf"), float("nan"), 0.0
    expected = getattr(np, name)(x.double().numpy(), dim).astype(np.float32)
    np.testing.assert_allclose(getattr(x, name)(dim).numpy(), expected, rtol=3e-7)
