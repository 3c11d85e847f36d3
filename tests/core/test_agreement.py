"""Results that once differed from PyTorch's; the values here are those of PyTorch 2.13."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import AutogradError
from telegrad.nn import functional as F


def test_the_default_dtype_is_that_of_the_process():
    tg.set_default_dtype(tg.float64)
    try:
        seen = []
        thread = threading.Thread(target=lambda: seen.append(tg.zeros(1).dtype))
        thread.start()
        thread.join(30)
        assert seen == [tg.float64]
    finally:
        tg.set_default_dtype(tg.float32)


# -- sums and means


def test_a_mean_of_halves_does_not_overflow():
    assert tg.full((70_000,), 1.0, dtype=tg.float16).mean().item() == 1
    assert tg.full((70_000, 2), 1.0, dtype=tg.float16).mean(0).tolist() == [1, 1]


def test_a_sum_over_rows_is_pairwise():
    x = np.random.default_rng(0).random((100_003, 3), np.float32)
    for found in (tg.tensor(x).sum(0).numpy(), tg.tensor(x.T.copy().T).sum(0).numpy()):
        np.testing.assert_allclose(found, x.astype(np.float64).sum(0), rtol=1e-6)
    kept = tg.tensor(x.reshape(1, 100_003, 3)).sum((0, 1), keepdim=True)
    assert kept.shape == (1, 1, 3)
    np.testing.assert_allclose(kept.numpy().reshape(3), x.astype(np.float64).sum(0), rtol=1e-6)


def test_logsumexp_of_complex_numbers_stays_on_its_branch():
    assert np.isclose(tg.logsumexp(tg.tensor([1 + 3j]), 0).item(), 1 + 3j)
    assert np.isclose(tg.logsumexp(tg.tensor([1 + 3j, 2 - 5j, 100 + 2j]), 0).item(), 100 + 2j)


def test_sums_of_weighted_products_with_complex_factors():
    a, b, c = (tg.tensor(np.ones((2, 2)) * number, requires_grad=True) for number in (1 + 2j, 3 - 1j, 2j))
    result = tg.addmm(a, b, c, beta=2 + 1j, alpha=1 - 1j)
    grads = tg.autograd.grad(result, (a, b, c), tg.ones(2, 2, dtype=tg.complex128))
    plain = tg.autograd.grad((2 + 1j) * a + (1 - 1j) * (b @ c), (a, b, c), tg.ones(2, 2, dtype=tg.complex128))
    for one, other in zip(grads, plain):
        np.testing.assert_allclose(one.numpy(), other.numpy())


# -- dtypes


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("float32", "float16", "float32"), ("int64", "float16", "float16"), ("bool", "uint8", "uint8")],
)
def test_a_scalar_factor_of_kron_counts_as_much(first, second, expected):
    for shape in ((), (2,)):
        assert str(tg.kron(tg.ones(shape, dtype=first), tg.ones(2, dtype=second)).dtype) == expected


def test_bfloat16_stays():
    pytest.importorskip("ml_dtypes")
    x = tg.ones(2, 4, 3, dtype=tg.bfloat16)
    low = tg.zeros(3, dtype=tg.bfloat16)
    assert x.clamp(low, low + 2).dtype == tg.bfloat16
    assert F.layer_norm(x, (3,)).dtype == tg.bfloat16
    assert F.group_norm(x, 2).dtype == tg.bfloat16
    assert F.instance_norm(x).dtype == tg.bfloat16
    assert F.rms_norm(x, (3,)).dtype == tg.bfloat16


@pytest.mark.parametrize(
    ("given", "expected"), [((-1.5, 3.7, 1), [-1, 0, 1, 2]), ((5.5, 1, -2), [5, 3]), ((0, 5, 1.5), [0, 1, 2, 3, 4])]
)
def test_arange_of_integers_cuts_its_arguments_off(given, expected):
    assert tg.arange(*given, dtype=tg.int64).tolist() == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((0, 2.5), [0, 1, 2]),
        ((-1.5, 3), [-1, 0, 1, 2, 3]),
        ((0, 5, 1.5), [0, 1, 2, 3]),
        ((5, 0, -1.5), [5, 4, 3, 2]),
        ((0, 1, 0.5), [0, 0]),
    ],
)
def test_arange_of_other_integers_counts_before_it_cuts_off(given, expected):
    result = tg.arange(*given, dtype=tg.int32)
    assert result.dtype == tg.int32
    assert result.tolist() == expected


def test_integers_between_fractions():
    assert tg.linspace(-3.7, 4.2, 5, dtype=tg.int64).tolist() == [-3, -1, 0, 2, 4]
    assert tg.logspace(0.5, 9.9, 4, base=2, dtype=tg.int64).tolist() == [1, 8, 64, 512]


def test_gradient_of_integers_keeps_its_spacing():
    (slopes,) = tg.gradient(tg.tensor([1, 4, 9, 16]), spacing=1.5)
    np.testing.assert_allclose(slopes.numpy(), [2, 8 / 3, 4, 14 / 3], rtol=1e-6)


# -- copies, views, assignments


def test_to_copies_where_its_last_argument_says_so():
    x = tg.zeros(3)
    assert x.to("cpu", tg.float32, False, True) is not x
    assert x.to(tg.float32, False, False) is x


@pytest.mark.parametrize("function", [F.pixel_shuffle, F.pixel_unshuffle])
def test_shuffling_single_pixels_copies(function):
    x = tg.arange(4.0).reshape(1, 1, 2, 2)
    result = function(x, 1)
    result.zero_()
    assert x.sum().item() == 6


def test_floats_in_integer_tensors_are_cut_off():
    x = tg.zeros(3, dtype=tg.int64)
    x[0] = 2.7
    x[1:] = tg.tensor([1.9, -1.9])
    assert x.tolist() == [2, 1, -1]
    assert tg.zeros(2).copy_(5).tolist() == [5, 5]


def test_a_view_made_unrecorded_is_not_written_to_while_recording():
    x = tg.ones(3, requires_grad=True)
    y = x * 2
    with tg.no_grad():
        view = y[0:2]
        view.mul_(3)
    with pytest.raises(AutogradError, match="no_grad"):
        view.mul_(3)
    with pytest.raises(AutogradError, match="no_grad"):
        view[0:1].mul_(tg.ones(1, requires_grad=True))


WRITES = {
    "mul_": lambda view: view.mul_(3),
    "setitem": lambda view: view.__setitem__(0, 7),
    "uniform_": lambda view: view.uniform_(),
    "index_fill_": lambda view: view.index_fill_(0, tg.tensor([0]), 3.0),
    "out": lambda view: tg.add(tg.ones(2), 1, out=view),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_refused_write_leaves_the_values_alone(name):
    y = tg.ones(3, requires_grad=True) * 2
    with tg.no_grad():
        view = y[0:2]
    with pytest.raises(AutogradError, match="no_grad"):
        WRITES[name](view)
    assert y.tolist() == [2, 2, 2] and y._version == 0


# -- single functions


POSITIVE = [[4, 1 + 1j, 0.5j], [1 - 1j, 5, 1 + 0.25j], [-0.5j, 1 - 0.25j, 6]]
CHOLESKY_GRAD = [
    [0.4220465216 + 0.6352536523j, -0.1671393247 - 0.3515839078j, 0.7131400522 - 0.3389257079j],
    [-0.0253030893 + 0.4500320097j, 0.3877773702 - 0.1824334928j, 0.4598343519 - 0.2082630404j],
    [0.5685129408 + 0.4257019747j, 0.4019835073 - 0.1966928714j, 0.2082630404 + 1.0413152018j],
]


def test_the_gradient_of_a_complex_cholesky_factor_keeps_its_imaginary_diagonal():
    x = tg.tensor(POSITIVE, dtype=tg.complex128, requires_grad=True)
    weights = tg.tensor([[1 + 2j, 2, 3], [1j, 2 - 1j, 1], [3 + 1j, 2, 1 + 5j]], dtype=tg.complex128)
    (grad,) = tg.autograd.grad(tg.linalg.cholesky(x), x, weights)
    assert np.allclose(grad.numpy(), CHOLESKY_GRAD)


@pytest.mark.parametrize(
    "dtype, sums, grads",
    [
        ("float16", [0.0999755859375, 285.25, 570, 855, 1141], [3000, 2400, 1800, 1200, 600]),
        ("bfloat16", [0.10009765625, 286, 572, 856, 1144], [3008, 2400, 1800, 1200, 600]),
    ],
)
def test_long_sums_of_halves_go_on_growing(dtype, sums, grads):
    x = (tg.arange(3000) % 7 / 8 + 0.1).to(dtype).requires_grad_()
    result = x.cumsum(0)
    result.sum().backward()
    assert result[::600].tolist() == sums and x.grad[::600].tolist() == grads
    assert np.allclose((x[:100] / 2 + 0.8).cumprod(0)[-10].item(), 16.75 if dtype == "bfloat16" else 14.1015625)


def test_the_sigmoid_of_large_negative_numbers_is_not_0():
    x = tg.tensor([-60.0, -20.0, -10.0, 2.0], requires_grad=True)
    expected = [8.75651089e-27, 2.06115369e-09, 4.53978719e-05, 0.880797029]
    assert np.allclose(tg.sigmoid(x).tolist(), expected, rtol=1e-6, atol=0)
    assert np.allclose(F.silu(x).tolist(), [-5.25390632e-25, -4.12230747e-08, -4.53978719e-04, 1.76159406], rtol=1e-6)
    loss = tg.log(tg.sigmoid(x))
    (grad,) = tg.autograd.grad(loss.sum(), x)
    assert np.allclose(loss.tolist(), [-60, -20, -10.0000458, -0.126928061])
    assert np.allclose(grad.tolist(), [1, 1, 0.999954641, 0.119202964])
    assert tg.sigmoid(tg.tensor([-12.0, -8.0], dtype="float16")).tolist() == [
        6.139278411865234e-06,
        0.00033545494079589844,
    ]


def test_running_sums_of_many_numbers_are_precise():
    x = tg.full((1_000_000,), 0.1, requires_grad=True)
    sums = x.cumsum(0)
    assert sums.dtype == tg.float32 and sums[-1].item() == 100000
    (grad,) = tg.autograd.grad(sums, x, tg.full((1_000_000,), 0.1))
    assert grad[0].item() == 100000


def test_small_probabilities_have_quantiles():
    x = tg.tensor([0.0, 1e-10, 1e-4, 0.5, 1.0])
    assert np.allclose(tg.special.ndtri(x).tolist(), [-np.inf, -6.36134100, -3.71901631, 0, np.inf], rtol=1e-6)
    assert tg.special.ndtri(tg.tensor([0, 1, 2], dtype=tg.uint8)).tolist()[:2] == [-np.inf, np.inf]


def test_integrals_of_small_integers_wrap_around():
    values, places = tg.tensor([200, 100, 250, 3], dtype=tg.uint8), tg.tensor([5, 3, 1, 2], dtype=tg.uint8)
    assert tg.trapezoid(values).item() == 195.5
    assert tg.cumulative_trapezoid(values).tolist() == [22, 69, 195.5]
    assert tg.trapz(tg.tensor([3, 5, 1, 7], dtype=tg.uint8), places).item() == 246
    assert tg.trapz(values[:0]).dtype == tg.uint8
    with pytest.raises(TypeError, match="booleans"):
        tg.trapezoid(values > 0)


@pytest.mark.parametrize(
    ("dtype", "expected"), [(tg.int64, -(2**63)), (tg.int32, -(2**31)), (tg.uint8, 0), (tg.bool, True)]
)
def test_the_median_of_no_integers_is_nan_converted(dtype, expected):
    assert tg.zeros(0, dtype=dtype).median().item() == expected
    assert tg.zeros(0, dtype=dtype).nanmedian().item() == expected


def test_masked_logsumexp_of_integers_is_one():
    x, mask = tg.tensor([[1, 2, 3], [0, 1, 1]]), tg.tensor([[True, False, True], [False, False, False]])
    assert tg.masked.logsumexp(x, 1, mask=mask).tolist() == [3, -(2**63)]
    assert tg.masked.logsumexp(x.to(tg.uint8), 1, mask=mask).tolist() == [3, 1]
    with pytest.raises(TypeError, match="booleans"):
        tg.masked.logsumexp(x > 0, 1)


@pytest.mark.parametrize("dtype", [tg.int64, tg.int32], ids=str)
@pytest.mark.parametrize(
    ("equation", "named", "shapes"),
    [
        ("...i,...j->...", "zi,yj->z", ((2, 3), (1, 4))),
        ("...ij,...jk->ik", "yij,zjk->ik", ((1, 2, 3), (5, 3, 4))),
        ("...ik,...j->ij", "yik,j->ij", ((1, 2, 3), (3,))),
        ("i...,j...,...->i", "iz,jy,z->i", ((2, 3), (4, 1), (3,))),
    ],
)
def test_einsum_of_integers_sums_an_operand_first(equation, named, shapes, dtype):
    given = [np.arange(np.prod(shape)).reshape(shape) for shape in shapes]
    found = tg.einsum(equation, *(tg.tensor(each).to(dtype) for each in given))
    assert found.tolist() == np.einsum(named, *given).tolist()


def test_xlog1py_has_a_gradient_at_0():
    x = tg.tensor([0.0, 0.0, 0.0], requires_grad=True)
    (grad,) = tg.autograd.grad(tg.special.xlog1py(x, tg.tensor([-0.5, -1.0, 2.0])).sum(), x)
    assert np.allclose(grad.tolist(), [-0.693147182, 0, 1.09861231])


def test_gradients_at_the_ends_of_pieces():
    x = tg.tensor([-3.0, 3.0], requires_grad=True)
    assert tg.autograd.grad(F.hardswish(x).sum(), x)[0].tolist() == [0, 1]
    grid = tg.tensor([[[[-1.0, -1.0], [0.5, 0.0], [1.0, 1.0]]]], requires_grad=True)
    image = tg.arange(16.0).reshape(1, 1, 4, 4) ** 2
    sampled = F.grid_sample(image, grid, padding_mode="border", align_corners=True)
    (grad,) = tg.autograd.grad(sampled.sum(), grid)
    assert grad.tolist() == [[[[0, 0], [25.5, 99], [0, 0]]]]


def test_elu_has_a_slope_where_its_value_is_nearly_minus_1():
    x = tg.tensor([-60.0, -20.0, -10.0, 2.0], requires_grad=True)
    (grad,) = tg.autograd.grad(F.elu(x).sum(), x)
    assert np.allclose(grad.tolist(), [8.75651089e-27, 2.06115369e-09, 4.53999310e-05, 1], rtol=1e-6, atol=0)


ROWS = [[1.0, 0, 3], [4, 4, 1], [2, 2, 2]]


@pytest.mark.parametrize(
    "p, expected",
    [
        (0, [[0, 0, 0], [0, 0, 0]]),
        (0.5, [[-11.26598632, -5.449489743, 12.44948974], [28.12742916, 26.53516943, -37.52639648]]),
        (float("inf"), [[-5, 1, 3], [6, 10, 0]]),
    ],
)
def test_gradients_of_distances(p, expected):
    x = tg.tensor([[1, 2, 3], [4, 4, 1]], dtype=tg.float64, requires_grad=True)
    distances = tg.cdist(x, tg.tensor(ROWS, dtype=tg.float64), p)
    distances.backward(tg.arange(1, 7, dtype=tg.float64).reshape(2, 3))
    assert np.allclose(x.grad.numpy(), expected)


@pytest.mark.parametrize("p, expected", [(0, [0, 0, 0]), (1, [-2, np.nan, 2]), (0.5, [np.nan] * 3)])
def test_distances_from_nan_are_nan(p, expected):
    x = tg.tensor([[1, np.nan, 3]], dtype=tg.float64, requires_grad=True)
    distances = tg.cdist(x, tg.tensor(ROWS, dtype=tg.float64), p)
    distances.sum().backward()
    assert distances.isnan().all() and np.allclose(x.grad.numpy(), [expected], equal_nan=True)


def test_each_largest_component_gets_the_gradient_of_a_distance_between_rows():
    x = tg.tensor([[1, 2, 3], [4, 2, 1], [4, 4, 3]], dtype=tg.float64, requires_grad=True)
    F.pdist(x, float("inf")).backward(tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64))
    assert x.grad.tolist() == [[-3, 0, 0], [1, -3, -3], [2, 3, 3]]


@pytest.mark.parametrize(
    "values, expected",
    [
        ([1, np.nan, 0, 3, 4], [np.nan, np.nan, np.nan, 0, 0]),
        ([1, np.inf, 2, 0, 1], [np.inf, np.nan, np.inf, np.inf, 0]),
        ([2, 0, 3, 0, 5], [1, 22, 0, 0, 0]),
    ],
)
def test_products_behind_a_zero_have_no_gradient(values, expected):
    x = tg.tensor(values, dtype=tg.float64, requires_grad=True)
    x.cumprod(0).backward(tg.arange(1, 6, dtype=tg.float64))
    assert np.allclose(x.grad.numpy(), expected, equal_nan=True)


def test_a_real_signal_is_that_of_the_first_half_of_its_spectrum():
    spectrum = tg.tensor([[1 + 2j, 3 - 1j], [2 - 1j, 1 + 1j], [0.5j, 1 - 2j], [1 + 0j, 2 - 1j]])
    signal = tg.istft(spectrum, 4, 2, onesided=False, window=tg.ones(4), center=False)
    assert np.allclose(signal.tolist(), [1.25, 0.75, 0.375, -0.125, 0.5, 1])


def test_sum_to_one_number_is_a_sum():
    assert tg.tensor(3, dtype=tg.uint8).sum_to_size(()).dtype == tg.tensor(True).sum_to_size(()).dtype == tg.int64


def test_nextafter_has_a_gradient():
    x, y = (tg.tensor(values, dtype=tg.float64, requires_grad=True) for values in ([1.0, 2.0, 3.0], [2.0, 2.0, 1.0]))
    grads = tg.autograd.grad(tg.nextafter(x, y).sum(), (x, y))
    assert [grad.tolist() for grad in grads] == [[1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 4, 3)])
def test_svd_of_whole_matrices_passes_gradients_to_their_first_vectors(shape):
    x = tg.tensor(np.random.default_rng(1).standard_normal(shape), requires_grad=True)
    k = min(shape[-2:])
    grads = []
    for full in (True, False):
        u, s, vh = tg.linalg.svd(x, full_matrices=full)
        product = (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :]
        grads.append(tg.autograd.grad(product.sin().sum(), x)[0].numpy())
    np.testing.assert_allclose(*grads, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(grads[0], np.cos(x.detach().numpy()), rtol=1e-9, atol=1e-9)


def test_circular_padding_repeats_what_a_negative_one_leaves():
    padded = F.pad(tg.arange(16.0).reshape(1, 1, 4, 4), (-1, 2, 0, -1), mode="circular")
    assert padded[0, 0].tolist() == [[1, 2, 3, 1, 2], [5, 6, 7, 5, 6], [9, 10, 11, 9, 10]]


def test_no_differences_look_at_nothing_else():
    assert tg.diff(tg.arange(3), n=0, prepend=tg.tensor([5])).tolist() == [0, 1, 2]


def test_the_covariance_of_one_row_is_a_number():
    row = tg.tensor([[1.0, 2.0, 3.0]])
    assert tg.cov(row).shape == tg.corrcoef(row).shape == () and tg.cov(row).item() == 1


def test_xlog1py_is_silent_where_its_input_is_zero():
    assert tg.special.xlog1py(tg.tensor(0.0), tg.tensor(-2.0)).item() == 0
    assert np.isnan(tg.special.xlog1py(tg.tensor(0.0), tg.tensor(float("nan"))).item())


@pytest.mark.parametrize(
    ("driver", "shapes"),
    [
        ("gels", [(3, 2), (2,), (0,), (0,)]),
        ("gelsy", [(3, 2), (0,), (), (0,)]),
        (None, [(3, 2), (0,), (), (0,)]),
        ("gelsd", [(3, 2), (2,), (), (3,)]),
        ("gelss", [(3, 2), (2,), (), (3,)]),
    ],
)
def test_results_of_least_squares_by_driver(driver, shapes):
    rng = np.random.default_rng(2)
    a, b = tg.tensor(rng.standard_normal((5, 3))), tg.tensor(rng.standard_normal((5, 2)))
    assert [part.shape for part in tg.linalg.lstsq(a, b, driver=driver)] == shapes


def test_an_empty_batch_leaves_the_running_statistics():
    norm = tg.nn.BatchNorm1d(2)
    assert norm(tg.zeros(0, 2, 4)).shape == (0, 2, 4)
    assert (norm.running_mean.tolist(), norm.running_var.tolist()) == ([0, 0], [1, 1])
    assert norm.num_batches_tracked.item() == 1


def test_old_uses_warn_and_go_on():
    with pytest.warns(UserWarning, match="2-d"):
        assert set(tg.nn.Dropout2d()(tg.ones(20, 30)).reshape(-1).tolist()) == {0, 2}
    with pytest.warns(UserWarning, match="first"):
        assert F.embedding_bag(tg.ones(4, 2), tg.tensor([[0, 1]])).tolist() == [[1, 1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.embedding_bag(tg.tensor([[0, 1]]), tg.ones(4, 2))


def test_parameters_that_take_any_number_of_values_have_names():
    x = tg.arange(6).reshape(shape=(2, 3))
    assert x.flip(dims=(0, 1)).tolist() == x.flip(0, 1).tolist()
    assert x.permute(dims=(1, 0)).shape == (3, 2)
    assert tg.ones(1, 3).expand(size=(2, 3)).shape == (2, 3)
    assert x.repeat(repeats=(1, 2)).shape == (2, 6)
    assert tg.tile(x, dims=(2,)).shape == (2, 6)


def test_memory_formats_are_accepted():
    x = tg.ones(1, 2, 3, 4)
    for kept in (tg.channels_last, tg.contiguous_format, tg.preserve_format):
        assert x.clone(memory_format=kept).tolist() == x.contiguous(memory_format=kept).tolist() == x.tolist()
        assert x.to(tg.float64, memory_format=kept).dtype == x.double(memory_format=kept).dtype == tg.float64
        assert tg.zeros_like(x, memory_format=kept).shape == x.shape


def test_unbind_of_a_number_is_an_index_error():
    with pytest.raises(IndexError):
        tg.tensor(1).unbind()
