"""Functions that PyTorch has beside the usual ones: its building blocks, and rare ones."""

import numpy as np
import pytest
import telegrad as tg
from telegrad.nn import functional as F

X = [1.5, -2.0, 3.0]


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [  # PyTorch 2.13
        (tg.float32, X, 13830554455654793216),
        (tg.float16, X, 13830554455654793216),
        (tg.int64, [1, 2, -7], 18446744073709551610),
        (tg.uint8, [1, 2, 7], 4),
        (tg.bool, [True, False], 1),
    ],
)
def test_hash_tensor(dtype, values, expected):
    result = tg.hash_tensor(tg.tensor(values, dtype=dtype))
    assert result.dtype == np.uint64 and result.item() == expected


def test_hash_tensor_over_dimensions():
    x = tg.arange(6.0).reshape(2, 3)
    assert x.hash_tensor(0).tolist() == [4613937818241073152, 9214364837600034816, 5629499534213120]
    assert tg.hash_tensor(x, (0, 1), keepdim=True).tolist() == [[4610560118520545280]]
    with pytest.raises(ValueError, match="mode 0"):
        tg.hash_tensor(x, mode=1)
    with pytest.raises(ValueError, match="needs elements"):
        tg.hash_tensor(x[:0])
    with pytest.raises(TypeError, match="real numbers"):
        tg.hash_tensor(x.cfloat())


def test_chalf_has_the_precision_of_two_halves():
    x = tg.tensor([0.1, 2.0], dtype=tg.float64, requires_grad=True)
    assert x.chalf().dtype == tg.complex64
    assert x.chalf().tolist() == [complex(np.float16(0.1)), 2]
    assert (x * (1 + 2j)).chalf().tolist() == [complex(np.float16(0.1), np.float16(0.2)), 2 + 4j]
    (grad,) = tg.autograd.grad((x * (1 + 2j)).chalf().imag.sum(), x)
    assert grad.tolist() == [2, 2]


def test_rdiv_is_the_reflected_quotient():
    assert tg.tensor([2, 4]).__rdiv__(3).tolist() == [1.5, 0.75]


def test_grid_samplers_take_numbers_as_modes():
    image, grid = tg.rand(1, 2, 4, 4), tg.rand(1, 3, 3, 2) * 3 - 1.5
    for number, mode in enumerate(("bilinear", "nearest", "bicubic")):
        for other, padding in enumerate(("zeros", "border", "reflection")):
            expected = F.grid_sample(image, grid, mode, padding, True)
            assert tg.equal(tg.grid_sampler_2d(image, grid, number, other, True), expected)
            assert tg.equal(tg.grid_sampler(image, grid, number, other, True), expected)
    with pytest.raises(ValueError, match="must be 0, 1 or 2"):
        tg.grid_sampler(image, grid, 3, 0, True)
    with pytest.raises(ValueError, match="must have 5 dimensions"):
        tg.grid_sampler_3d(image, grid, 0, 0, True)


def test_native_group_norm_returns_means_and_rates():
    x = tg.rand(2, 4, 3)
    result, mean, rate = tg.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5)
    groups = x.reshape(2, 2, 6).numpy()
    assert tg.equal(result, F.group_norm(x, 2))
    np.testing.assert_allclose(mean.numpy(), groups.mean(-1), rtol=1e-6)
    np.testing.assert_allclose(rate.numpy(), 1 / np.sqrt(groups.var(-1) + 1e-5), rtol=1e-5)
    results = tg.native_group_norm(x.half(), tg.ones(4), None, 2, 4, 3, 2, 1e-5)
    assert [each.dtype for each in results] == [tg.float16, tg.float32, tg.float32]
    with pytest.raises(ValueError, match="does not have N=2, C=4 and HxW=2"):
        tg.native_group_norm(x, None, None, 2, 4, 2, 2, 1e-5)


def test_sampled_addmm_computes_the_places_of_its_input_only():
    pattern = tg.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]).to_sparse()
    a, b = tg.ones(2, 2), tg.arange(6.0).reshape(2, 3)
    result = tg.sparse.sampled_addmm(pattern, a, b, beta=0.5, alpha=2)
    assert result.is_sparse and result.to_dense().tolist() == [[0, 11, 0], [7.5, 0, 16]]
    batch = tg.sparse.sampled_addmm(tg.stack([pattern.to_dense()] * 2).to_sparse(), tg.stack([a, a]), tg.stack([b, b]))
    assert batch.to_dense().tolist() == [[[0, 7, 0], [6, 0, 11]]] * 2
    with pytest.raises(TypeError, match="a sparse tensor and two dense ones"):
        tg.sparse.sampled_addmm(a, a, b)
    with pytest.raises(ValueError, match="does not fit"):
        tg.sparse.sampled_addmm(pattern, b, b)
