"""Sparse tensors that are copied, saved, and sent to other workers"""

import copy
import pickle

import pytest
import telegrad as tg
from helpers.sparse import DENSE, example, looked_up, small_table
from telegrad import autograd_dist, nn, rpc

F = nn.functional


@pytest.fixture
def table():
    return small_table()


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
