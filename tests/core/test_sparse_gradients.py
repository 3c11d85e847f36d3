"""Gradients that are sparse: how they add up, hooks, optimizers"""

import itertools

import numpy as np
import pytest
import telegrad as tg
from helpers.sparse import example, looked_up, small_table
from telegrad import nn
from telegrad.base.errors import AutogradError

F = nn.functional


def test_a_sparse_leaf_has_a_sparse_gradient():
    sparse = example(requires_grad=True)
    assert sparse.requires_grad and sparse.is_leaf and sparse.grad is None
    (sparse.to_dense() ** 2).sum().backward()
    assert sparse.grad.is_sparse and sparse.grad._values().tolist() == [6, 20, 10, 20]
    assert not sparse.detach().requires_grad
    with pytest.raises(AutogradError, match="under no_grad"):
        sparse.mul_(2)


@pytest.fixture
def table():
    return small_table()


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
