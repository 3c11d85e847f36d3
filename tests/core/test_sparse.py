"""Sparse tensors: arithmetic, gradients that flow to the elements, and how they travel (engine, files, pickles, RPC)."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import recorded
from telegrad import autograd_dist, nn, rpc
from telegrad.core.errors import AutogradError

F = nn.functional
GOLDEN = recorded("embedding")["sparse"]


def example(requires_grad=False, dtype="float32"):
    """Three elements, two of one place, in shape (2, 3)."""
    return tg.sparse_coo_tensor(
        [[0, 1, 1, 1], [2, 2, 0, 2]], np.array([3, 4, 5, 6], dtype), (2, 3), requires_grad=requires_grad
    )


DENSE = [[0, 0, 3], [5, 0, 10]]


def random(shape, sparse_dim, seed=0, count=6, dtype="float64"):
    generator = np.random.default_rng(seed)
    places = [generator.integers(0, max(length, 1), count) for length in shape[:sparse_dim]]
    values = generator.standard_normal((count, *shape[sparse_dim:])).astype(dtype)
    return tg.sparse_coo_tensor(np.array(places, np.int64).reshape(sparse_dim, count), values, shape)


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


def test_a_sparse_leaf_has_a_sparse_gradient():
    sparse = example(requires_grad=True)
    assert sparse.requires_grad and sparse.is_leaf and sparse.grad is None
    (sparse.to_dense() ** 2).sum().backward()
    assert sparse.grad.is_sparse and sparse.grad._values().tolist() == [6, 20, 10, 20]
    assert not sparse.detach().requires_grad
    with pytest.raises(AutogradError, match="under no_grad"):
        sparse.mul_(2)


def looked_up(table, rows, sparse=True):
    return F.embedding(tg.tensor(rows), table, sparse=sparse)


@pytest.fixture
def table():
    return tg.ones(4, 2, dtype="float64", requires_grad=True)


def test_gradients_add_up_over_passes(table):
    for rows in ([1, 1], [3, 1]):
        looked_up(table, rows).sum().backward()
    assert table.grad._indices().tolist() == [[1, 1, 3, 1]] and not table.grad.is_coalesced()
    assert table.grad.to_dense().tolist() == [[0, 0], [3, 3], [0, 0], [1, 1]]


@pytest.mark.parametrize("order", [(True, False), (False, True), (True, False, True), (False, True, True, False)])
def test_sparse_and_dense_gradients_add_up(table, order):
    for sparse in order:
        looked_up(table, [1, 1], sparse).sum().backward()
    assert not table.grad.is_sparse and table.grad.tolist() == [[0, 0], [2 * len(order)] * 2, [0, 0], [0, 0]]
    table.grad = None
    sum(looked_up(table, [1, 1], sparse).sum() for sparse in order).backward()
    assert table.grad.tolist() == [[0, 0], [2 * len(order)] * 2, [0, 0], [0, 0]]


def test_sparse_and_dense_gradients_add_up_on_their_way():
    """In one pass, before a leaf: two sparse ones and a dense one, in every order."""
    for order in itertools.permutations(range(3)):
        table = tg.ones(4, 2, requires_grad=True)
        through = table.view(4, 2)
        terms = [looked_up(through, [0, 3]), looked_up(through, [1, 1]), through * 2.0]
        sum(terms[number].sum() for number in order).backward()
        assert table.grad.to_dense().tolist() == [[3, 3], [4, 4], [2, 2], [3, 3]]


def test_a_gradient_is_its_own(table):
    out = looked_up(table, [0, 1])
    factor = tg.ones(2, 2, dtype="float64")
    (out * factor).sum().backward()
    factor.mul_(5)
    table.grad.mul_(3)
    assert table.grad._values().tolist() == [[3, 3], [3, 3]] and factor.tolist() == [[5, 5], [5, 5]]


def test_sparse_gradients_go_through_other_operations(table):
    (looked_up(table * 2, [1, 1]) * 3).sum().backward()
    assert table.grad.is_sparse and table.grad.to_dense().tolist() == [[0, 0], [12, 12], [0, 0], [0, 0]]
    with pytest.raises(TypeError, match=r"has no form for sparse tensors; call to_dense\(\)"):
        looked_up(table.exp().reshape(2, 4).reshape(4, 2), [1]).sum().backward()


def test_hooks_see_sparse_gradients(table):
    seen = []
    table.register_hook(lambda gradient: seen.append(gradient) or gradient * 2)
    table.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad))
    looked_up(table, [2]).sum().backward()
    assert seen[0]._values().tolist() == [[1, 1]] and seen[1] is table.grad
    assert table.grad.is_sparse and table.grad._values().tolist() == [[2, 2]]
    middle = table * 1
    middle.retain_grad()
    looked_up(middle, [2]).sum().backward()
    assert middle.grad.is_sparse


def test_grad_gives_sparse_gradients(table):
    (gradient,) = tg.autograd.grad((looked_up(table, [2, 2]) ** 2).sum(), table, create_graph=True)
    assert gradient.is_sparse and gradient.requires_grad
    (second,) = tg.autograd.grad(gradient.to_dense().sum(), table)
    assert second.to_dense().tolist() == [[0, 0], [0, 0], [4, 4], [0, 0]]


def test_clipping(table):
    looked_up(table, [0, 0, 1]).sum().backward()
    norm = nn.utils.clip_grad_norm_([table], 1.0)
    assert float(norm) == pytest.approx(10**0.5) and table.grad.is_sparse
    assert np.linalg.norm(table.grad.to_dense().numpy()) == pytest.approx(1)


@pytest.mark.parametrize("kind", [tg.optim.SGD, tg.optim.Adagrad])
def test_optimizers_step_as_with_dense_gradients(kind):
    ends = []
    for sparse in (True, False):
        table = tg.ones(4, 2, dtype="float64", requires_grad=True)
        optimizer = kind([table], lr=0.1)
        for rows in ([1, 1], [3, 0]):
            optimizer.zero_grad()
            looked_up(table, rows, sparse).sum().backward()
            optimizer.step()
        ends.append(table.detach().numpy())
    np.testing.assert_allclose(*ends)


def test_sparse_adam_takes_them(table):
    optimizer = tg.optim.SparseAdam([table], lr=0.1)
    looked_up(table, [1, 1]).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(table.detach().numpy(), [[1, 1], [0.9, 0.9], [1, 1], [1, 1]])
    with pytest.raises(RuntimeError, match="does not take sparse gradients"):
        tg.optim.Adam([table]).step()


def test_a_module_with_a_sparse_gradient_is_converted():
    module = nn.Embedding(4, 2, sparse=True)
    module(tg.tensor([1])).sum().backward()
    assert module.double().weight.grad.dtype == "float64" and module.weight.grad.is_sparse
    module.zero_grad()
    assert module.weight.grad is None


# -- travel


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies(make):
    for sparse in (example(), example().coalesce(), example(requires_grad=True)):
        other = make(sparse)
        assert other is not sparse and other.is_sparse and other.to_dense().tolist() == DENSE
        assert other.is_coalesced() == sparse.is_coalesced() and other.requires_grad == sparse.requires_grad
        if make is not copy.copy:
            other._values().detach().zero_()
            assert sparse.to_dense().tolist() == DENSE


def test_a_deep_copy_keeps_what_is_one():
    sparse = example()
    one, other = copy.deepcopy([sparse, sparse])
    assert one is other
    table = tg.ones(4, 2, requires_grad=True)
    looked_up(table, [1]).sum().backward()
    assert copy.deepcopy(table).grad._indices().tolist() == [[1]]


def test_checkpoints(tmp_path):
    sparse, scalar = example(), tg.tensor(2.0).to_sparse()
    saved = {
        "sparse": sparse,
        "again": [sparse],
        "whole": example(requires_grad=True).coalesce().detach(),
        "0-d": scalar,
    }
    tg.save(saved, tmp_path / "file")
    loaded = tg.load(tmp_path / "file")
    assert loaded["sparse"].to_dense().tolist() == DENSE and loaded["again"][0] is loaded["sparse"]
    assert not loaded["sparse"].is_coalesced() and loaded["whole"].is_coalesced()
    assert loaded["0-d"].to_dense().item() == 2


@pytest.fixture
def contexts_end(workers, until):
    yield
    for agent in workers:
        until(lambda agent=agent: agent.debug_info()["contexts"] == 0)


def double(sparse):
    assert sparse.is_sparse
    return sparse * 2


def test_calls_carry_them(workers):
    sent = example().coalesce()
    back = rpc.rpc_sync("b", double, (sent,))
    assert back.is_sparse and back.is_coalesced() and back.to_dense().tolist() == [[0, 0, 6], [10, 0, 20]]


def rows_there(table, rows):
    return F.embedding(rows, table, sparse=True)


def scaled_there(sparse, factor):
    return (sparse * factor).to_dense()


def test_distributed_gradients_are_sparse(workers, contexts_end, table):
    mine = looked_up(table, [0, 3])
    with autograd_dist.context() as context:
        there = rpc.rpc_sync("b", rows_there, (table, tg.tensor([1, 1])))
        autograd_dist.backward(context, [(looked_up(table, [0, 3]) + there).sum()])
        gradient = autograd_dist.get_gradients(context)[table]
    assert gradient.is_sparse and table.grad is None and mine.requires_grad
    assert gradient.to_dense().tolist() == [[1, 1], [2, 2], [0, 0], [1, 1]]


def test_gradients_flow_through_sparse_tensors_that_are_sent(workers, contexts_end):
    values = tg.ones(4, dtype="float64", requires_grad=True)
    with autograd_dist.context() as context:
        sparse = tg.sparse_coo_tensor([[0, 1, 1, 1], [2, 2, 0, 2]], values, (2, 3))
        dense = rpc.rpc_sync("b", scaled_there, (sparse, 3.0))
        autograd_dist.backward(context, [dense.sum()])
        assert autograd_dist.get_gradients(context)[values].tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("through", [double, F.relu], ids=["argument and result", "local"])
def test_a_sparse_leaf_has_a_sparse_gradient_in_a_context(workers, contexts_end, through):
    leaf = example(requires_grad=True)
    with autograd_dist.context() as context:
        there = rpc.rpc_sync("b", double, (leaf,)) if through is double else leaf * 2
        assert there.is_sparse and there.requires_grad
        autograd_dist.backward(context, [there.to_dense().sum()])
        ((found, gradient),) = autograd_dist.get_gradients(context).items()
    assert found is leaf and gradient.is_sparse and gradient.shape == leaf.shape and leaf.grad is None
    assert gradient._values().tolist() == [2, 2, 2, 2]
    assert gradient._indices().tolist() == leaf._indices().tolist()


def test_the_values_of_a_sparse_tensor_stay_a_leaf_of_their_own(workers, contexts_end):
    values = tg.ones(2, requires_grad=True)
    sparse = tg.sparse_coo_tensor([[0, 2]], values, (3,))
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [sparse.to_dense().sum()])
        assert list(autograd_dist.get_gradients(context)) == [values]


@pytest.mark.parametrize("order", [1, -1])
def test_sparse_and_dense_gradients_add_up_in_a_context(workers, contexts_end, table, order):
    with autograd_dist.context() as context:
        losses = [rpc.rpc_sync("b", rows_there, (table, tg.tensor([1, 1]))).sum(), (table * 1.0).sum()][::order]
        for loss in losses:
            autograd_dist.backward(context, [loss])
        gradient = autograd_dist.get_gradients(context)[table]
    assert gradient.to_dense().tolist() == [[1, 1], [3, 3], [1, 1], [1, 1]]


# -- what it cannot do


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
