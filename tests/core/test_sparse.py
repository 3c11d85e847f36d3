"""Sparse tensors: values, arithmetic, in-place forms, and what they refuse"""

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import recorded
from helpers.sparse import DENSE, example, random
from telegrad import nn
from telegrad.base.errors import AutogradError

F = nn.functional
GOLDEN = recorded("embedding")["sparse"]

SHAPES = [((4, 3), 2), ((4, 3), 1), ((2, 3, 2), 2), ((5,), 1), ((1, 2, 1), 1), ((3,), 0), ((), 0), ((3, 0), 1)]


@pytest.mark.parametrize("shape, sparse_dim", SHAPES)
def test_a_sparse_tensor_stands_for_its_dense_one(shape, sparse_dim):
    sparse = random(shape, sparse_dim)
    dense = sparse.to_dense().numpy()
    expected = np.zeros(shape)
    for place, value in zip(sparse._indices().numpy().T, sparse._values().numpy()):
        expected[tuple(place)] += value
    np.testing.assert_allclose(dense, expected)
    whole = sparse.coalesce()
    np.testing.assert_allclose(whole.to_dense().numpy(), dense)
    assert whole.is_coalesced() and whole.coalesce() is whole and whole.shape == shape
    assert whole.sparse_dim() == sparse_dim and whole.dense_dim() == len(shape) - sparse_dim
    places = whole.indices().numpy()
    assert len(np.unique(places, axis=1).T) == whole._nnz() == whole.values().shape[0]
    again = sparse.to_dense().to_sparse(sparse_dim)
    np.testing.assert_allclose(again.to_dense().numpy(), dense)
    assert again.is_coalesced() and again._nnz() <= whole._nnz()
    np.testing.assert_allclose(tg.sparse.sum(sparse).numpy(), dense.sum())


def test_values_are_pytorchs():
    indices, values = tg.tensor(GOLDEN["indices"]), tg.tensor(np.array(GOLDEN["values"]), requires_grad=True)
    dense = tg.tensor(np.array(GOLDEN["dense"]), requires_grad=True)
    matrix = tg.sparse_coo_tensor(indices, values, (3, 4))
    product = tg.sparse.mm(matrix, dense)
    np.testing.assert_allclose(product.detach().numpy(), GOLDEN["product"], rtol=1e-12)
    factors = tg.arange(1, 10, dtype="float64").reshape(3, 3)
    for gradient, expected in zip(tg.autograd.grad((product * factors).sum(), (values, dense)), GOLDEN["gradients"]):
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-12)
    whole = matrix.detach().coalesce()
    assert whole.indices().tolist() == GOLDEN["coalesced"][0]
    np.testing.assert_allclose(whole.values().numpy(), GOLDEN["coalesced"][1], rtol=1e-12)
    np.testing.assert_allclose(whole.to_dense().numpy(), GOLDEN["to_dense"], rtol=1e-12)
    np.testing.assert_allclose(whole.t().to_dense().numpy(), GOLDEN["t"], rtol=1e-12)
    sums = [tg.sparse.sum(whole), *(tg.sparse.sum(whole, dim).to_dense() for dim in (0, 1))]
    for found, expected in zip(sums, GOLDEN["sum"]):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "compute, expected",
    [
        (lambda s, d: s + s, [[0, 0, 6], [10, 0, 20]]),
        (lambda s, d: s - 2 * s, [[0, 0, -3], [-5, 0, -10]]),
        (lambda s, d: d + s, [[1, 1, 4], [6, 1, 11]]),
        (lambda s, d: s + d, [[1, 1, 4], [6, 1, 11]]),
        (lambda s, d: d - s, [[1, 1, -2], [-4, 1, -9]]),
        (lambda s, d: tg.add(d, s, alpha=2), [[1, 1, 7], [11, 1, 21]]),
        (lambda s, d: tg.sub(s, s, alpha=2), [[0, 0, -3], [-5, 0, -10]]),
        (lambda s, d: s * 2, [[0, 0, 6], [10, 0, 20]]),
        (lambda s, d: tg.tensor(2.0) * s, [[0, 0, 6], [10, 0, 20]]),
        (lambda s, d: s * (d + d), [[0, 0, 6], [10, 0, 20]]),
        (lambda s, d: s / 2, [[0, 0, 1.5], [2.5, 0, 5]]),
        (lambda s, d: s / (d + d), [[0, 0, 1.5], [2.5, 0, 5]]),
        (lambda s, d: -s, [[0, 0, -3], [-5, 0, -10]]),
        (lambda s, d: s.neg(), [[0, 0, -3], [-5, 0, -10]]),
        (lambda s, d: s.t(), [[0, 5], [0, 0], [3, 10]]),
        (lambda s, d: s @ d.t(), [[3, 3], [15, 15]]),
        (lambda s, d: s.mm(d.t()), [[3, 3], [15, 15]]),
        (lambda s, d: d.t() @ s, [[5, 0, 13]] * 3),
        (lambda s, d: s @ d[0], [3, 15]),
        (lambda s, d: tg.sparse.mm(s, d.t()), [[3, 3], [15, 15]]),
        (lambda s, d: tg.sparse.addmm(tg.ones(2, 2), s, d.t(), beta=2, alpha=3), [[11, 11], [47, 47]]),
        (lambda s, d: s.sum(), 18),
        (lambda s, d: s.sum(0), [5, 0, 13]),
        (lambda s, d: tg.sparse.sum(s, (0, -1)), 18),
        (lambda s, d: s.clone(), DENSE),
        (lambda s, d: s.detach(), DENSE),
        (lambda s, d: s.to_sparse(), DENSE),
        (lambda s, d: s.double(), DENSE),
        (lambda s, d: s.to(d), DENSE),
    ],
)
def test_operations(compute, expected):
    np.testing.assert_array_equal(compute(example(), tg.ones(2, 3)).to_dense().numpy(), expected)


JOINED = {
    "cat": lambda a, b: tg.cat([a, b, a]),
    "cat 1": lambda a, b: tg.cat([b, a], -1),
    "stack": lambda a, b: tg.stack([a, b]),
    "stack 1": lambda a, b: tg.stack([b, a, b], 1),
    "stack last": lambda a, b: tg.stack([a, b], -1),
    "mul": lambda a, b: a * b,
    "matmul": lambda a, b: a @ b.t(),
}


@pytest.mark.parametrize("join", JOINED.values(), ids=JOINED)
def test_operations_on_two_sparse_tensors(join):
    pair = [random((4, 3), 2, seed).requires_grad_() for seed in (1, 2)]
    dense = [each.detach().to_dense().requires_grad_() for each in pair]
    found, expected = join(*pair), join(*dense)
    assert found.is_sparse and found.shape == expected.shape
    np.testing.assert_allclose(found.to_dense().detach().numpy(), expected.detach().numpy(), atol=1e-12)
    weights = tg.tensor(np.random.default_rng(3).standard_normal(expected.shape))
    (found.to_dense() * weights).sum().backward()
    (expected * weights).sum().backward()
    for sparse, whole in zip(pair, dense):
        places = tuple(sparse._indices().numpy())
        np.testing.assert_allclose(sparse.grad._values().numpy(), whole.grad.numpy()[places], atol=1e-12)


def test_operations_in_place():
    sparse, same, dense = example(), example(), tg.ones(2, 3)
    held = sparse
    sparse += same
    sparse *= 2
    sparse -= same
    sparse -= same
    sparse /= 2
    assert sparse is held and sparse.to_dense().tolist() == DENSE
    assert dense.add_(sparse, alpha=-1) is dense and dense.tolist() == [[1, 1, -2], [-4, 1, -9]]
    dense -= sparse
    assert dense.tolist() == [[1, 1, -5], [-9, 1, -19]]
    assert sparse.zero_()._nnz() == 0 and not sparse.to_dense().numpy().any()
    assert same.to_dense().tolist() == DENSE


def test_what_it_is():
    sparse = example()
    assert isinstance(sparse, tg.Tensor) and sparse.is_sparse and sparse.layout == tg.sparse_coo
    assert not tg.ones(1).is_sparse and tg.ones(1).layout == tg.strided and tg.ones(1).to_dense().tolist() == [1]
    assert sparse.shape == sparse.size() == (2, 3) and sparse.size(1) == 3 and sparse.numel() == 6 and len(sparse) == 2
    assert sparse.dtype == "float32" and sparse.is_floating_point() and sparse.ndim == sparse.dim() == 2
    assert sparse._nnz() == 4 and not sparse.is_coalesced() and sparse.coalesce()._nnz() == 3
    assert repr(sparse.coalesce()).endswith("values=tensor([ 3.,  5., 10.]), size=(2, 3), nnz=3, coalesced)")
    assert tg.sparse_coo_tensor((2, 3)).to_dense().tolist() == [[0] * 3] * 2
    assert tg.sparse_coo_tensor([[1, 3]], [[1.0, 2.0], [3.0, 4.0]]).shape == (4, 2)
    assert tg.sparse_coo_tensor([[0]], [1], dtype="float64").dtype == "float64"
    assert tg.sparse_coo_tensor([[0]], [1.0], is_coalesced=True).is_coalesced()


# -- gradients


@pytest.mark.parametrize(
    "function",
    [
        lambda s, d: s.to_dense() * d,
        lambda s, d: s.coalesce().values() ** 2,
        lambda s, d: (s + 2 * s - s).to_dense() * d,
        lambda s, d: (s * d).to_dense(),
        lambda s, d: (s / d).to_dense(),
        lambda s, d: d + s,
        lambda s, d: tg.sparse.mm(s, d.t()),
        lambda s, d: d.t() @ s,
        lambda s, d: s @ d[0],
        lambda s, d: tg.sparse.sum(s, 0).to_dense() * d,
        lambda s, d: tg.sparse.sum(s),
        lambda s, d: tg.sparse.sum(d.to_sparse(1), 0),
        lambda s, d: d.to_sparse().to_dense() ** 2,
    ],
)
def test_gradients_flow_to_elements(function):
    values = tg.tensor([1.0, 2.0, 3.0, 4.0], dtype="float64", requires_grad=True)
    dense = tg.rand(2, 3, dtype="float64", requires_grad=True)

    def through(values, dense):
        return function(tg.sparse_coo_tensor([[0, 1, 1, 1], [2, 2, 0, 2]], values, (2, 3)), dense)

    assert tg.autograd.gradcheck(through, (values, dense))
    assert tg.autograd.gradgradcheck(through, (values, dense))


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda s, d: tg.exp(s), TypeError, r"exp\(\) has no form for sparse tensors; call to_dense\(\) first"),
        (lambda s, d: tg.cat([d, s]), TypeError, r"cat\(\) joins sparse tensors with sparse ones only"),
        (
            lambda s, d: tg.cat([s, s.t()]),
            ValueError,
            r"cat\(\) along dim 0 cannot join sparse shapes \(2, 3\), \(3, 2\)",
        ),
        (lambda s, d: tg.stack([s, s.t()]), ValueError, r"stack\(\) needs sparse tensors of one shape"),
        (lambda s, d: tg.stack([s, s], 3), IndexError, "0 to 2 here, and you gave 3"),
        (lambda s, d: tg.cat([d.to_sparse(1)] * 2, 1), IndexError, "0 to 0 here, and you gave 1"),
        (lambda s, d: s[0], TypeError, "has no form for sparse"),
        (lambda s, d: s.numpy(), TypeError, r"has no array of all its elements; call to_dense\(\)"),
        (lambda s, d: np.asarray(s), TypeError, "has no array"),
        (lambda s, d: s.tolist(), TypeError, "has no array"),
        (lambda s, d: s.share_memory_(), TypeError, "has no array"),
        (lambda s, d: s + 1, TypeError, "would leave no zeros"),
        (lambda s, d: 1 / s, TypeError, "divides it by a number"),
        (lambda s, d: s * s.t(), ValueError, r"mul\(\) needs sparse tensors alike"),
        (lambda s, d: s * d[0], TypeError, r"and you gave Tensor of shape \(3,\)"),
        (lambda s, d: s @ s, ValueError, r"shapes \(2, 3\) and \(2, 3\) .* cannot be multiplied"),
        (lambda s, d: s @ d, ValueError, r"\(2, 3\).*cannot be multiplied with a tensor of shape \(2, 3\)"),
        (lambda s, d: s + tg.sparse_coo_tensor((3, 2)), ValueError, r"alike.*\(2, 3\) and \(3, 2\)"),
        (lambda s, d: s + d.to_sparse(1), ValueError, "the first 2 and 1 dimensions"),
        (lambda s, d: s.add_(d), TypeError, "cannot write a dense sum into a sparse tensor"),
        (lambda s, d: d.mul_(s), TypeError, "cannot write a sparse result into a dense tensor"),
        (lambda s, d: tg.mul(s, 2, out=d), TypeError, r"mul\(\) of sparse tensors has no out="),
        (lambda s, d: s.indices(), AutogradError, r"indices\(\) needs .* call coalesce\(\)"),
        (lambda s, d: s.values(), AutogradError, r"values\(\) needs .* call coalesce\(\)"),
        (lambda s, d: s.to_sparse(1), ValueError, "has 2 sparse dimensions"),
        (lambda s, d: d.to_sparse(3), ValueError, "from 0 to 2, and you gave 3"),
        (lambda s, d: d.to_sparse(1).t(), ValueError, "two sparse dimensions, and this has 1"),
        (lambda s, d: s.sum(0, keepdim=True), ValueError, "without keepdim"),
        (lambda s, d: s.sum(2), IndexError, "dimension 2 of a tensor of 2"),
        (lambda s, d: tg.sparse.sum(d), TypeError, "of a dense one, use sum"),
        (lambda s, d: tg.sparse.mm(d, d), ValueError, "two dense ones"),
        (lambda s, d: tg.sparse_coo_tensor([[0.5]], [1.0]), TypeError, "indices of integers"),
        (lambda s, d: tg.sparse_coo_tensor([0], [1.0]), ValueError, r"yours have shape \(1,\)"),
        (lambda s, d: tg.sparse_coo_tensor([[0]], [1.0, 2.0]), ValueError, "a value for each of the 1 indices"),
        (lambda s, d: tg.sparse_coo_tensor([[0]], [1.0], (2, 2)), ValueError, r"not \(2, 2\)"),
        (lambda s, d: tg.sparse_coo_tensor([[0, 2]], [1.0, 1.0], (2,)), ValueError, r"index \[2\] is outside"),
        (lambda s, d: tg.sparse_coo_tensor([[-1]], [1.0], (2,)), ValueError, r"index \[-1\] is outside"),
        (lambda s, d: tg.autograd.grad(s.requires_grad_().to_dense().sum(), s), TypeError, r"its _values\(\)"),
    ],
)
def test_misuse_is_told(act, error, message):
    with pytest.raises(error, match=message):
        act(example(), tg.ones(2, 3))
