"""A tensor without elements has an array like any other: operations, gradients, calls, files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn, rpc

SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 3)]


@pytest.fixture(params=SHAPES, ids=str)
def empty(request):
    return tg.empty(*request.param, requires_grad=True)


def test_it_has_memory_and_answers_all_queries(empty):
    array = empty.numpy(force=True)
    assert isinstance(array, np.ndarray) and isinstance(empty.data_ptr(), int) and empty.storage_offset() == 0
    assert (empty.shape, empty.numel(), empty.nbytes) == (array.shape, 0, 0) and empty.is_contiguous()
    assert empty.stride() == tuple(step // 4 for step in array.strides) and empty.tolist() == array.tolist()
    assert repr(empty) and str(empty.detach()) and empty.detach().data_ptr() == empty.data_ptr()
    assert np.from_dlpack(empty.detach()).shape == array.shape


OPERATIONS = {
    "arithmetic": lambda a: a * 2 + a / 3 - 1,
    "functions": lambda a: a.exp().tanh().relu(),
    "reductions": lambda a: a.sum() + a.prod(),
    "along": lambda a: a.sum(-1),
    "cumulative": lambda a: a.cumsum(0),
    "shapes": lambda a: a.reshape(-1).unsqueeze(0).T,
    "views": lambda a: a.transpose(0, -1)[..., None],
    "joining": lambda a: tg.cat([a, a], 0) if a.ndim else a,
    "products": lambda a: a.flatten() @ a.flatten() + (a[..., None] @ a[..., None, :]).sum(),
    "indexing": lambda a: a[a > 0],
    "sorting": lambda a: a.sort(0).values,
    "in place": lambda a: (a * 1).add_(a).mul_(2),
    "norms": lambda a: a.norm(),
    "softmax": lambda a: a.softmax(0),
    "dropout": lambda a: nn.functional.dropout(a, 0.5),
    "where": lambda a: tg.where(a > 0, a, 1.0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_and_gradients(empty, name):
    result = OPERATIONS[name](empty)
    result.sum().backward()
    assert empty.grad.shape == empty.shape
    with tg.no_grad():
        assert OPERATIONS[name](empty).shape == result.shape
    (gradient,) = tg.autograd.grad(OPERATIONS[name](empty).sum(), empty, create_graph=True)
    assert gradient.shape == empty.shape


def test_copies_and_files(empty, tmp_path):
    tg.save({"empty": empty}, tmp_path / "file")
    for made in (
        tg.load(tmp_path / "file")["empty"],
        pickle.loads(pickle.dumps(empty)),
        copy.deepcopy(empty),
        empty.detach().clone(),
        empty.detach().clone().share_memory_(),
    ):
        assert (
            made.shape == empty.shape and made.dtype == empty.dtype and isinstance(made.numpy(force=True), np.ndarray)
        )


def test_calls_and_gradients_through_them(workers, empty):
    assert rpc.rpc_sync("b", tg.exp, (empty,)).shape == empty.shape
    with tg.autograd_dist.context() as context:
        y = rpc.rpc_sync("b", tg.mul, (empty, 2))
        assert y.shape == empty.shape
        tg.autograd_dist.backward(context, [y.sum()])
        assert tg.autograd_dist.get_gradients(context)[empty].shape == empty.shape
    with rpc.remote("b", tg.zeros, empty.shape) as reference:
        assert reference.to_here().shape == empty.shape
